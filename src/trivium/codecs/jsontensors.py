"""The `data` of a tensor in JSON: flat or nested arrays, row-major, in; one flat array out.

Source: the Open Inference Protocol v2 (spec sheet `triton`, section 4.3). Flat data is decoded and checked
in one typed pass. What that pass refuses (nesting, the bare words NaN and Infinity, a number beyond the
floats, a fault) is parsed again untyped: slower, and only there are faults put into words. What is large is read and
written in slices, since one call for all of it would keep the whole process waiting.
"""

import json
import re
from collections.abc import Iterable, Iterator
from math import prod
from typing import Annotated, Any

import msgspec
import numpy as np

from trivium.codecs import binary, data_reasons
from trivium.codecs.elements import encode as pack_elements
from trivium.codecs.elements import object_array
from trivium.codecs.json_slices import SLICE_BYTES, flat_slices
from trivium.codecs.shapes import element_count
from trivium.types import reasons
from trivium.types.datatype import Array, DataType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.payload import NOT_MADE, PackedTensor, Tensor

MAX_DEPTH = 100
"""Arrays within arrays, the flat form being 1 deep."""

_AT_ONCE = 2**14
"""Elements that one call writes."""

_MAX_UINT64 = 2**64 - 1
_FAULTY_INDEX = re.compile(r"\$\[(\d+)\]")


class _Form:
    """The form of one datatype's elements in JSON, in a type for msgspec and in words."""

    def __init__(self, element: Any, expected: str) -> None:
        self.flat = list[element]
        self.decoder = msgspec.json.Decoder(self.flat)
        self.expected = expected


def _integers(low: int, high: int) -> _Form:
    # msgspec takes no bound beyond 64 signed bits: the upper one of UINT64 is left to numpy.
    bounds = msgspec.Meta(ge=low, le=high) if high < _MAX_UINT64 else msgspec.Meta(ge=low)
    return _Form(Annotated[int, bounds], f"an integer from {low} to {high}")


_FLOATS = _Form(float, "a number")

_FORMS: dict[DataType, _Form] = {
    DataType.BOOL: _Form(bool, "true or false"),
    DataType.UINT8: _integers(0, 2**8 - 1),
    DataType.UINT16: _integers(0, 2**16 - 1),
    DataType.UINT32: _integers(0, 2**32 - 1),
    DataType.UINT64: _integers(0, _MAX_UINT64),
    DataType.INT8: _integers(-(2**7), 2**7 - 1),
    DataType.INT16: _integers(-(2**15), 2**15 - 1),
    DataType.INT32: _integers(-(2**31), 2**31 - 1),
    DataType.INT64: _integers(-(2**63), 2**63 - 1),
    DataType.FP32: _FLOATS,
    DataType.FP64: _FLOATS,
    DataType.BYTES: _Form(str, "a string"),
}


def decode(name: str, datatype: DataType, shape: tuple[int, ...], data: msgspec.Raw) -> Tensor:
    """The tensor whose elements `data` lists, strings as UTF-8. A number beyond FP32 becomes infinity.

    INVALID for an impossible shape, another number of elements, an element that does not fit the datatype
    (named by its index; integers never wrap), nesting beyond `MAX_DEPTH`, and FP16 and BF16.
    """
    count = element_count(name, shape)
    form = _FORMS.get(datatype)
    if form is None:
        raise _not_in_json(
            name, datatype, ErrorInfo.of(data_reasons.NOT_IN_JSON, input=name, datatype=datatype.wire)
        )
    if len(data) > SLICE_BYTES:
        return _decode_slices(name, datatype, shape, bytes(data))
    elements = _elements(name, datatype, form, data)
    if len(elements) != count:
        raise _miscounted(name, datatype, shape, len(elements))
    return Tensor(name, datatype, shape, _array(name, datatype, elements).reshape(shape))


def encode(tensor: Tensor) -> bytes:
    """The JSON text of the tensor's elements, flat; an FP32 as its double value, NaN and Infinity bare.

    INVALID, with the hint, for FP16, BF16 and for BYTES that are not UTF-8.
    """
    return b"".join(encode_in_pieces(tensor))


