"""The sequence batcher of a completed configuration -> the spec's words, and where each value was found."""

from collections.abc import Iterator

from trivium.dialects.triton.backends import Backend
from trivium.dialects.triton.config_text import ConfigText
from trivium.dialects.triton.datatypes import datatype_of
from trivium.dialects.triton.model_config import ControlInput, ModelConfig
from trivium.dialects.triton.sequences import SIGNALS
from trivium.types.datatype import DataType
from trivium.types.findings import Finding
from trivium.types.schedules import Control, Sequence, Signal, Strategy

_BLOCK = "sequence_batching"


_TAKE_CONTROLS = ("python-triton", "onnx")


def check(text: ConfigText, backend: Backend) -> Iterator[Finding]:
    """Can the backend's engine be given control inputs?"""
    for i, block in enumerate(text.config.sequence_batching.control_input):
        key = f"{_BLOCK}.control_input[{i}]"
        if backend.engine_name not in _TAKE_CONTROLS:
            mend = "Remove it, or serve the model with the backend python."
            found = f"the control input {block.name} with the backend {backend.name}"
            yield text.fault(key, found, "the backend python or onnxruntime", mend)
        elif backend.engine_name == "onnx" and _control(block).datatype is DataType.BYTES:
            mend = "Use numbers, or serve the model with the backend python."
            yield text.fault(
                f"{key}.control[0].data_type", "ids as text in an ONNX model", "TYPE_UINT64", mend
            )


def sequence(config: ModelConfig) -> Sequence:
    """Direct where nothing else is said. No number of candidates means as many as a batch has rows."""
    block = config.sequence_batching
    idle_seconds = block.max_sequence_idle_microseconds / 1e6
    told = tuple(map(_control, block.control_input))
    rows = config.max_batch_size or 1
    if block.HasField("oldest"):
        oldest = block.oldest
        return Sequence(
            Strategy.OLDEST,
            idle_seconds,
            oldest.max_candidate_sequences or rows,
            told,
            max_delay=oldest.max_queue_delay_microseconds / 1e6,
            preferred_rows=tuple(oldest.preferred_batch_size),
        )
    direct = block.direct
    return Sequence(
        Strategy.DIRECT,
        idle_seconds,
        rows,
        told,
        max_delay=direct.max_queue_delay_microseconds / 1e6,
        utilization=direct.minimum_slot_utilization,
    )


def _control(block: ControlInput) -> Control:
    control = block.control[0]
    signal = SIGNALS[control.kind]
    if signal is Signal.ID:
        datatype = datatype_of(control.data_type)
        return Control(block.name, signal, datatype, b"" if datatype is DataType.BYTES else 0)
    if len(control.int32_false_true):
        return Control(block.name, signal, DataType.INT32, *control.int32_false_true)
    if len(control.fp32_false_true):
        return Control(block.name, signal, DataType.FP32, *control.fp32_false_true)
    return Control(block.name, signal, DataType.BOOL, *control.bool_false_true)


def fields(config: ModelConfig) -> Iterator[tuple[str, str]]:
    """The spec's fields and the keys that give them."""
    is_oldest = config.sequence_batching.HasField("oldest")
    strategy = f"{_BLOCK}.{'oldest' if is_oldest else 'direct'}"
    yield "batching.merge", _BLOCK
    yield "scheduling.strategy", strategy if is_oldest else _BLOCK
    yield "scheduling.idle_seconds", f"{_BLOCK}.max_sequence_idle_microseconds"
    yield "scheduling.candidates", f"{strategy}.max_candidate_sequences" if is_oldest else "max_batch_size"
    yield "scheduling.max_delay", f"{strategy}.max_queue_delay_microseconds"
    if is_oldest:
        yield "scheduling.preferred_rows", f"{strategy}.preferred_batch_size"
    else:
        yield "scheduling.utilization", f"{strategy}.minimum_slot_utilization"
    for i in range(len(config.sequence_batching.control_input)):
        yield f"scheduling.controls[{i}]", f"{_BLOCK}.control_input[{i}]"
