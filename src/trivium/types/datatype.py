"""The element types of tensors, by the names of the Open Inference Protocol v2.

BYTES elements are Python `bytes` in arrays of dtype object. BF16, which numpy lacks, travels as its raw
bits in `uint16`; nothing in the core computes with it.
"""

from enum import Enum

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]


class DataType(Enum):
    """One v2 datatype; the value is its wire name ("FP32").

    `dtype` is the numpy dtype of an array that holds it (little-endian), `itemsize` its bytes on the wire
    (0 for BYTES, whose elements carry their own length).
    """

    BOOL = "BOOL", "?"
    UINT8 = "UINT8", "u1"
    UINT16 = "UINT16", "<u2"
    UINT32 = "UINT32", "<u4"
    UINT64 = "UINT64", "<u8"
    INT8 = "INT8", "i1"
    INT16 = "INT16", "<i2"
    INT32 = "INT32", "<i4"
    INT64 = "INT64", "<i8"
    FP16 = "FP16", "<f2"
    FP32 = "FP32", "<f4"
    FP64 = "FP64", "<f8"
    BF16 = "BF16", "<u2"
    BYTES = "BYTES", "O"

    dtype: np.dtype[np.generic]
    itemsize: int
    wire: str

    def __new__(cls, wire: str, code: str) -> "DataType":
        member = object.__new__(cls)
        member._value_ = wire
        member.wire = wire
        member.dtype = np.dtype(code)
        member.itemsize = 0 if code == "O" else member.dtype.itemsize
        return member


BY_NAME: dict[str, DataType] = {member.wire: member for member in DataType}
_BY_DTYPE: dict[np.dtype[np.generic], DataType] = {
    member.dtype: member for member in DataType if member is not DataType.BF16
}


def of_array(array: Array) -> DataType | None:
    """The datatype an array of this dtype holds, None where v2 has none (complex, datetime).

    Text (dtypes S and U) and objects count as BYTES; `uint16` is UINT16, never BF16.
    """
    if array.dtype.kind in "SUO":
        return DataType.BYTES
    return _BY_DTYPE.get(array.dtype.newbyteorder("<") if array.dtype.byteorder == ">" else array.dtype)
