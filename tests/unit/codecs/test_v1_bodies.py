"""Bodies of KServe's v1 protocol: rows, rows by names, columns, bytes in base64; and what fits no model."""

import json
from typing import Any

import numpy as np
import pytest

from trivium.codecs.binding import Wanted
from trivium.codecs.v1_bodies import read_rows
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.spec import TensorSpec

X = TensorSpec("x", DataType.FP32, (3,))
ONE = TensorSpec("one", DataType.INT64, (1,))
TEXT = TensorSpec("text", DataType.BYTES, (1,))
FREE = TensorSpec("free", DataType.FP32, (-1, 3))

ROWS = [[1, 2, 3], [4, 5, 6]]
GOOD: list[tuple[tuple[TensorSpec, ...], bool, Any, dict[str, Any]]] = [
    ((X,), True, {"instances": ROWS}, {"x": ROWS}),
    ((X,), True, {"instances": [{"x": row} for row in ROWS]}, {"x": ROWS}),
    ((X,), True, {"instances": [{"data": row} for row in ROWS]}, {"x": ROWS}),
    ((X,), True, {"inputs": ROWS}, {"x": ROWS}),
    ((X,), True, {"inputs": {"x": ROWS}, "signature_name": "serving_default"}, {"x": ROWS}),
    ((FREE,), False, {"instances": ROWS}, {"free": ROWS}),
    ((ONE,), True, {"instances": [7, 8]}, {"one": [[7], [8]]}),
    ((ONE,), True, {"instances": [[7], [8]]}, {"one": [[7], [8]]}),
    ((X, ONE), True, {"instances": [{"x": ROWS[0], "one": 1}]}, {"x": ROWS[:1], "one": [[1]]}),
    ((X, ONE), True, {"inputs": {"x": ROWS, "one": [1, 2]}}, {"x": ROWS, "one": [[1], [2]]}),
    ((TEXT,), True, {"instances": ["a", "b"]}, {"text": [[b"a"], [b"b"]]}),
    ((TEXT,), True, {"instances": [{"b64": "aGk="}, {"b64": "/w=="}]}, {"text": [[b"hi"], [b"\xff"]]}),
    ((TEXT,), True, {"instances": [{"text": {"b64": "aGk="}}]}, {"text": [[b"hi"]]}),
    ((TEXT,), True, {"inputs": {"text": [{"b64": "aGk="}]}}, {"text": [[b"hi"]]}),
    ((TEXT,), True, {"inputs": [{"b64": "aGk="}]}, {"text": [[b"hi"]]}),
]


@pytest.mark.parametrize("case", GOOD, ids=lambda case: json.dumps(case[2]))
def test_rows_and_columns_are_tensors(case: tuple[tuple[TensorSpec, ...], bool, Any, dict[str, Any]]) -> None:
    specs, has_rows, document, expected = case
    found = read_rows(json.dumps(document).encode(), Wanted("m", specs, has_rows))
    assert {one.name: one.array.tolist() for one in found} == expected
    for one in found:
        assert one.datatype is next(spec.datatype for spec in specs if spec.name == one.name)
        assert one.shape == one.array.shape


def test_what_is_no_number_is_read_as_python_writes_it() -> None:
    (found,) = read_rows(b'{"instances": [[NaN, 1, Infinity]]}', Wanted("m", (X,), True))
    assert np.isnan(found.array[0, 0])
    assert np.isinf(found.array[0, 2])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{}", "no 'instances'"),
        ('{"instances": [], "inputs": []}', "both 'instances' and 'inputs'"),
        ("[1]", "no object"),
        ('"text"', "no object"),
        ('{"instances": [[1, 2', "JSON"),
        ('{"instances": [{"x": [1,2,3]}, {"y": 1}]}', "instance 1 has y, and the first has x"),
        ('{"instances": [{"x": [1,2,3], "z": 1}]}', "'z' is no input of model 'm'"),
        ('{"inputs": {"z": [1]}}', "'z' is no input of model 'm'"),
        ('{"instances": [{"b64": "aGk="}]}', "base64 stands for bytes"),
        ('{"instances": [{"x": [1,2,3]}, 7]}', "cannot be read"),
        ('{"instances": ["a"]}', "FP32"),
    ],
)
def test_what_fits_no_model_is_refused(body: str, said: str) -> None:
    with pytest.raises(ServeError) as raised:
        read_rows(body.encode(), Wanted("m", (X,), True))
    assert raised.value.code is Code.INVALID
    assert said in raised.value.message


def test_rows_without_names_are_for_a_model_of_one_input() -> None:
    with pytest.raises(ServeError, match="the rows name none of them"):
        read_rows(b'{"instances": [[1]]}', Wanted("m", (X, ONE), True))


@pytest.mark.parametrize("text", ["!", "aGk", 7, None])
def test_bytes_that_are_no_base64(text: object) -> None:
    body = json.dumps({"instances": [{"b64": text}]}).encode()
    with pytest.raises(ServeError, match=r"no \{\"b64\"|cannot be read"):
        read_rows(body, Wanted("m", (TEXT,), True))


@pytest.mark.parametrize("row", ['{"text": ""}', '{"b64": ""}'])
def test_more_objects_than_may_be_held_are_refused_before_they_are_made(row: str) -> None:
    body = ('{"instances": [' + ",".join([row] * 200_000) + "]}").encode()
    with pytest.raises(ServeError) as raised:
        read_rows(body, Wanted("m", (TEXT,), True))
    assert raised.value.code is Code.TOO_LARGE
