"""Tensors as the JSON of the v2 protocol, and back."""

import base64
import json
import struct
from typing import Any

import pytest

from trivium_worker.dialects.torchserve.tensors import described, document_of, tensor_of, with_binary_data
from trivium_worker.wire.values import Failure, Tensor

NUMBERS = Tensor("x", "FP32", (1, 2), struct.pack("<2f", 1.5, -2))
TEXTS = Tensor.of_elements("t", ["é".encode(), b""])
PICTURE = Tensor.of_elements("p", [b"\x89PNG", b"text"])


def test_a_request_is_a_document_with_its_id() -> None:
    inputs = [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1.5, -2.0]}]
    assert document_of("7", [NUMBERS]) == {"id": "7", "inputs": inputs}
    assert document_of("", [NUMBERS]) == {"inputs": inputs}


def test_bytes_are_text_or_all_base64() -> None:
    encoded = [base64.b64encode(each).decode() for each in (b"\x89PNG", b"text")]
    assert described(TEXTS)["data"] == ["é", ""]
    assert described(PICTURE)["data"] == encoded
    assert described(PICTURE)["parameters"] == {"encoding": "base64"}
    told = described(TEXTS, always_base64=True)
    assert (told["data"], "parameters" in told) == (["w6k=", ""], False)


@pytest.mark.parametrize(
    ("datatype", "data"),
    [
        ("BOOL", [True, False]),
        ("INT64", [-(2**63), 2**63 - 1]),
        ("UINT64", [2**64 - 1]),
        ("FP64", [0.1]),
        ("FP16", [1.5]),
        ("BYTES", ["é", ""]),
    ],
)
def test_there_and_back(datatype: str, data: list[Any]) -> None:
    output = {"name": "y", "datatype": datatype, "shape": [len(data)], "data": data}
    assert described(tensor_of(output)) == output


def test_what_is_no_text_is_json() -> None:
    tensor = tensor_of({"name": "y", "datatype": "BYTES", "shape": [1], "data": [{"lynx": 0.5}]})
    assert tensor.elements() == [b'{"lynx": 0.5}']


def test_a_number_beyond_its_datatype_is_no_tensor() -> None:
    with pytest.raises(struct.error):
        tensor_of({"name": "y", "datatype": "INT8", "shape": [1], "data": [300]})


def body(sizes: list[object], data: bytes) -> tuple[bytes, str]:
    inputs = [
        {"name": f"x{i}", "shape": [2], "datatype": "FP32", "parameters": {"binary_data_size": size}}
        for i, size in enumerate(sizes)
    ]
    text = json.dumps({"id": "7", "inputs": [*inputs, {"name": "plain", "data": [1]}]}).encode()
    return text + data, str(len(text))


def test_binary_data_go_to_their_inputs_in_turn() -> None:
    document = with_binary_data(*body([8, 8], struct.pack("<4f", 1, 2, 3, 4)))
    assert [given["data"] for given in document["inputs"]] == [[1.0, 2.0], [3.0, 4.0], [1]]
    assert document["id"] == "7"


@pytest.mark.parametrize(
    ("sizes", "data", "found"),
    [
        ([8], bytes(7), "binary_data_size of the input 'x0' is 8, and 7 bytes are left"),
        ([4], bytes(8), "4 bytes belong to no input"),
        ([-1], b"", "is -1"),
        ([True], b"x", "is True"),
        (["4"], bytes(4), "is '4'"),
    ],
)
def test_binary_data_that_do_not_fit(sizes: list[object], data: bytes, found: str) -> None:
    with pytest.raises(Failure) as caught:
        with_binary_data(*body(sizes, data))
    assert found in caught.value.message
    assert caught.value.status == 400


@pytest.mark.parametrize("length", ["", "-1", "many", "100000"])
def test_a_length_that_is_none(length: str) -> None:
    with pytest.raises(Failure, match="Inference-Header-Content-Length is"):
        with_binary_data(b"{}", length)
