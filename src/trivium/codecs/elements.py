"""BYTES elements and their wire form: each is its length in 4 bytes, little-endian, then its bytes.

Source: the binary tensor data extension of the Open Inference Protocol v2 (spec sheet `triton`, section
4.6). Decides nothing about shapes; nothing is allocated by a length or a count that the blob cannot hold.
"""

from collections.abc import Iterable
from struct import Struct, error

import numpy as np

from trivium.codecs import data_reasons
from trivium.types.datatype import Array
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError

_LENGTH = Struct("<I")
_PREFIX = _LENGTH.size


def object_array(elements: list[bytes], shape: tuple[int, ...]) -> Array:
    """An array of dtype object that holds these elements, row-major; their number must be the shape's."""
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array.reshape(shape)


def decode(name: str, blob: bytes | memoryview, count: int) -> list[bytes]:
    """The `count` elements of a blob, copied out of it. INVALID if it holds fewer, or bytes are left over."""
    elements: list[bytes] = []
    _walk(name, memoryview(blob), count, elements)
    return elements


def check(name: str, blob: memoryview, count: int, only_size: bool = False) -> None:
    """Raise the INVALID of `decode`, without copying anything; with `only_size` no element is looked at."""
    _check_size(name, len(blob), count)
    if not only_size:
        _walk(name, blob, count, None)


def _check_size(name: str, size: int, count: int) -> None:
    if count * _PREFIX > size:
        found = ErrorInfo.of(data_reasons.CUT_LENGTH, input=name, found=size % _PREFIX)
        raise _misfit(name, count, f"its {size} bytes cannot hold as many lengths of {_PREFIX} bytes", found)


def _walk(name: str, view: memoryview, count: int, into: list[bytes] | None) -> None:
    size = len(view)
    _check_size(name, size, count)
    read, at = _LENGTH.unpack_from, 0
    for index in range(count):
        start = at + _PREFIX
        if start > size:
            told = f"its {size} bytes end before the length of element {index}"
            cut = ErrorInfo.of(data_reasons.CUT_LENGTH, input=name, found=size - start + _PREFIX)
            raise _misfit(name, count, told, cut)
        at = start + read(view, start - _PREFIX)[0]
        if at > size:
            told = f"element {index} claims {at - start} bytes and {size - start} follow"
            cut = ErrorInfo.of(data_reasons.CUT_STRING, input=name, expected=at - start, found=size - start)
            raise _misfit(name, count, told, cut)
        if into is not None:
            into.append(view[start:at].tobytes())
    if at != size:
        more = ErrorInfo.of(data_reasons.MANY_STRINGS, input=name, expected=count, found=count + 1)
        raise _misfit(name, count, f"{size - at} bytes are left over behind them", more)


def encode(name: str, elements: Iterable[bytes]) -> bytes:
    """The blob of these elements. MODEL_FAILED for one whose length does not fit into 4 bytes."""
    pieces: list[bytes] = []
    for element in elements:
        try:
            pieces.append(_LENGTH.pack(len(element)))
        except error as cause:
            raise ServeError(
                Code.MODEL_FAILED,
                f"Tensor {name!r} has an element of {len(element)} bytes; the v2 binary form can hold "
                "4294967295 at most. Let the model return it in pieces.",
            ) from cause
        pieces.append(element)
    return b"".join(pieces)


def _misfit(name: str, count: int, found: str, facts: ErrorInfo) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"The binary data of BYTES tensor {name!r} is not the {count} elements of its shape: {found}. "
        "Send each element as its length in 4 little-endian bytes, then its bytes.",
        info=facts,
    )
