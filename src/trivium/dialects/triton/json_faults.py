"""What Triton finds wrong with the JSON of a request, in the order in which it looks: for what was refused already.

Source: spec sheet `triton`, sections 4.3 to 4.6. Says nothing about tensors' data and about what a model takes: those
errors bring their own facts. Most bytes of a text that are looked at: `MOST_BYTES`.
"""

import json
from collections.abc import Mapping
from typing import Any

from trivium.dialects.triton import request_reasons
from trivium.dialects.triton.error_codes import ErrorCode
from trivium.dialects.triton.json_syntax import syntax_fault
from trivium.dialects.triton.text_forms import misread, parameter
from trivium.dialects.triton.texts import NO_FIELD, ROWS, SEVERAL_FIELDS, Said
from trivium.types.datatype import BY_NAME

MOST_BYTES = 2**16

_ABSENT: Any = object()
_TYPES: Mapping[str, Any] = {
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "unsigned-integer": lambda value: type(value) is int and 0 <= value < 2**64,
    "boolean": lambda value: isinstance(value, bool),
}
_KNOWN = {
    "priority": ("unsigned-integer",),
    "timeout": ("unsigned-integer",),
    "sequence_id": ("unsigned-integer", "string"),
    "sequence_start": ("boolean",),
    "sequence_end": ("boolean",),
    "binary_data_output": ("boolean",),
}


class _Found(Exception):
    """The first fault."""

    def __init__(self, said: Said) -> None:
        super().__init__(said.text)
        self.said = said


def id_in(text: bytes | memoryview) -> str:
    """The id of an infer request that could be read, or nothing."""
    try:
        document = json.loads(bytes(text)) if len(text) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        return ""
    found = document.get("id") if isinstance(document, dict) else None
    return found if isinstance(found, str) else ""


def malformed(text: bytes | memoryview) -> Said | None:
    """Of a body that has to be JSON; None where it is, or is too long to be looked at."""
    if len(text) > MOST_BYTES:
        return None
    fault = syntax_fault(bytes(text))
    if fault is None:
        return None
    return Said(ErrorCode.INTERNAL, f"failed to parse the request JSON buffer: {fault}")


def infer_fault(text: bytes | memoryview) -> Said | None:
    """The first fault in the JSON of an infer request. None where it is somewhere else, or the text is too long."""
    found = malformed(text)
    if found is not None or len(text) > MOST_BYTES:
        return found
    try:
        document = json.loads(bytes(text))
    except (ValueError, RecursionError):
        return None
    try:
        _look(document if isinstance(document, dict) else {})
    except _Found as fault:
        return fault.said
    return None


def _look(document: dict[str, Any]) -> None:
    if "id" in document:
        _take(document, "id", "string")
    if "parameters" in document:
        _parameters(document["parameters"])
    for entry in _take(document, "inputs", "array"):
        _input(entry if isinstance(entry, dict) else {})
    if "outputs" in document:
        for entry in _take(document, "outputs", "array"):
            _output(entry if isinstance(entry, dict) else {})


def _parameters(given: Any) -> None:
    if not isinstance(given, dict):
        raise _wrong("failed to get request params.: attempt to get members for non-object")
    for key, value in given.items():
        expected = _KNOWN.get(key)
        if expected is not None:
            if not any(_TYPES[kind](value) for kind in expected):
                raise _wrong(parameter({"key": key, "expected": expected[-1]}))
        elif key.startswith("triton_"):
            raise _of(request_reasons.RESERVED)
        elif not isinstance(value, bool | int | float | str):
            raise _of(request_reasons.NO_SCALAR, key=key)


def _input(entry: dict[str, Any]) -> None:
    told = entry.get("parameters")
    told = told if isinstance(told, dict) else {}
    fields = [name for name in ("data",) if name in entry]
    fields += [name for name in ("binary_data_size", "shared_memory_region") if name in told]
    if not fields:
        raise _Found(Said(ErrorCode.INVALID_ARG, NO_FIELD))
    if len(fields) > 1:
        text = SEVERAL_FIELDS.format(fields=" ".join(f"'{name}'" for name in fields))
        raise _Found(Said(ErrorCode.INVALID_ARG, text))
    name = _take(entry, "name", "string")
    datatype = _take(entry, "datatype", "string")
    for dim in _take(entry, "shape", "array"):
        if not _TYPES["unsigned-integer"](dim):
            raise _wrong(f"Unable to parse 'shape': {misread('unsigned-integer')}")
    for key in ("binary_data_size", "shared_memory_byte_size", "shared_memory_offset"):
        if key in told:
            _take(told, key, "unsigned-integer")
    if datatype not in BY_NAME:
        raise _of(request_reasons.UNKNOWN_DATATYPE, input=name)


def _output(entry: dict[str, Any]) -> None:
    _take(entry, "name", "string")
    told = entry.get("parameters")
    told = told if isinstance(told, dict) else {}
    if "classification" in told and not _TYPES["unsigned-integer"](told["classification"]):
        raise _wrong(f"Unable to set 'classification': {misread('unsigned-integer')}")
    if "binary_data" in told:
        _take(told, "binary_data", "boolean")


def _take(fields: dict[str, Any], key: str, kind: str) -> Any:
    value = fields.get(key, _ABSENT)
    if value is _ABSENT:
        raise _wrong(f"Unable to parse '{key}': attempt to access non-existing object member '{key}'")
    if not _TYPES[kind](value):
        found = "attempt to access JSON non-array as array" if kind == "array" else misread(kind)
        raise _wrong(f"Unable to parse '{key}': {found}")
    return value


def _wrong(text: str) -> _Found:
    return _Found(Said(ErrorCode.INTERNAL, text))


def _of(kind: str, **facts: object) -> _Found:
    row = ROWS[kind]
    assert isinstance(row.text, str), "these have no list in them"
    return _Found(Said(row.code, row.text.format_map(facts)))
