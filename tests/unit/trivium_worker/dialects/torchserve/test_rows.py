"""How requests look to a TorchServe handler, and that its configuration arrives as its YAML had it."""

import base64
import json
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.torchserve_child import SEES, TorchServeChildHarness, bytes_tensor, stage

from trivium.servers.torchserve.words.yaml_values import as_json
from trivium_worker.dialects.torchserve.rows import decoded
from trivium_worker.dialects.torchserve.yaml_values import from_json
from trivium_worker.wire.values import Part, Tensor

__all__ = ["stage"]


def seen(stage: TorchServeChildHarness, *items: Any, **told: Any) -> list[Any]:
    """The rows that a handler gets."""
    adapter = stage.load(SEES, **told)
    adapter.run(list(items))
    rows, _ = sys.modules["handler"].SEEN[-1]
    assert isinstance(rows, list)
    return rows


@pytest.mark.parametrize(
    ("data", "content_type", "expected"),
    [
        (b"\x00\x01", "", bytearray(b"\x00\x01")),
        (b"", "", bytearray()),
        (b"\x89PNG", "image/png", bytearray(b"\x89PNG")),
        (b'{"a": [1]}', "application/json; charset=utf-8", {"a": [1]}),
        (b"[1, 2]", "Application/JSON", [1, 2]),
        (b"{", "application/json", bytearray(b"{")),
        (b"[" * 100_000, "application/json", bytearray(b"[" * 100_000)),
        (b"1" * 10_000, "application/json", bytearray(b"1" * 10_000)),
        ("ä".encode(), "text/plain", "ä"),
        (b"\xff", "text/csv", bytearray(b"\xff")),
    ],
)
def test_whole_bodies(stage: TorchServeChildHarness, data: bytes, content_type: str, expected: Any) -> None:
    (row,) = seen(stage, stage.item(data, content_type))
    assert row == {"body": expected}
    assert type(row["body"]) is type(expected)


def test_forms(stage: TorchServeChildHarness) -> None:
    parts = [
        Part(b"1", "application/json", "field"),
        Part(b"first", "", "twice"),
        Part(b"last", "", "twice"),
        Part(b'{"a": 1}', "application/json", "json", "a.json"),
        Part(b"text", "text/plain", "text", "a.txt"),
        Part(b"\x89PNG", "image/png", "picture", "a.png"),
    ]
    row, empty = seen(stage, stage.item(parts), stage.item([]))
    assert row == {
        "field": bytearray(b"1"),
        "twice": bytearray(b"last"),
        "json": {"a": 1},
        "text": "text",
        "picture": bytearray(b"\x89PNG"),
    }
    assert empty == {}


def headers_of(stage: TorchServeChildHarness, item: Any) -> Any:
    """The headers that a handler sees."""
    adapter = stage.load(SEES)
    adapter.run([item])
    _, context = sys.modules["handler"].SEEN[-1]
    return dict(context.get_all_request_header(0))


@pytest.mark.parametrize(
    ("path", "method", "added"),
    [
        ("", "predict", {"explain": "False", "url_path": ""}),
        ("a/b", "explain", {"explain": "True", "url_path": "a/b"}),
        (None, "predict", {"explain": "mine"}),
        (None, "explain", {"explain": "True"}),
        (None, "describe", {"explain": "mine", "describe": "True"}),
    ],
)
def test_what_is_added_to_the_headers(
    stage: TorchServeChildHarness, path: str | None, method: str, added: dict[str, str]
) -> None:
    item = stage.item(b"x", "text/plain; a=b", properties={"explain": "mine"}, path=path, method=method)
    assert headers_of(stage, item) == {"body": {"content-type": "text/plain"}, **added}


def test_the_content_type_of_each_input(stage: TorchServeChildHarness) -> None:
    parts = [
        Part(b"1", "application/json", "field"),
        Part(b"{}", "Application/JSON; charset=utf-8", "typed", "a.json"),
        Part(b"x", "", "file", "a.bin"),
    ]
    item = stage.item(parts, query=[("a", "x")], properties={"typed": "mine", "X-Own": "1"}, path=None)
    assert headers_of(stage, item) == {
        "a": {"content-type": ""},
        "field": {"content-type": ""},
        "typed": "mine",
        "file": {"content-type": "application/octet-stream"},
        "X-Own": "1",
    }


def test_query_arguments_are_inputs(stage: TorchServeChildHarness) -> None:
    (row,) = seen(stage, stage.item(b"x", query=[("a", "x"), ("a", "ä")]))
    assert row == {"a": bytearray("ä".encode()), "body": bytearray(b"x")}


def test_bytes_only_where_nothing_is_decoded(stage: TorchServeChildHarness) -> None:
    (row,) = seen(stage, stage.item(b"[1]", "application/json"), decodes=False)
    assert row == {"body": bytearray(b"[1]")}


def test_tensors(stage: TorchServeChildHarness) -> None:
    picture = stage.item([bytes_tensor("x", b"\x89PNG")])
    tensors = stage.item(
        [
            Tensor.of_array("f", np.array([[1.5, 2.5]], "f4")),
            Tensor.of_array("h", np.array([0.5], "f2")),
            Tensor.of_array("i", np.array([-1, 2], "i8")),
            Tensor.of_array("b", np.array([True, False])),
            Tensor("bf", "BF16", [2], np.array([1.0, -2.0], "f4").view("u2")[1::2].tobytes()),
            bytes_tensor("s", "ä".encode(), b"b"),
            bytes_tensor("raw", b"\xff", b"a"),
        ],
        request_id="7",
    )
    first, second = seen(stage, picture, tensors)
    assert first == {"body": bytearray(b"\x89PNG")}
    document = second["body"]
    assert document["id"] == "7"
    assert [(one["name"], one["shape"], one["datatype"], one["data"]) for one in document["inputs"]] == [
        ("f", [1, 2], "FP32", [1.5, 2.5]),
        ("h", [1], "FP16", [0.5]),
        ("i", [2], "INT64", [-1, 2]),
        ("b", [2], "BOOL", [True, False]),
        ("bf", [2], "BF16", [1.0, -2.0]),
        ("s", [2], "BYTES", ["ä", "b"]),
        ("raw", [2], "BYTES", [base64.b64encode(b"\xff").decode(), base64.b64encode(b"a").decode()]),
    ]
    assert document["inputs"][-1]["parameters"] == {"encoding": "base64"}


@given(st.binary(), st.sampled_from(["application/json", "text/plain", "", "\x00;;="]))
def test_decoding_never_raises(data: bytes, content_type: str) -> None:
    assert decoded(data, content_type) is not NotImplemented


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text()
        | st.binary()
        | st.dates()
        | st.datetimes(),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.text(max_size=6) | st.integers() | st.booleans() | st.dates(), inner, max_size=4
            )
        ),
        max_leaves=12,
    )
)
def test_a_configuration_arrives_as_it_was(value: Any) -> None:
    assert from_json(json.loads(json.dumps(as_json(value), allow_nan=False))) == value


def test_configurations_that_json_lacks() -> None:
    value = {"//yaml": 1, "set": {1, "a"}, "inf": float("inf"), "big": 2**100}
    assert from_json(json.loads(json.dumps(as_json(value)))) == value