def is_large(tensor: Tensor) -> bool:
    """Return True if it takes so long to write the tensor as JSON that nobody else should wait for it."""
    if type(tensor) is PackedTensor:
        return tensor.size > SLICE_BYTES
    return prod(tensor.shape) > _AT_ONCE or (
        tensor.datatype is DataType.BYTES and sum(map(len, tensor.array.ravel().tolist())) > SLICE_BYTES
    )


def encode_in_pieces(tensor: Tensor) -> Iterator[bytes]:
    """Yield the text of `encode` in pieces, each made when it is asked for."""
    form = _FORMS.get(tensor.datatype)
    if form is None:
        raise _not_in_json(
            tensor.name, tensor.datatype, ErrorInfo.of(data_reasons.UNSENDABLE, datatype=tensor.datatype.wire)
        )
    begin = 0
    for elements in _lists(tensor):
        if tensor.datatype is DataType.BYTES:
            text = msgspec.json.encode(_texts(tensor.name, elements, begin))
        else:
            text = msgspec.json.encode(elements)
            if form is _FLOATS and b"n" in text:  # msgspec writes NaN and the infinities as null
                text = json.dumps(elements, separators=(",", ":")).encode()
        yield (b"," if begin else b"[") + text[1:-1]
        begin += len(elements)
    yield b"]" if begin else b"[]"


def _lists(tensor: Tensor) -> Iterator[list[Any]]:
    if tensor.datatype is DataType.BYTES:
        yield from binary.string_lists(tensor)
        return
    flat = tensor.array.reshape(-1)
    for begin in range(0, flat.size, _AT_ONCE):
        yield flat[begin : begin + _AT_ONCE].tolist()


def _decode_slices(name: str, datatype: DataType, shape: tuple[int, ...], text: bytes) -> Tensor:
    """`decode` of a large text, which is known to be JSON."""
    if text[:1] != b"[":
        raise _no_list(name, text[:37].decode(errors="replace") + "...")
    form, count = _FORMS[datatype], 0
    arrays: list[Array] = []
    blobs: list[bytes] = []
    for part in flat_slices(text, datatype is DataType.BYTES):
        elements = _elements(name, datatype, form, msgspec.Raw(part), count)
        if datatype is DataType.BYTES:
            blobs.append(pack_elements(name, _encoded(name, elements)))
        else:
            arrays.append(_array(name, datatype, elements, count))
        count += len(elements)
    if count != element_count(name, shape):
        raise _miscounted(name, datatype, shape, count)
    if datatype is DataType.BYTES:
        blob = b"".join(blobs)
        return PackedTensor(name, datatype, shape, NOT_MADE, blob, 0, len(blob))
    return Tensor(name, datatype, shape, np.concatenate(arrays).reshape(shape))


def _elements(name: str, datatype: DataType, form: _Form, data: msgspec.Raw, begin: int = 0) -> list[Any]:
    """Decode a flat or nested array; its first element is element `begin` of the tensor."""
    try:
        return form.decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        elements: list[Any] = []
        _flatten(name, _parse(name, data), 1, elements)
    try:
        return msgspec.convert(elements, form.flat)
    except msgspec.ValidationError as error:
        index = _FAULTY_INDEX.search(str(error))
        assert index is not None, "msgspec names the index of a faulty element"
        raise _unfit(name, datatype, form.expected, int(index[1]), elements, begin) from error
    except UnicodeEncodeError as error:
        raise _half_pair(name) from error


def _parse(name: str, data: msgspec.Raw) -> list[Any]:
    """The data untyped. Python's own parser knows the bare words, and numbers beyond the floats."""
    try:
        try:
            value = msgspec.json.decode(data)
        except msgspec.DecodeError:
            value = json.loads(bytes(data).decode())
    except RecursionError as error:
        raise _too_deep(name) from error
    except ValueError as error:
        raise ServeError(
            Code.INVALID, f"The data of tensor {name!r} is no valid JSON: {error}. Correct it."
        ) from error
    if isinstance(value, list):
        return value
    raise _no_list(name, _shown(value))


def _flatten(name: str, nested: list[Any], depth: int, into: list[Any]) -> None:
    if depth > MAX_DEPTH:
        raise _too_deep(name)
    for element in nested:
        if type(element) is list:
            _flatten(name, element, depth + 1, into)
        else:
            into.append(element)


