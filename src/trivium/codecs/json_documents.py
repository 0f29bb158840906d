"""JSON documents with tensors on wires that are not the v2 protocol's: which forms there are, and one to write.

A document is `{"inputs": [v2 tensors]}`, an object of lists by name, or a value for the only tensor wanted,
alone or under `inputs` or `instances` (sheet `djl`, section 9.1). Values take the datatype that the model
declares, and their shape from their nesting; they are decoded once, typed.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any

import msgspec
import numpy as np

from trivium.codecs import jsontensors
from trivium.codecs.binding import Wanted
from trivium.codecs.elements import object_array
from trivium.codecs.json_groups import GROUP_BYTES, Unbalanced, groups
from trivium.codecs.shapes import MAX_RANK
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError, frameless
from trivium.types.payload import Tensor
from trivium.types.spec import TensorSpec

FORMS = (
    '{"name": list}, a bare list for a single input, or {"inputs": [{"name", "datatype", "shape", "data"}]}'
)

_OPENING = re.compile(rb"[ \t\r\n\[]*")
_OBJECTS = re.compile(rb"[ \t\r\n]*\[[ \t\r\n]*\{")
_FRACTION = re.compile(rb"[.eENI]")
"""What a list of numbers has if one of them is not whole: a point, an exponent, NaN or Infinity."""
_LISTS = ("inputs", "instances")
LARGE_BYTES = 2**20
"""Bytes of a list beyond which it is read in groups."""
LONGEST_WITH_WORDS = 4 * 2**20
"""Bytes of a document that may hold bare words, which JSON does not have."""


class _Entry(msgspec.Struct, frozen=True):
    name: str
    datatype: DataType
    shape: tuple[int, ...]
    data: msgspec.Raw


class _Document(msgspec.Struct, frozen=True):
    outputs: list[_Entry]


_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRIES = msgspec.json.Decoder(list[_Entry])


def read(data: bytes | memoryview, wanted: Wanted) -> tuple[Tensor, ...] | None:
    """The tensors of a document; None for an object in none of the forms.

    As an answer of a handler only an object is read that has every output by name (what else it has is left
    out), or `{"outputs": [v2 tensors]}`. INVALID for what is no JSON, does not fit the datatype, is ragged or
    nested more than `MAX_RANK` deep.
    """
    if _first(data) != b"{":
        only = None if wanted.are_outputs else wanted.only
        return None if only is None else (read_value(only, data),)
    fields = fields_of(data)
    if wanted.are_outputs:
        if all(spec.name in fields for spec in wanted.specs):
            return tuple(read_value(spec, fields[spec.name]) for spec in wanted.specs)
        return _entries(fields, "outputs")
    if wanted.many is not None and not fields.keys() & {*_LISTS}:
        return tuple(read_value(replace(wanted.many, name=name), value) for name, value in fields.items())
    if any(spec.name in fields for spec in wanted.specs):
        return tuple(read_value(_named(name, wanted), value) for name, value in fields.items())
    return _under_a_key(fields, wanted)


def write(tensors: Sequence[Tensor]) -> bytes:
    """`{"outputs": [...]}` as the v2 protocol has it. INVALID for a tensor that JSON cannot carry."""
    entries = [
        _Entry(tensor.name, tensor.datatype, tensor.shape, msgspec.Raw(jsontensors.encode(tensor)))
        for tensor in tensors
    ]
    return msgspec.json.encode(_Document(entries))


def _first(data: bytes | memoryview) -> bytes:
    match = _OPENING.match(data)
    assert match is not None, "the pattern fits anything"
    return b"[" if b"[" in match[0] else bytes(data[match.end() : match.end() + 1])


def fields_of(data: bytes | memoryview) -> dict[str, msgspec.Raw]:
    """Return the members of an object, each as it is written. INVALID for what is none."""
    try:
        return _FIELDS.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as first:
        # Bare words (NaN): parsed by Python's own parser, which knows them, and written anew field by field.
        try:
            fields = _parsed(data, frameless(first))
            if not isinstance(fields, dict):
                raise _invalid("it is no object", f"Send {FORMS}.")
            return {name: msgspec.Raw(json.dumps(field).encode()) for name, field in fields.items()}
        except RecursionError as error:
            raise _invalid("it is nested too deep", "Send the tensor's true shape.") from error


def _under_a_key(fields: dict[str, msgspec.Raw], wanted: Wanted) -> tuple[Tensor, ...] | None:
    """Return v2 inputs, or the value of the only input."""
    entries = _entries(fields, "inputs")
    if entries is not None:
        return entries
    key = next((key for key in _LISTS if key in fields), None)
    if key is None or wanted.only is None:
        return None
    if len(fields) > 1:
        raise _invalid(f"it has {_names(fields)} beside {key!r}", "Send the one alone.")
    return (read_value(wanted.only, fields[key]),)


def _entries(fields: dict[str, msgspec.Raw], key: str) -> tuple[Tensor, ...] | None:
    """The tensors of a v2 document; None where there is no list of objects under the key."""
    if key not in fields or not _OBJECTS.match(memoryview(fields[key])):
        return None
    if strange := fields.keys() - {key, "id", "model_name", "model_version"}:
        raise _invalid(
            f"it has {_names(strange)} beside {key!r}",
            "Only the v2 protocol's own routes (/v2/models/...) serve that.",
        )
    try:
        entries = _ENTRIES.decode(fields[key])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(f"{key!r} holds no v2 tensors ({error})", f"Send {FORMS}.") from error
    return tuple(jsontensors.decode(e.name, e.datatype, e.shape, e.data) for e in entries)


def _named(name: str, wanted: Wanted) -> TensorSpec:
    spec = wanted.named(name)
    if spec is None:
        raise _invalid(f"it has {name!r}, which is no input of model '{wanted.model}'", f"It takes {wanted}.")
    return spec


def read_value(spec: TensorSpec, data: bytes | memoryview | msgspec.Raw) -> Tensor:
    """A list of any rank; a lone number or string is one element in as many dims of 1 as are declared."""
    text = memoryview(data)
    opening = _OPENING.match(text)
    assert opening is not None, "the pattern fits anything"
    if spec.open:
        spec = replace(spec, datatype=_datatype_of(text, opening.end()))
    rank = opening[0].count(b"[")
    if rank > MAX_RANK:
        raise _invalid(
            f"{spec.name!r} is nested more than {MAX_RANK} lists deep", "Send the tensor's true shape."
        )
    if rank and len(text) > LARGE_BYTES:
        return _grouped(spec, rank, bytes(text))
    nested = _nested(spec, rank, text)
    if rank:
        return _tensor(spec, nested, rank)
    lone = _tensor(spec, [nested], 1)
    shape = (1,) * len(spec.dims)
    return Tensor(spec.name, spec.datatype, shape, lone.array.reshape(shape))


def _datatype_of(text: memoryview, first: int) -> DataType:
    """The datatype of values for which none is declared: the one that PyTorch would take for them."""
    match bytes(text[first : first + 1]):
        case b'"':
            return DataType.BYTES
        case b"t" | b"f":
            return DataType.BOOL
    is_whole = first < len(text) and text[first] != ord("]") and _FRACTION.search(text) is None
    return DataType.INT64 if is_whole else DataType.FP32


def _grouped(spec: TensorSpec, rank: int, text: bytes) -> Tensor:
    """Read a long list group by group: no call holds the interpreter for longer than one group takes."""
    parts: list[Array] = []
    try:
        for group in groups(text):
            is_one = len(group) > 4 * GROUP_BYTES and rank > 1
            part = (
                _lone(spec, rank, group)
                if is_one
                else _tensor(spec, _nested(spec, rank, memoryview(group)), rank)
            )
            parts.append(part.array)
    except Unbalanced as error:
        raise _invalid(f"it is no valid JSON ({error})", "Correct it.") from error
    kept = [part for part in parts if part.shape[0]] or parts[:1]
    if len({part.shape[1:] for part in kept}) > 1:
        raise _invalid(
            f"{spec.name!r} is ragged (its lists have different lengths)", "Send lists of equal length."
        )
    array = np.concatenate(kept)
    return Tensor(spec.name, spec.datatype, array.shape, array)


def _lone(spec: TensorSpec, rank: int, group: bytes) -> Tensor:
    """Read a group whose only element is a long list of its own."""
    inner = _grouped(spec, rank - 1, group[1:-1].strip(b" \t\r\n"))
    return Tensor(spec.name, spec.datatype, (1, *inner.shape), inner.array[None])


def _nested(spec: TensorSpec, rank: int, text: memoryview) -> Any:
    form = _form(spec.datatype, rank)
    if form is None:
        raise _invalid(f"{spec.name!r} is {spec.datatype.wire}, which JSON cannot carry", "Send safetensors.")
    try:
        try:
            return form.decode(text)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return msgspec.convert(_parsed(text, frameless(error)), form.type)
    except msgspec.ValidationError as error:
        raise _invalid(
            f"{spec.name!r} takes {spec.datatype.wire}, and a value is none ({error})", "Correct it."
        ) from error
    except UnicodeEncodeError as error:
        raise _half_pair(spec) from error


@lru_cache(maxsize=256)
def _form(datatype: DataType, rank: int) -> "msgspec.json.Decoder[Any] | None":
    """A decoder for lists of this rank; None for BF16, whose bits no JSON has."""
    kind: Any
    match datatype.dtype.kind:
        case _ if datatype is DataType.BF16:
            return None
        case "O":
            kind = str
        case "b":
            kind = bool
        case "f":
            kind = float
        case "u":
            # msgspec takes no bound beyond 64 signed bits: the upper one of UINT64 is left to numpy.
            most = None if datatype is DataType.UINT64 else 2 ** (8 * datatype.itemsize) - 1
            kind = Annotated[int, msgspec.Meta(ge=0, le=most)]
        case _:
            half = 2 ** (8 * datatype.itemsize - 1)
            kind = Annotated[int, msgspec.Meta(ge=-half, le=half - 1)]
    for _ in range(rank):
        kind = list[kind]
    return msgspec.json.Decoder(kind)


def _tensor(spec: TensorSpec, nested: list[Any], rank: int) -> Tensor:
    """Numpy finds out the shape, and whether it is one."""
    try:
        with np.errstate(over="ignore"):  # a number beyond FP32 becomes infinity, as in the v2 protocol
            array: Array = np.array(nested, spec.datatype.dtype)
        if array.ndim != rank:
            raise ValueError("its lists have different lengths")
        if spec.datatype is DataType.BYTES:
            array = object_array([text.encode() for text in array.ravel().tolist()], array.shape)
    except OverflowError as error:
        raise _invalid(f"{spec.name!r} has a number beyond {spec.datatype.wire}", "Correct it.") from error
    except UnicodeEncodeError as error:
        raise _half_pair(spec) from error
    except ValueError as error:
        raise _invalid(f"{spec.name!r} is ragged ({error})", "Send lists of equal length.") from error
    return Tensor(spec.name, spec.datatype, array.shape, array)


def _parsed(text: bytes | memoryview, first: Exception) -> Any:
    """Parsed by Python's own parser, which knows the bare words; of a long text it would keep all others waiting.
    `first` is what the fast parser said.
    """
    if len(text) > LONGEST_WITH_WORDS:
        hint = (
            "Correct it. Bare words, such as NaN, are read in shorter ones alone: send such tensors as npz."
        )
        raise _invalid(f"it is no valid JSON ({first})", hint)
    try:
        return json.loads(bytes(text).decode())
    except (ValueError, RecursionError) as error:
        raise _invalid(f"it is no valid JSON ({first})", "Correct it.") from error


def _half_pair(spec: TensorSpec) -> ServeError:
    return _invalid(f"{spec.name!r} has half of a surrogate pair", "Send UTF-8.")


def _names(fields: Any) -> str:
    return ", ".join(sorted(map(repr, fields)))


def _invalid(found: str, hint: str) -> ServeError:
    return ServeError(Code.INVALID, f"The JSON of the body cannot be made tensors: {found}. {hint}")


def moment(seconds: float) -> str:
    """Return a time of the Unix epoch, with milliseconds, as DJL and TorchServe write it."""
    at = datetime.fromtimestamp(seconds, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def indented(document: object) -> bytes:
    """Return JSON over several lines, as DJL and TorchServe write it, with a line end behind it."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
