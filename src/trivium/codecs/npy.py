"""numpy's files: npy, one array, and npz, a zip of them, each with its name. Never a pickle.

Source: the format's description in `numpy.lib.format`, versions 1.0 and 2.0, and the zip archive's. What a
file claims is held against what it has before anything is allocated; unpacked it may take `limit` bytes.
"""

import io
import re
import sys
import zipfile
from ast import literal_eval
from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np
from numpy.lib import format as npy

from trivium.codecs import binary
from trivium.codecs.shapes import element_count
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.payload import STRINGS_AT_ONCE, Tensor, Tensors

MAX_MEMBERS = 1000
_SUFFIX = ".npy"
_KINDS = "biufSU"
"""Kinds of dtype that v2 can have: neither objects, records, subarrays, dates nor complex numbers."""

MAX_HEADER_BYTES = 10_000
_AT_ONCE_BYTES = 2**20
"""Bytes of text that are read in one call."""

_LONG = re.compile(r"(?<=\d)L\b")
"""Python 2 wrote numbers so. numpy's own way to read them takes time that is quadratic in the header."""

_Version = tuple[int, int]
_Header = tuple[tuple[int, ...], bool, np.dtype[np.generic]]
_read_version: Callable[[io.BytesIO], _Version] = npy.read_magic
_read_dtype: Callable[[object], np.dtype[np.generic]] = npy.descr_to_dtype
_LENGTHS: dict[_Version, int] = {(1, 0): 2, (2, 0): 4}
"""Version -> bytes of the header's length."""
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def decode_npy(name: str, data: bytes) -> Tensor:
    """The array of an npy file; text (dtypes S and U) becomes BYTES, U as UTF-8. A view where numpy allows.

    INVALID for anything but a whole file of a dtype that v2 has, which an array of objects has not.
    """
    (shape, in_columns, dtype), offset = _header(name, data)
    if dtype.kind not in _KINDS or not dtype.itemsize:
        raise _refused(name, f"dtype {dtype} has no counterpart in the v2 datatypes")
    rest = len(data) - offset
    if element_count(name, shape) * dtype.itemsize != rest:
        raise _refused(
            name, f"dtype {dtype} and shape {list(shape)} do not make the {rest} bytes of its data"
        )
    _judge_elements(name, dtype, memoryview(data)[offset:])
    array: Array = np.ndarray(shape, dtype, data, offset, order="F" if in_columns else "C")
    try:
        if dtype.kind in "SU":
            return binary.of_strings(name, shape, _texts(array))
        return Tensors.of({name: array}).items[0]
    except (TypeError, ValueError) as error:  # a float of 16 bytes; half of a surrogate pair
        raise _refused(name, f"its elements cannot be tensors ({error})") from error