def _array(name: str, datatype: DataType, elements: list[Any], begin: int = 0) -> Array:
    if datatype is DataType.BYTES:
        return object_array(_encoded(name, elements), (len(elements),))
    if datatype is DataType.FP32:
        with np.errstate(over="ignore"):
            return np.array(elements, datatype.dtype)
    try:
        return np.array(elements, datatype.dtype)
    except OverflowError as error:  # the upper bound of UINT64
        index = next(index for index, element in enumerate(elements) if element > _MAX_UINT64)
        raise _unfit(name, datatype, _FORMS[datatype].expected, index, elements, begin) from error


def _encoded(name: str, elements: Iterable[str]) -> list[bytes]:
    """Python's own parser takes half of a surrogate pair for a character."""
    try:
        return [text.encode() for text in elements]
    except UnicodeEncodeError as error:
        raise _half_pair(name) from error


def _texts(name: str, elements: Iterable[bytes], begin: int) -> list[str]:
    texts: list[str] = []
    for element in elements:
        try:
            texts.append(element.decode())
        except UnicodeDecodeError as error:
            raise ServeError(
                Code.INVALID,
                f"Element {begin + len(texts)} of tensor {name!r} is not UTF-8, so JSON cannot carry it. "
                "Ask for this output with the parameter binary_data set to true.",
            ) from error
    return texts


def _shown(value: object) -> str:
    try:
        text = json.dumps(value)
    except RecursionError:
        return "too deeply nested to be shown"
    return text if len(text) <= 40 else f"{text[:37]}..."


def _no_list(name: str, shown: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"The data of tensor {name!r} is {shown}, expected an array. Put the elements into brackets.",
        info=ErrorInfo.of(data_reasons.NO_LIST),
    )


def _miscounted(name: str, datatype: DataType, shape: tuple[int, ...], found: int) -> ServeError:
    count = element_count(name, shape)
    return ServeError(
        Code.INVALID,
        f"The data of tensor {name!r} has {found} elements, but its shape {list(shape)} "
        f"makes {count}. Correct the shape or the data.",
        info=_other_count(name, datatype, count, found),
    )


def _unfit(
    name: str, datatype: DataType, expected: str, index: int, elements: list[Any], begin: int
) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"Element {begin + index} of tensor {name!r} (counted from 0, row-major) is {_shown(elements[index])}, "
        f"but {datatype.wire} takes {expected}. Correct the data or the datatype.",
        info=None
        if _is_wide(datatype, elements[index])
        else ErrorInfo.of(data_reasons.ELEMENT, datatype=datatype),
    )


def _is_wide(datatype: DataType, element: object) -> bool:
    """An integer that is only too large for its datatype: other servers cut it, for which there is no word."""
    low, high = (0, 2**64) if datatype.dtype.kind == "u" else (-(2**63), 2**63)
    return type(element) is int and datatype.dtype.kind in "iu" and low <= element < high


def _other_count(name: str, datatype: DataType, expected: int, found: int) -> ErrorInfo:
    if datatype is not DataType.BYTES:
        return ErrorInfo.of(data_reasons.ELEMENT_COUNT, input=name)
    kind = reasons.FEW_STRINGS if found < expected else data_reasons.MANY_STRINGS
    return ErrorInfo.of(kind, input=name, expected=expected, found=found)


def _half_pair(name: str) -> ServeError:
    found = f"the data of tensor {name!r} has half of a surrogate pair, which UTF-8 does not know"
    return ServeError(
        Code.INVALID,
        f"{found[:1].upper()}{found[1:]}. Send whole characters.",
        info=ErrorInfo.of(data_reasons.NO_JSON, found=found),
    )


def _too_deep(name: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"The data of tensor {name!r} is nested more than {MAX_DEPTH} arrays deep. "
        "Send it flat, row-major; the shape says the rest.",
    )


def _not_in_json(name: str, datatype: DataType, facts: ErrorInfo) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"Tensor {name!r} is {datatype.wire}, which JSON cannot carry. Use the binary tensor data extension: "
        "binary_data_size for an input, binary_data set to true for an output.",
        info=facts,
    )
