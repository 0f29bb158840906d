"""A named tensor as user code sees it: numpy on one side, bytes as the wire has them on the other.

What came in is looked at when `as_numpy` asks for it. User code may write into the array and keep it: where it is large
it is the memory that the request was received into, which nobody else has until it is gone
(`trivium_worker.wire.loans`). Datatypes and texts are those of sheet "triton", sections 8.3 and 8.4.
"""

from typing import Any

import numpy as np

from c_python_backend_utils import dlpack
from c_python_backend_utils.backend import BACKEND
from c_python_backend_utils.errors import TritonModelException
from c_python_backend_utils.names import as_text
from trivium_worker.wire.values import NUMPY_TYPES
from trivium_worker.wire.values import Tensor as WireTensor

NUMBERS = {
    "BOOL": 1,
    "UINT8": 2,
    "UINT16": 3,
    "UINT32": 4,
    "UINT64": 5,
    "INT8": 6,
    "INT16": 7,
    "INT32": 8,
    "INT64": 9,
    "FP16": 10,
    "FP32": 11,
    "FP64": 12,
    "BYTES": 13,
    "BF16": 14,
}
"""v2 datatype -> number in the configuration's enumeration."""

_DTYPES: "dict[str, Any]" = {name: np.dtype(code) for name, code in NUMPY_TYPES.items() if name != "BF16"}
_DATATYPES: "dict[Any, str]" = {**{dtype: name for name, dtype in _DTYPES.items()}, np.dtype(object): "BYTES"}

_ndarray: Any = np.ndarray

COPIED = 2**16
"""Bytes up to which the data of an output is copied: as cheap as a view, and user code may use its array again."""


class Tensor:
    """Made by user code from a numpy array, which is not copied but where it is not contiguous, or of text."""

    __slots__ = ("_array", "_datatype", "_name", "_wire")

    def __init__(self, name: Any, numpy_array: Any) -> None:
        if not isinstance(name, str):
            name = as_text(name)
        if not isinstance(name, str) or not isinstance(numpy_array, _ndarray):
            kinds = f"{type(name).__name__}, {type(numpy_array).__name__}"
            raise TypeError(f"Tensor(name, numpy_array): got ({kinds}); expected (str, numpy.ndarray)")
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        datatype = _DATATYPES.get(numpy_array.dtype)
        if datatype is None:
            datatype, numpy_array = _usual(name, numpy_array)
        self._name = name
        self._datatype = datatype
        self._array: Any = numpy_array
        self._wire: Any = WireTensor.of_array(name, numpy_array) if datatype == "BYTES" else None

    def name(self) -> str:
        """Its name."""
        return self._name

    def as_numpy(self) -> Any:
        """Return a writable numpy array; of text one of `bytes` objects. TritonModelException for BF16, unknown to
        numpy.
        """
        array = self._array
        if array is None:
            wire = self._wire
            dtype = _DTYPES.get(wire.datatype)
            array = _unlike_numbers(wire) if dtype is None else _own_array(wire, dtype)
            self._array = array
        elif not array.flags.carray:  # contiguous and writable
            array = self._array = array.copy(order="C")
        return array

    def triton_dtype(self) -> int:
        """The number of its datatype."""
        return NUMBERS[self._datatype]

    def shape(self) -> list[int]:
        """Its sizes, with the batch dimension where the model has one."""
        return list(self._wire.shape if self._array is None else self._array.shape)

    def is_cpu(self) -> bool:
        """Always: tensors come and go in the computer's own memory."""
        return True

    def to_dlpack(self) -> Any:
        """A DLPack capsule that shares the memory of `as_numpy`. TritonModelException for text."""
        if self._datatype == "BYTES":
            raise TritonModelException("DLPack does not have support for string tensors.")
        if self._datatype == "BF16":
            bits: Any = _ndarray(self._wire.shape, "<u2", bytearray(self._wire.data))
            return dlpack.export_bf16(bits)
        return dlpack.export(self.as_numpy())

    @staticmethod
    def from_dlpack(name: str, tensor: Any) -> "Tensor":
        """A tensor that shares the memory of another library's, or of a capsule. TritonModelException where that
        is on a GPU, not contiguous, or of a type that v2 lacks.
        """
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        array, is_bf16 = dlpack.adopt(tensor)
        if is_bf16:
            return ReceivedTensor(WireTensor(name, "BF16", array.shape, array.tobytes()))
        return Tensor(name, array)

    def __dlpack__(self, stream: Any = None) -> Any:
        """Return the capsule for `from_dlpack` of other libraries."""
        return self.to_dlpack()

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU."""
        return dlpack.CPU, 0

    def on_wire(self) -> WireTensor:
        """Return the tensor as it goes to the server. What is long views the array."""
        wire: WireTensor | None = self._wire
        if wire is None:
            array = self._array
            data = array.tobytes() if array.nbytes <= COPIED else _viewed(array)
            wire = WireTensor(self._name, self._datatype, array.shape, data)
        return wire


class ReceivedTensor(Tensor):
    """Made from what came over the wire: an input, or an output of another model."""

    __slots__ = ()

    def __init__(self, wire: WireTensor) -> None:
        self._name = wire.name
        self._datatype = wire.datatype
        self._wire = wire
        self._array = None


ReceivedTensor.__name__ = ReceivedTensor.__qualname__ = "Tensor"  # which it is for user code


def _usual(name: str, array: Any) -> tuple[str, Any]:
    """Datatype and array of a dtype that is not the machine's own form of one. TritonModelException for others."""
    if array.dtype.kind == "S":
        return "BYTES", array
    native = array.dtype.newbyteorder("<")
    datatype = _DATATYPES.get(native)
    if datatype is None:
        raise _unsupported(name, array)
    return datatype, array.astype(native)


def _unsupported(name: str, array: Any) -> TritonModelException:
    """Return the error of a dtype without a datatype: a handler that catches it finds the original's text, the log and
    the answer of one that does not say more.
    """
    found = f"The tensor '{name}' has the dtype {array.dtype}, for which there is no datatype"
    error = TritonModelException("NumPy dtype is not supported.")
    error.__notes__ = [f"{found}: convert it with astype."]
    return error


def _own_array(wire: WireTensor, dtype: Any) -> Any:
    data = wire.data
    if data.__class__ is memoryview and not data.readonly and not BACKEND.may_come_again:
        array = _ndarray(wire.shape, dtype, data)
        if array.flags.aligned:
            return array
    return _ndarray(wire.shape, dtype, bytearray(data))


def _unlike_numbers(wire: WireTensor) -> Any:
    if wire.datatype == "BYTES":
        return wire.array()
    raise TritonModelException(
        "Tensor dtype is BF16 and cannot be converted to NumPy; use to_dlpack() and from_dlpack() instead."
    )


def _viewed(array: Any) -> memoryview:
    whole = array if array.flags.c_contiguous else array.copy(order="C")
    return memoryview(whole.reshape(-1).view("u1"))
