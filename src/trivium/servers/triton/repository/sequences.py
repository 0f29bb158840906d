"""The sequence batcher of a completed configuration -> the spec's words, and where each value was found."""

from collections.abc import Container, Iterator
from pathlib import Path

from trivium.servers.triton.words.backends import Backend
from trivium.servers.triton.words.config_text import ConfigText
from trivium.servers.triton.words.datatypes import datatype_of
from trivium.servers.triton.words.sequences import SIGNALS
from trivium.types.datatype import DataType
from trivium.types.findings import Finding
from trivium.types.schedules import Control, Sequence, Signal, State, Strategy
from trivium.types.warmups import SyntheticFill, WarmupInput
from trivium.wires.v2.model_config import ControlInput, ModelConfigMessage
from trivium.wires.v2.model_config import StateMessage as StateBlock

_BLOCK = "sequence_batching"


_TAKE_CONTROLS = ("python-triton", "onnx")


def check(text: ConfigText, backend: Backend) -> Iterator[Finding]:
    """Can the backend's engine be given control inputs?"""
    for i, block in enumerate(text.config.sequence_batching.control_input):
        key = f"{_BLOCK}.control_input[{i}]"
        if backend.engine_name not in _TAKE_CONTROLS:
            hint = "Remove it, or serve the model with the backend python."
            found = f"the control input {block.name} with the backend {backend.name}"
            yield text.fault(key, found, "the backend python or onnxruntime", hint)
        elif backend.engine_name == "onnx" and _control(block).datatype is DataType.BYTES:
            hint = "Use numbers, or serve the model with the backend python."
            yield text.fault(
                f"{key}.control[0].data_type", "ids as text in an ONNX model", "TYPE_UINT64", hint
            )


def check_more(text: ConfigText, backend: Backend) -> Iterator[Finding]:
    """Can the backend's engine be given states, and ask for a request again?"""
    batching = text.config.sequence_batching
    if len(batching.state) and backend.engine_name not in _TAKE_CONTROLS:
        hint = "Keep the state in the model, or serve it with the backend python."
        found = f"states with the backend {backend.name}"
        yield text.fault(f"{_BLOCK}.state[0]", found, "the backend python or onnxruntime", hint)
    for i, state in enumerate(batching.state):
        if backend.engine_name == "onnx" and datatype_of(state.data_type) is DataType.BYTES:
            hint = "Serve the model with the backend python."
            yield text.fault(f"{_BLOCK}.state[{i}].data_type", "text in an ONNX model", "numbers", hint)
    if batching.iterative_sequence and backend.engine_name != "python-triton":
        hint = "Remove it: this backend cannot ask for a request to be run again."
        found = f"iterative sequences with the backend {backend.name}"
        yield text.fault(f"{_BLOCK}.iterative_sequence", found, "the backend python", hint)


def in_order(config: ModelConfigMessage) -> bool:
    """Do answers leave in the order of their requests?"""
    return config.dynamic_batching.preserve_ordering or config.sequence_batching.oldest.preserve_ordering


def sequence(config: ModelConfigMessage, folder: Path) -> Sequence:
    """Direct where nothing else is said. No number of candidates means as many as a batch has rows. Files with initial
    states lie in the model's folder, in `initial_state`.
    """
    block = config.sequence_batching
    idle_seconds = block.max_sequence_idle_microseconds / 1e6
    told = tuple(map(_control, block.control_input))
    rows = config.max_batch_size or 1
    shown = {tensor.name for tensor in config.output}
    states = tuple(_state(state, folder / "initial_state", shown) for state in block.state)
    if block.HasField("oldest"):
        oldest = block.oldest
        return Sequence(
            Strategy.OLDEST,
            idle_seconds,
            oldest.max_candidate_sequences or rows,
            told,
            max_delay=oldest.max_queue_delay_microseconds / 1e6,
            preferred_rows=tuple(oldest.preferred_batch_size),
            states=states,
            is_iterative=block.iterative_sequence,
        )
    direct = block.direct
    return Sequence(
        Strategy.DIRECT,
        idle_seconds,
        rows,
        told,
        max_delay=direct.max_queue_delay_microseconds / 1e6,
        utilization=direct.minimum_slot_utilization,
        states=states,
        is_iterative=block.iterative_sequence,
    )


def _state(block: StateBlock, folder: Path, shown: Container[str]) -> State:
    """Return a state; without an initial one it begins with zeros, and with one element where its size may be any."""
    datatype = datatype_of(block.data_type)
    dims = tuple(block.dims)
    first = WarmupInput(block.input_name, datatype, tuple(max(size, 1) for size in dims), SyntheticFill.ZERO)
    for said in block.initial_state:
        path = folder / said.data_file if said.WhichOneof("state_data") == "data_file" else None
        fill = SyntheticFill.ZERO if path is None else SyntheticFill.FILE
        first = WarmupInput(block.input_name, datatype, tuple(said.dims), fill, path)
    return State(block.output_name, datatype, dims, first, block.output_name in shown)


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


def fields(config: ModelConfigMessage) -> Iterator[tuple[str, str]]:
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
    for i in range(len(config.sequence_batching.state)):
        yield f"scheduling.states[{i}]", f"{_BLOCK}.state[{i}]"
    yield "scheduling.is_iterative", f"{_BLOCK}.iterative_sequence"
    if is_oldest:
        yield "in_order", f"{strategy}.preserve_ordering"
