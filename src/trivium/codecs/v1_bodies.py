"""The body of a prediction by KServe's v1 protocol, which is TensorFlow Serving's: rows, or tensors by their names.

`{"instances": [row, ...]}`, where a row is a value of the only input, or an object with a value by each input's name;
or `{"inputs": value}`, where a value is the only input, or an object with each by its name. Bytes may come as
`{"b64": text}`. Source: TensorFlow Serving's documentation of its REST API, and KServe's of its v1 data plane.
"""

import base64
import binascii
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec

from trivium.codecs import json_documents
from trivium.codecs.binary import Buffer
from trivium.codecs.binding import Wanted
from trivium.codecs.elements import object_array
from trivium.codecs.v2_bodies import Read, judge_values
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import RawForm, Tensor
from trivium.types.spec import TensorSpec

INSTANCES, INPUTS, B64 = "instances", "inputs", "b64"
_FORMS = 'Send {"instances": [a row, ...]}, or {"inputs": {name: values}}.'
_Read = TypeVar("_Read")
_ROWS = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_VALUES = msgspec.json.Decoder(list[msgspec.Raw])
_B64 = msgspec.json.Decoder(dict[str, str])
_OF_OBJECTS = re.compile(rb"[ \t\r\n]*\[[ \t\r\n]*\{")
_OBJECT = re.compile(rb"[ \t\r\n]*\{")
_OF_B64 = re.compile(rb'[ \t\r\n]*\[?[ \t\r\n]*\{[ \t\r\n]*"b64"')


def judge_forms(fields: Collection[str]) -> None:
    """Refuse a body that has rows and tensors, since it asks for two answers. Raises INVALID."""
    if INSTANCES in fields and INPUTS in fields:
        raise _invalid("it has both 'instances' and 'inputs'", _FORMS)


def read_rows(data: Buffer, wanted: Wanted) -> tuple[Tensor, ...]:
    """The inputs of a model. INVALID for what is no such document, an input that the model does not have, and rows that
    differ in their names.
    """
    fields = json_documents.fields_of(data)
    judge_forms(fields)
    if INSTANCES not in fields and INPUTS not in fields:
        raise _invalid("it has no 'instances'", _FORMS)
    if INPUTS in fields:
        return _columns(fields[INPUTS], wanted)
    rows = fields[INSTANCES]
    if _OF_OBJECTS.match(rows) and not _OF_B64.match(rows):
        return _of_objects(rows, wanted)
    return (_tensor(_only(wanted), rows, wanted),)


def _columns(value: msgspec.Raw, wanted: Wanted) -> tuple[Tensor, ...]:
    if not _OBJECT.match(value) or _OF_B64.match(value):
        return (_tensor(_only(wanted), value, wanted),)
    named = json_documents.fields_of(bytes(value))
    return tuple(_tensor(_named(name, wanted), column, wanted) for name, column in named.items())


def _of_objects(value: msgspec.Raw, wanted: Wanted) -> tuple[Tensor, ...]:
    judge_values(bytes(value), INSTANCES)
    rows = _decoded(_ROWS, value, INSTANCES)
    names = rows[0].keys()
    for number, row in enumerate(rows):
        if row.keys() != names:
            told = ", ".join(row) or "no names"
            raise _invalid(
                f"instance {number} has {told[:200]}, and the first has {', '.join(names)[:200]}", _FORMS
            )
    if len(names) == 1 and wanted.only is not None and wanted.named(next(iter(names))) is None:
        (name,) = names  # what the only input is called here, the sender need not know
        return (_tensor(wanted.only, _listed([row[name] for row in rows]), wanted),)
    return tuple(
        _tensor(_named(name, wanted), _listed([row[name] for row in rows]), wanted) for name in names
    )


def _listed(values: Sequence[msgspec.Raw]) -> msgspec.Raw:
    return msgspec.Raw(b"[" + b",".join(map(bytes, values)) + b"]")


def _tensor(spec: TensorSpec, value: msgspec.Raw, wanted: Wanted) -> Tensor:
    """Read one input; one of single values for each row may come without the lists around them."""
    found = _of_b64(spec, value) if _OF_B64.match(value) else json_documents.read_value(spec, value)
    if wanted.batch_axis and len(found.shape) == len(spec.dims) and spec.dims and spec.dims[-1] in (1, -1):
        shape = (*found.shape, 1)
        return Tensor(spec.name, found.datatype, shape, found.array.reshape(shape))
    return found


def _of_b64(spec: TensorSpec, value: msgspec.Raw) -> Tensor:
    if spec.datatype is not DataType.BYTES:
        raise _invalid(
            f"'{spec.name}' is {spec.datatype.wire}, and base64 stands for bytes", "Send its numbers."
        )
    judge_values(bytes(value), spec.name)
    values = [value] if _OBJECT.match(value) else _decoded(_VALUES, value, spec.name)
    elements = [_bytes_of(spec, one) for one in values]
    array = object_array(elements, (len(elements),))
    return Tensor(spec.name, spec.datatype, array.shape, array)


def _bytes_of(spec: TensorSpec, value: msgspec.Raw) -> bytes:
    found = _decoded(_B64, value, spec.name)
    try:
        return base64.b64decode(found[B64], validate=True)
    except (KeyError, ValueError, binascii.Error) as error:
        raise _invalid(f"'{spec.name}' has a value that is no {{\"b64\": base64}}", "Correct it.") from error


def _only(wanted: Wanted) -> TensorSpec:
    if wanted.only is None:
        raise _invalid(
            f"model '{wanted.model}' takes {wanted}, and the rows name none of them",
            "Send rows as objects with a value by each input's name.",
        )
    return wanted.only


def _named(name: str, wanted: Wanted) -> TensorSpec:
    spec = wanted.named(name) or (replace(wanted.many, name=name) if wanted.many is not None else None)
    if spec is None:
        raise _invalid(f"{name[:80]!r} is no input of model '{wanted.model}'", f"It takes {wanted}.")
    return spec


def _decoded(decoder: "msgspec.json.Decoder[_Read]", data: msgspec.Raw, what: str) -> _Read:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(f"{what} cannot be read ({error})", _FORMS) from error


def _invalid(found: str, hint: str) -> ServeError:
    return ServeError(
        Code.INVALID, f"The body is no request of the v1 protocol that fits the model: {found}. {hint}"
    )


READERS: Mapping[RawForm, Read] = {RawForm.ROWS: read_rows}
