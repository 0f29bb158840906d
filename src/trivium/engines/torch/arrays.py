"""numpy arrays of requests <-> torch tensors, without a copy where that is safe.

A request is read and never written: an array that torch could write to, where the module writes into its inputs,
is copied, as are read-only and unaligned ones. BF16 passes as its bits.
"""

from typing import Any

import numpy as np

from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError

_KINDS = {
    "torch.bool": DataType.BOOL,
    "torch.uint8": DataType.UINT8,
    "torch.uint16": DataType.UINT16,
    "torch.uint32": DataType.UINT32,
    "torch.uint64": DataType.UINT64,
    "torch.int8": DataType.INT8,
    "torch.int16": DataType.INT16,
    "torch.int32": DataType.INT32,
    "torch.int64": DataType.INT64,
    "torch.float16": DataType.FP16,
    "torch.float32": DataType.FP32,
    "torch.float64": DataType.FP64,
    "torch.bfloat16": DataType.BF16,
}


def datatype_of(dtype: Any) -> DataType | None:
    """The v2 datatype of a torch dtype; None for complex and quantised ones."""
    return _KINDS.get(str(dtype))


def to_torch(torch: Any, datatype: DataType, array: Array, is_written: bool, device: Any) -> Any:
    """The array, of that datatype, on the device; on the CPU a view of it unless `is_written`."""
    if is_written or not array.flags.writeable or not array.flags.aligned:
        array = array.copy()
    if datatype is DataType.BF16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).to(device)
    return torch.from_numpy(array).to(device)


def to_array(torch: Any, name: str, found: Any, expected: DataType | None) -> tuple[DataType, Array]:
    """An output as a contiguous array. MODEL_FAILED for one that v2 cannot carry or is not of the type `expected`."""
    datatype = datatype_of(found.dtype)
    if (
        datatype is None
        or found.layout is not torch.strided
        or (expected is not None and datatype is not expected)
    ):
        wanted = expected.wire if expected is not None else "a plain tensor of a v2 datatype"
        raise ServeError(
            Code.MODEL_FAILED,
            f"The model returned output '{name}' as {found.dtype} ({found.layout}), expected {wanted}. Correct the "
            "model, or the datatype that is declared.",
        )
    plain = found.detach().cpu().resolve_neg().contiguous()
    if datatype is DataType.BF16:
        return datatype, plain.view(torch.int16).numpy().view(datatype.dtype)
    return datatype, plain.numpy()
