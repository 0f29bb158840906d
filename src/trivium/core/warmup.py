"""The made-up batches that every new instance runs before it takes work."""

import numpy as np

from trivium.codecs import binary
from trivium.core.schedulers.controls import Controls
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, SequenceRef
from trivium.types.payload import Tensor, Tensors
from trivium.types.running import Batch
from trivium.types.schedules import Sequence
from trivium.types.spec import Fill, ModelSpec, Warmup, WarmupInput

RANDOM_SEED = 0


def batches(spec: ModelSpec) -> list[Batch]:
    """One batch per run that the spec asks for, in order. LOAD_FAILED where a data file does not fit."""
    return [batch for warmup in spec.warmups for batch in [_batch(spec, warmup)] * warmup.times]


def _batch(spec: ModelSpec, warmup: Warmup) -> Batch:
    tensors = tuple(_tensor(item, warmup.rows, warmup.name) for item in warmup.inputs)
    sequence = None
    if isinstance(spec.scheduling, Sequence):
        sequence = SequenceRef(1, starts=True, ends=True)
        told = Controls(spec.name, spec.scheduling.controls, warmup.rows > 0).of(sequence)
        tensors += tuple(_repeated(tensor, warmup.rows) for tensor in told)
    payload = Tensors(tensors)
    infer = Infer(model=spec.name, version=spec.version, payload=payload, id=warmup.name, sequence=sequence)
    return Batch([0], [infer], [max(warmup.rows, 1)])


def _repeated(tensor: Tensor, rows: int) -> Tensor:
    if rows <= 1:
        return tensor
    return Tensor(tensor.name, tensor.datatype, (rows, 1), np.repeat(tensor.array, rows, axis=0))


def _tensor(item: WarmupInput, rows: int, name: str) -> Tensor:
    shape = (rows, *item.dims) if rows else item.dims
    return Tensor(item.name, item.datatype, shape, _array(item, shape, name))


def _array(item: WarmupInput, shape: tuple[int, ...], name: str) -> Array:
    if item.fill is Fill.FILE:
        return _read(item, shape, name)
    if item.datatype is DataType.BYTES:
        array = np.empty(shape, dtype=object)
        array.fill(b"0")
        return array
    if item.fill is Fill.ZERO:
        return np.zeros(shape, item.datatype.dtype)
    random = np.random.default_rng(RANDOM_SEED)
    if item.datatype.dtype.kind == "f":
        return random.random(shape).astype(item.datatype.dtype)
    return random.integers(0, 2, shape).astype(item.datatype.dtype)


def _read(item: WarmupInput, shape: tuple[int, ...], name: str) -> Array:
    assert item.path is not None
    place = f"Warm-up '{name}', input '{item.name}': {item.path}"
    try:
        data = item.path.read_bytes()
    except OSError as error:
        raise ServeError(Code.LOAD_FAILED, f"{place} cannot be read: {error.strerror}.") from error
    try:
        return binary.decode(item.name, item.datatype, shape, data).array
    except ServeError as error:
        raise ServeError(Code.LOAD_FAILED, f"{place} does not fit: {error.message}") from error
