"""What Triton finds wrong first with the JSON of an infer request: rows of the sheet's section 4.5."""

import json

import pytest

from trivium.dialects.triton.error_codes import ErrorCode
from trivium.dialects.triton.json_faults import MOST_BYTES, id_in, infer_fault, malformed

INPUT = {"name": "a", "shape": [1], "datatype": "INT32", "data": [1]}


def _input(**changes):
    entry = INPUT | changes
    return {"inputs": [{key: value for key, value in entry.items() if value is not ...}]}


INTERNAL = {
    "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'": {},
    "Unable to parse 'inputs': attempt to access JSON non-array as array": {"inputs": 1},
    "Unable to parse 'id': attempt to access JSON non-string as string": {"id": None, "inputs": []},
    "Unable to parse 'name': attempt to access non-existing object member 'name'": _input(name=...),
    "Unable to parse 'datatype': attempt to access JSON non-string as string": _input(datatype=3),
    "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer": _input(
        shape=[-1]
    ),
    "Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as unsigned-integer": _input(
        data=..., parameters={"binary_data_size": "x"}
    ),
    "Unable to parse 'outputs': attempt to access JSON non-array as array": {"inputs": [], "outputs": {}},
    "Unable to set 'classification': attempt to access JSON non-unsigned-integer as unsigned-integer": {
        "inputs": [],
        "outputs": [{"name": "o", "parameters": {"classification": -1}}],
    },
    "failed to get request params.: attempt to get members for non-object": {"parameters": 5},
    "Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer": {
        "parameters": {"priority": "x"}
    },
    "Unable to parse 'sequence_start': attempt to access JSON non-boolean as boolean": {
        "parameters": {"sequence_start": 1}
    },
}

INVALID = {
    "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', "
    "'shared_memory_region' in 'parameters'. But no field is set": _input(data=...),
    "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', "
    "'shared_memory_region' in 'parameters'. But set 'data' 'binary_data_size'": _input(
        parameters={"binary_data_size": 4}
    ),
    "invalid datatype for input a": _input(datatype="INT33"),
    "parameter 'foo' has invalid type. It should be either 'int', 'bool', or 'string'.": {
        "parameters": {"foo": []}
    },
    "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.": {
        "parameters": {"triton_x": 1}
    },
}


@pytest.mark.parametrize(
    ("code", "text", "document"),
    [
        *((ErrorCode.INTERNAL, *row) for row in INTERNAL.items()),
        *((ErrorCode.INVALID_ARG, *row) for row in INVALID.items()),
    ],
)
def test_the_first_fault(code, text, document):
    found = infer_fault(json.dumps(document).encode())
    assert found is not None
    assert (found.code, found.text) == (code, text)


def test_what_is_right_has_none():
    told = {"priority": 1, "sequence_id": "a", "mine": 0.5}
    outputs = [{"name": "o", "parameters": {"classification": 0, "binary_data": True}}]
    assert (
        infer_fault(json.dumps(_input() | {"id": "x", "parameters": told, "outputs": outputs}).encode())
        is None
    )


def test_what_is_no_json():
    found = infer_fault(b"{]")
    assert found == malformed(memoryview(b"{]"))
    assert found is not None
    assert found.text == "failed to parse the request JSON buffer: Missing a name for object member. at 1"


def test_long_texts_are_not_looked_at():
    text = b"{" + b" " * MOST_BYTES
    assert malformed(text) is None
    assert infer_fault(text) is None
    assert id_in(text) == ""


@pytest.mark.parametrize(
    ("text", "name"), [(b'{"id": "a"}', "a"), (b'{"id": 1}', ""), (b"[]", ""), (b"{", ""), (b"\xff", "")]
)
def test_the_id_where_it_can_be_read(text, name):
    assert id_in(text) == name
