"""Tensors that no client sent: what a warm-up runs with, and what the state of a sequence begins with."""

import numpy as np

from trivium.codecs import binary
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensor
from trivium.types.warmups import SyntheticFill, WarmupInput

RANDOM_SEED = 0


def synthetic_tensor(item: WarmupInput, rows: int, about: str, text: bytes = b"0") -> Tensor:
    """A tensor of so many rows (0: without a batch dimension); `text` is each element of one of BYTES. LOAD_FAILED,
    which begins with `about`, where its file does not fit. Blocking.
    """
    shape = (rows, *item.dims) if rows else item.dims
    return Tensor(item.name, item.datatype, shape, _array(item, shape, about, text))


def _array(item: WarmupInput, shape: tuple[int, ...], about: str, text: bytes) -> Array:
    if item.fill is SyntheticFill.FILE:
        return _read(item, shape, about)
    if item.datatype is DataType.BYTES:
        array = np.empty(shape, dtype=object)
        array.fill(text)
        return array
    if item.fill is SyntheticFill.ZERO:
        return np.zeros(shape, item.datatype.dtype)
    random = np.random.default_rng(RANDOM_SEED)
    if item.datatype.dtype.kind == "f":
        return random.random(shape).astype(item.datatype.dtype)
    return random.integers(0, 2, shape).astype(item.datatype.dtype)


def _read(item: WarmupInput, shape: tuple[int, ...], about: str) -> Array:
    assert item.path is not None
    place = f"{about} '{item.name}': {item.path}"
    try:
        data = item.path.read_bytes()
    except OSError as error:
        raise ServeError(Code.LOAD_FAILED, f"{place} cannot be read: {error.strerror}.") from error
    try:
        return binary.decode(item.name, item.datatype, shape, data).array
    except ServeError as error:
        raise ServeError(Code.LOAD_FAILED, f"{place} does not fit: {error.message}") from error
