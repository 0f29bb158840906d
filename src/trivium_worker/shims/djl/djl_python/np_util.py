"""Numpy arrays as an NDList, DJL's binary form, and back."""

import io
from typing import Any

from trivium_worker.dialects.djl import ndlist
from trivium_worker.wire.values import Buffer, Tensor

_COMPLEX = "COMPLEX64"
_CODES = {
    "FLOAT16": "f2",
    "FLOAT32": "f4",
    "FLOAT64": "f8",
    "UINT8": "u1",
    "UINT16": "u2",
    "UINT32": "u4",
    "UINT64": "u8",
    "INT8": "i1",
    "INT16": "i2",
    "INT32": "i4",
    "INT64": "i8",
    "BOOL": "?",
    "BOOLEAN": "?",
    _COMPLEX: "c8",
}


def to_nd_list(np_list: Any) -> bytearray:
    """One array, or a list of them, as an NDList. TypeError for dates and others that it has no word for."""
    arrays = np_list if isinstance(np_list, list) else [np_list]
    return ndlist.write([_tensor(array) for array in arrays])


def from_nd_list(encoded: Buffer) -> list[Any]:
    """Return the arrays of an NDList, writable, or of an npz archive. ValueError where it is neither, or has a
    datatype that numpy does not know.
    """
    if len(encoded) >= 4 and bytes(encoded[:2]) == b"PK":
        return from_npz(encoded)
    import numpy

    arrays = []
    for framed in ndlist.read(encoded):
        if framed.word == "STRING":
            arrays.append(numpy.array(framed.texts, dtype=str).reshape(framed.shape))
            continue
        if framed.word not in _CODES:
            raise ValueError(f"numpy has no datatype for the NDList's {framed.word}; send FLOAT32")
        code = numpy.dtype(_CODES[framed.word])
        flat = numpy.frombuffer(framed.data, framed.order + _CODES[framed.word])
        arrays.append(flat.astype(code).reshape(framed.shape))
    return arrays


def from_npz(encoded: Buffer) -> list[Any]:
    """Return the arrays of an npz archive. Pickled objects are a ValueError."""
    import numpy

    archive = numpy.load(io.BytesIO(encoded), allow_pickle=False)
    return [archive[name] for name in archive.files]


def to_npz(arrays: Any) -> bytes:
    """Return one array or a list of them as an npz archive: `arr_0`, `arr_1` and so on."""
    import numpy

    file = io.BytesIO()
    numpy.savez(file, *([arrays] if isinstance(arrays, numpy.ndarray) else arrays))
    return file.getvalue()


def _tensor(array: Any) -> Tensor:
    """The array as a tensor; complex numbers, for which there is no other form, in the list's own."""
    if array.dtype == "c8":
        return Tensor("", _COMPLEX, array.shape, array.astype("<c8").tobytes())
    return Tensor.of_array("", array)
