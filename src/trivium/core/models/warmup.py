"""The made-up batches that every new instance runs before it takes work."""

import numpy as np

from trivium.core.queueing.reshaping import Reshapes
from trivium.core.schedulers.sequence.controls import Controls
from trivium.core.schedulers.sequence.states import firsts
from trivium.core.synthetic import synthetic_tensor
from trivium.types.operations import Infer, SequenceRef
from trivium.types.payload import Tensor, Tensors
from trivium.types.running import Batch
from trivium.types.schedules import Sequence
from trivium.types.spec import ModelSpec
from trivium.types.warmups import Warmup


def batches(spec: ModelSpec) -> list[Batch]:
    """One batch per run that the spec asks for, in order. LOAD_FAILED where a data file does not fit."""
    return [batch for warmup in spec.warmups for batch in [_batch(spec, warmup)] * warmup.times]


def _batch(spec: ModelSpec, warmup: Warmup) -> Batch:
    about = f"Warm-up '{warmup.name}', input"
    tensors = tuple(synthetic_tensor(item, warmup.rows, about) for item in warmup.inputs)
    tensors = Reshapes(spec).inward(Tensors(tensors)).items
    sequence = None
    if isinstance(spec.scheduling, Sequence):
        sequence = SequenceRef(1, starts=True, ends=True)
        has_axis = warmup.rows > 0
        told = Controls(spec.name, spec.scheduling.controls, has_axis).of(sequence)
        begun = firsts(spec.name, spec.scheduling.states, has_axis)
        tensors += tuple(_repeated(tensor, warmup.rows) for tensor in (*told, *begun))
    payload = Tensors(tensors)
    infer = Infer(model=spec.name, version=spec.version, payload=payload, id=warmup.name, sequence=sequence)
    return Batch([0], [infer], [max(warmup.rows, 1)])


def _repeated(tensor: Tensor, rows: int) -> Tensor:
    if rows <= 1:
        return tensor
    array = np.repeat(tensor.array, rows, axis=0)
    return Tensor(tensor.name, tensor.datatype, array.shape, array)
