"""Tensors of a gRPC request whose values are in its `contents`, in a field per kind of number.

Source: spec sheet `triton`, sections 5.2 and 5.3. Values are never rounded, wrapped or cut: one that the
datatype cannot hold is refused with its index. FP16 and BF16 have no field, they come as raw bytes only.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from trivium.codecs import data_reasons, elements
from trivium.codecs.shapes import element_count
from trivium.types import reasons
from trivium.types.datatype import Array, DataType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.payload import NOT_MADE, STRINGS_AT_ONCE, PackedTensor, Tensor
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.service_messages import TensorContents

FIELDS: Mapping[DataType, str] = {
    DataType.BOOL: "bool_contents",
    DataType.INT8: "int_contents",
    DataType.INT16: "int_contents",
    DataType.INT32: "int_contents",
    DataType.INT64: "int64_contents",
    DataType.UINT8: "uint_contents",
    DataType.UINT16: "uint_contents",
    DataType.UINT32: "uint_contents",
    DataType.UINT64: "uint64_contents",
    DataType.FP32: "fp32_contents",
    DataType.FP64: "fp64_contents",
    DataType.BYTES: "bytes_contents",
}
"""Datatype -> the field that its values are in."""

_NARROW = frozenset({DataType.INT8, DataType.INT16, DataType.UINT8, DataType.UINT16})


def decode(name: str, datatype: DataType, shape: tuple[int, ...], contents: TensorContents) -> Tensor:
    """The tensor of these contents. INVALID where they are in another field than the datatype's, are not as many
    as the shape says, or hold what the datatype cannot.
    """
    count = element_count(name, shape)
    field = FIELDS.get(datatype)
    if field is None:
        raise ServeError(
            Code.INVALID,
            f"Input {name!r} is {datatype.wire}, for which the message has no contents. Send it in raw_input_contents.",
            info=_misplaced(name, datatype, next((each.name for each, _ in contents.ListFields()), "")),
        )
    for descriptor, _ in contents.ListFields():
        if descriptor.name != field:
            raise ServeError(
                Code.INVALID,
                f"Input {name!r} is {datatype.wire} and has values in {descriptor.name}; those of {datatype.wire} "
                f"belong in {field}. Correct the datatype, or the field.",
                info=_misplaced(name, datatype, descriptor.name),
            )
    values: Sequence[object] = getattr(contents, field)
    if len(values) != count:
        raise ServeError(
            Code.INVALID,
            f"Input {name!r} of shape {list(shape)} takes {count} values, but {field} has {len(values)}. Correct the "
            "shape or the contents.",
            info=_other_count(name, datatype, count, len(values)),
        )
    if datatype is DataType.BYTES:
        if count <= STRINGS_AT_ONCE:
            texts = cast(list[bytes], list(values))
            return Tensor(name, datatype, shape, elements.object_array(texts, shape))
        parts = _parts(values, count)
        blob = b"".join([elements.encode(name, cast(list[bytes], part)) for part in parts])
        return PackedTensor(name, datatype, shape, NOT_MADE, blob, 0, len(blob))
    return Tensor(name, datatype, shape, _numbers(name, datatype, values).reshape(shape))


def _parts(values: Sequence[object], count: int) -> Iterator[Sequence[object]]:
    """Yield them some thousands at a time: one call for all keeps the whole process waiting."""
    for begin in range(0, count, STRINGS_AT_ONCE):
        yield values[begin : begin + STRINGS_AT_ONCE]


def _misplaced(name: str, datatype: DataType, field: str) -> ErrorInfo:
    return ErrorInfo.of(request_reasons.WRONG_CONTENTS, input=name, datatype=datatype.wire, found=field)


def _other_count(name: str, datatype: DataType, expected: int, found: int) -> ErrorInfo:
    if datatype is DataType.BYTES:
        kind = reasons.FEW_STRINGS if found < expected else data_reasons.MANY_STRINGS
        return ErrorInfo.of(kind, input=name, expected=expected, found=found)
    size = datatype.itemsize
    return ErrorInfo.of(reasons.BYTE_SIZE, input=name, expected=expected * size, found=found * size)


def _numbers(name: str, datatype: DataType, values: Sequence[object]) -> Array:
    kind = np.dtype(np.int64) if datatype in _NARROW else datatype.dtype
    wide: Any = np.empty(len(values), kind)
    begin = 0
    for part in _parts(values, len(values)):
        wide[begin : begin + len(part)] = np.fromiter(cast(Sequence[float], part), kind, len(part))
        begin += len(part)
    if datatype not in _NARROW:
        return cast(Array, wide)
    limits = np.iinfo(datatype.dtype)  # type: ignore[type-var]
    outside = np.flatnonzero((wide < limits.min) | (wide > limits.max))
    if outside.size:
        index = int(outside[0])
        raise ServeError(
            Code.INVALID,
            f"Value {index} of input {name!r} is {wide[index]}; {datatype.wire} holds {limits.min} to {limits.max}. "
            "Send it as a wider datatype, if the model takes one.",
        )
    return cast(Array, wide.astype(datatype.dtype))
