"""DLPack capsules of tensors in the computer's memory, by numpy; BF16, which numpy does not know, as the raw bits.

The field that names the type lies at a fixed place (dlpack.h, DLManagedTensor), so that 16 raw bits can be
told to be BF16, and the other way round. Tensors on a GPU are refused with a sentence.
"""

import ctypes
from typing import Any

import numpy as np

from c_python_backend_utils.errors import TritonModelException

CPU, CUDA, CUDA_HOST = 1, 2, 3
_UNSIGNED, _BFLOAT = 1, 4


class _Described(ctypes.Structure):
    """The beginning of a DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    ]


_POINTER = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _Lent:
    """The capsule's protocol, as numpy asks for it."""

    def __init__(self, capsule: Any, device: tuple[int, int]) -> None:
        self._capsule = capsule
        self._device = device

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def export(array: Any) -> Any:
    """A capsule that keeps the array alive. TritonModelException where numpy is older than 1.23."""
    if not hasattr(np, "from_dlpack"):
        raise TritonModelException(
            f"DLPack needs numpy 1.23 or newer; this interpreter has numpy {np.__version__}. Update it."
        )
    return (array if array.flags.writeable else array.copy()).__dlpack__()


def export_bf16(bits: Any) -> Any:
    """A capsule of raw bits that says BF16."""
    capsule = export(bits)
    _described(capsule).code = _BFLOAT
    return capsule


def adopt(tensor: Any) -> tuple[Any, bool]:
    """The numpy array that shares the memory of a capsule, or of what has `__dlpack__`; and whether it is the raw
    bits of BF16. TritonModelException for everything else.
    """
    capsule = tensor
    if type(tensor).__name__ != "PyCapsule":
        if not hasattr(tensor, "__dlpack__") or not hasattr(tensor, "__dlpack_device__"):
            raise TritonModelException(
                "Provided tensor is not supported. Tensor must be a DLPack capsule         or have `__dlpack__` and "
                f"`__dlpack_device__` attributes; got {type(tensor).__name__}."
            )
        _check_device(int(tensor.__dlpack_device__()[0]))
        capsule = tensor.__dlpack__(stream=None)
    try:
        described = _described(capsule)
    except ValueError as error:
        raise TritonModelException("The DLPack capsule was used before; make a new one.") from error
    _check_device(described.device_type)
    is_bf16 = described.code == _BFLOAT and described.bits == 16
    if is_bf16:
        described.code = _UNSIGNED
    try:
        array = np.from_dlpack(_Lent(capsule, (CPU, 0)))
    except (AttributeError, BufferError, RuntimeError, TypeError) as error:
        raise TritonModelException(f"The DLPack tensor cannot be used: {error}") from error
    if not array.flags.c_contiguous:
        raise TritonModelException(
            "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported."
        )
    return array, is_bf16


def _described(capsule: Any) -> _Described:
    return _Described.from_address(_POINTER(capsule, b"dltensor"))


def _check_device(kind: int) -> None:
    if kind == CUDA:
        raise TritonModelException(
            "The tensor is on a GPU, and tensors on a GPU are not passed on yet (left to Triton's own issue). "
            "Move it to the CPU first, for example with tensor.cpu()."
        )
    if kind not in (CPU, CUDA_HOST):
        raise TritonModelException(
            f"A DLPack tensor on a device of type {kind}: only those in the CPU's memory are supported."
        )
