"""Reads the names, shapes and datatypes of the arrays in a parameter file of MXNet, without MXNet.

The file is what `mx.nd.save` writes: a mark, the arrays one behind the other, then their names. Every count and size is
held against what is left of the file. Pure.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_MARK = 0x112
_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
_DJL = b"DJL@"
_DENSE = 0
_MOST_ARRAYS, _MOST_DIMS, _MOST_NAME = 2**20, 32, 4096
_ITEM_BYTES: Mapping[int, int] = {
    **{0: 4, 1: 8, 2: 2, 3: 1, 4: 4, 5: 1, 6: 8, 7: 1},
    **{8: 2, 9: 2, 10: 4, 11: 8, 12: 2},
}
"""MXNet's numbers of datatypes -> bytes of an element."""
_PREFIXES = ("arg:", "aux:")


class ParamsFault(Exception):
    """Says what is wrong with a parameter file, as a part of a sentence."""


@dataclass(frozen=True, slots=True)
class ParamsArray:
    """One array of a file: its shape, and MXNet's number of its datatype."""

    shape: tuple[int, ...]
    datatype: int

    @property
    def size(self) -> int:
        """Return its bytes."""
        return math.prod(self.shape) * _ITEM_BYTES[self.datatype]


def read_params(data: bytes | memoryview) -> Mapping[str, ParamsArray]:
    """Return the arrays of a file by the names of their variables. Raises ParamsFault."""
    if bytes(data[:4]) == _DJL:
        raise ParamsFault(
            "DJL trained it for a Block written in Java, which does not run here: export a symbol and its parameters "
            "from MXNet"
        )
    reader = _Reader(data)
    if len(data) < 24 or reader.number("<Q") != _MARK:
        raise ParamsFault("it does not begin as mx.nd.save writes it")
    reader.number("<Q")
    arrays = [_array(reader) for _ in range(reader.count(_MOST_ARRAYS, 4, "arrays"))]
    names = [_name(reader) for _ in range(reader.count(_MOST_ARRAYS, 8, "names"))]
    if len(names) != len(arrays):
        raise ParamsFault(f"it has {len(arrays)} arrays and {len(names)} names")
    if reader.left:
        raise ParamsFault(f"{reader.left} bytes are left behind its names")
    found = dict(zip(names, arrays, strict=True))
    if len(found) != len(names):
        raise ParamsFault("two of its arrays have one name")
    return found


def _array(reader: "_Reader") -> ParamsArray:
    """Read past one array. Of the oldest form the first number is that of its dims, which have 4 bytes each."""
    mark = reader.number("<I")
    if mark in (_V2, _V3) and (kind := reader.number("<i")) != _DENSE:
        raise ParamsFault(
            f"an array is sparse (storage {kind}), which is not served: save it by tostype('default')"
        )
    if mark in (_V1, _V2, _V3):
        shape = _dims(reader, reader.number("<i"), "q")
    else:
        shape = _dims(reader, mark, "I")
    is_nothing = not shape if mark != _V3 else any(one < 0 for one in shape)
    if is_nothing:
        return ParamsArray(shape, 0)
    if any(one < 0 for one in shape):
        raise ParamsFault(f"an array has the shape {list(shape)}")
    reader.skip(8, "an array's device")
    datatype = reader.number("<i")
    if datatype not in _ITEM_BYTES:
        raise ParamsFault(f"an array has the datatype {datatype}, which MXNet does not have")
    array = ParamsArray(shape, datatype)
    reader.skip(array.size, f"an array of shape {list(shape)}")
    return array


def _dims(reader: "_Reader", count: int, letter: str) -> tuple[int, ...]:
    if not 0 <= count <= _MOST_DIMS:
        raise ParamsFault(f"an array has {count} dims; expected at most {_MOST_DIMS}")
    return reader.numbers(f"<{count}{letter}")


def _name(reader: "_Reader") -> str:
    data = reader.take(reader.count(_MOST_NAME, 1, "letters of a name"), "a name")
    try:
        name = bytes(data).decode()
    except UnicodeDecodeError as error:
        raise ParamsFault(f"a name is no UTF-8: {bytes(data[:40])!r}") from error
    return next((name.removeprefix(one) for one in _PREFIXES if name.startswith(one)), name)


class _Reader:
    """Goes through the bytes of a file, and never past their end."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def skip(self, size: int, what: str) -> None:
        if size > self.left:
            raise ParamsFault(f"it ends within {what}: {size} bytes are due, and {self.left} left")
        self._at += size

    def take(self, size: int, what: str) -> bytes | memoryview:
        began = self._at
        self.skip(size, what)
        return self._data[began : self._at]

    def numbers(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form), "a number"))

    def number(self, form: str) -> int:
        return self.numbers(form)[0]

    def count(self, most: int, least_bytes: int, what: str) -> int:
        """Read how many things follow; each has so many bytes at least."""
        count = self.number("<Q")
        if count > min(most, self.left // least_bytes):
            raise ParamsFault(f"it says to have {count} {what}, and {self.left} bytes are left")
        return count


def total_bytes(arrays: Sequence[ParamsArray]) -> int:
    """Return the bytes of all arrays."""
    return sum(one.size for one in arrays)