def encode_npy(tensor: Tensor, limit: int) -> bytes:
    """The tensor as an npy file. npy pads BYTES to the longest: TOO_LARGE if that takes more than `limit`.

    UNSUPPORTED for BF16, which numpy lacks, and for BYTES that end in a zero byte, which numpy would drop.
    """
    if tensor.datatype is DataType.BF16:
        raise _unwritable(tensor.name, "BF16 has no dtype in numpy")
    array = _padded(tensor, limit) if tensor.datatype is DataType.BYTES else tensor.array
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def decode_npz(data: bytes, limit: int) -> tuple[Tensor, ...]:
    """The tensors of an npz file in its order, named by its members.

    TOO_LARGE if they unpack to more than `limit` bytes or are more than `MAX_MEMBERS`; INVALID for a faulty
    archive, another compression than deflate, a member that is no npy, and two of one name.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            _judge(members, limit)
            return tuple(_member(archive, member) for member in members)
    except ServeError:
        raise
    except Exception as error:  # zipfile and zlib promise no closed set of errors on a hostile archive
        raise _refused("npz", f"the archive is damaged ({said_by(error)})") from error


def encode_npz(tensors: Sequence[Tensor], limit: int) -> bytes:
    """The tensors as an uncompressed npz file, `limit` as for `encode_npy`; UNSUPPORTED for a name with a
    zero byte, which a zip archive cannot hold.
    """
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for tensor in tensors:
            if "\0" in tensor.name:
                raise _unwritable(tensor.name, "its name has a zero byte")
            archive.writestr(zipfile.ZipInfo(tensor.name + _SUFFIX), encode_npy(tensor, limit))
    return file.getvalue()


def _header(name: str, data: bytes) -> tuple[_Header, int]:
    file = io.BytesIO(data)
    try:
        version = _read_version(file)
        if version not in _LENGTHS:
            raise ValueError(f"version {version} is not read")
        size = int.from_bytes(file.read(_LENGTHS[version]), "little")
        text = file.read(min(size, MAX_HEADER_BYTES + 1)).decode("latin-1")
        if len(text) != size or size > MAX_HEADER_BYTES:
            raise ValueError(
                f"it is said to have {size} bytes; at most {MAX_HEADER_BYTES} are read, if they are there"
            )
        return _described(literal_eval(_LONG.sub("", text.strip()))), file.tell()
    except Exception as error:  # a literal of Python, evaluated: no closed set of errors either
        raise _refused(name, f"its header cannot be read ({said_by(error)[:300]})") from error


def _described(header: object) -> _Header:
    """Raises whatever comes up in a header that is none."""
    if not isinstance(header, dict) or header.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError("it is no mapping of descr, fortran_order and shape")
    shape, in_columns = header["shape"], header["fortran_order"]
    if not isinstance(shape, tuple) or not all(type(dim) is int for dim in shape):
        raise ValueError("its shape is no tuple of whole numbers")
    if not isinstance(in_columns, bool):
        raise ValueError("its fortran_order is neither True nor False")
    return shape, in_columns, _read_dtype(header["descr"])


def _judge_elements(name: str, dtype: np.dtype[np.generic], raw: memoryview) -> None:
    """Bytes that numpy would take and then stumble over, or compute nonsense with."""
    word, greatest = {"b": ("u1", 1), "U": (f"{dtype.byteorder}u4", sys.maxunicode)}.get(dtype.kind, ("", 0))
    if word and np.frombuffer(raw, word).max(initial=0) > greatest:
        raise _refused(name, "it has a boolean that is neither 0 nor 1, or a character beyond Unicode")


def _judge(members: list[zipfile.ZipInfo], limit: int) -> None:
    size = sum(member.file_size for member in members)
    if size > limit or len(members) > MAX_MEMBERS:
        raise ServeError(
            Code.TOO_LARGE,
            f"The npz archive unpacks to {size} bytes in {len(members)} members; at most {limit} bytes in "
            f"{MAX_MEMBERS} are taken. Send it in parts, or raise the limit.",
        )
    if len({member.filename for member in members}) != len(members):
        raise _refused("npz", "two members have one name")


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Tensor:
    name = member.filename.removesuffix(_SUFFIX)
    if name == member.filename or member.compress_type not in _COMPRESSIONS:
        raise _refused(member.filename, "it is no .npy member, stored or deflated, of an npz archive")
    with archive.open(member) as file:  # which yields `file_size` bytes at most, and checks their sum
        return decode_npy(name, file.read(member.file_size))


def _texts(array: Array) -> Iterator[list[bytes]]:
    """Yield the elements of an array of text, as many at a time as take little time."""
    flat = array.reshape(-1)
    at_once = max(1, min(STRINGS_AT_ONCE, _AT_ONCE_BYTES // array.itemsize))
    for begin in range(0, flat.size, at_once):
        found = flat[begin : begin + at_once].tolist()
        yield found if array.dtype.kind == "S" else [text.encode() for text in found]


def _padded(tensor: Tensor, limit: int) -> Array:
    count = prod(tensor.shape)
    width = max((max(map(len, part)) for part in binary.string_lists(tensor)), default=0)
    if count * width > limit:
        raise ServeError(
            Code.TOO_LARGE,
            f"As npy, the {count} elements of {tensor.name!r} would be padded to {width} bytes each, "
            f"more than {limit} in all. Ask for another form.",
        )
    array = np.empty(count, f"S{max(width, 1)}")
    begin = 0
    for part in binary.string_lists(tensor):
        if any(element.endswith(b"\0") for element in part):
            raise _unwritable(tensor.name, "an element ends in a zero byte, which numpy takes for padding")
        array[begin : begin + len(part)] = part
        begin += len(part)
    return array.reshape(tensor.shape)


def _refused(name: str, found: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"{name!r} is not an npy or npz file that can be served: {found}. "
        "Write it with numpy.save or numpy.savez, without objects.",
    )


def _unwritable(name: str, found: str) -> ServeError:
    return ServeError(
        Code.UNSUPPORTED, f"Tensor {name!r} cannot be written as npy: {found}. Ask for another form."
    )
