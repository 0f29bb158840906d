"""Checks the sequence batcher of a config.pbtxt (sheet "triton", sections 3.1 and 7.7). Pure."""

from collections.abc import Iterator, Mapping, Sequence

from trivium.servers.triton.words.config_text import ConfigText
from trivium.servers.triton.words.datatypes import datatype_of
from trivium.types.datatype import DataType
from trivium.types.findings import Change, Finding
from trivium.types.schedules import Signal
from trivium.wires.v2.model_config import ControlMessage
from trivium.wires.v2.schema import ENUMS

_KINDS = ENUMS["ModelSequenceBatching.Control.Kind"]
_WORDS = {
    "CONTROL_SEQUENCE_START": Signal.START,
    "CONTROL_SEQUENCE_READY": Signal.READY,
    "CONTROL_SEQUENCE_END": Signal.END,
    "CONTROL_SEQUENCE_CORRID": Signal.ID,
}
SIGNALS: Mapping[int, Signal] = {_KINDS[word]: signal for word, signal in _WORDS.items()}
"""What each kind of control tells."""

ID_TYPES = (DataType.UINT64, DataType.INT64, DataType.UINT32, DataType.INT32, DataType.BYTES)
MOST_CANDIDATES = 100_000
_PAIRS = ("int32_false_true", "fp32_false_true", "bool_false_true")


def check_sequences(text: ConfigText) -> Iterator[Finding]:
    """ControlMessage inputs that mean something, and sizes that can be."""
    if not text.config.HasField("sequence_batching"):
        return
    batching = text.config.sequence_batching
    seen: set[Signal] = set()
    names = {tensor.name for tensor in text.config.input}
    for i, block in enumerate(batching.control_input):
        key = f"sequence_batching.control_input[{i}]"
        if block.name in names:
            hint = "Rename one: clients send inputs, the server adds control inputs."
            yield text.fault(f"{key}.name", f"a second input named {block.name}", "names that differ", hint)
        names.add(block.name)
        if len(block.control) > 1:
            hint = "Give each control an input of its own."
            yield text.fault(f"{key}.control", f"{len(block.control)} controls in one input", "one", hint)
        for j, control in enumerate(block.control):
            signal = SIGNALS[control.kind]
            where = f"{key}.control[{j}]"
            if signal in seen:
                kind = list(_KINDS)[control.kind]
                yield text.fault(f"{where}.kind", f"{kind} a second time", "each kind once", "Remove one.")
            seen.add(signal)
            yield from _values(text, where, control, signal)
    yield from _sizes(text)
    yield from _states(text, names)


def _states(text: ConfigText, names: set[str]) -> Iterator[Finding]:
    """Check the states. `names` are those of the other inputs."""
    given: set[str] = set()
    for i, state in enumerate(text.config.sequence_batching.state):
        key = f"sequence_batching.state[{i}]"
        if state.input_name in names:
            hint = "Rename one: clients send inputs, the server adds those of states."
            yield text.fault(
                f"{key}.input_name", f"a second input named {state.input_name}", "names that differ", hint
            )
        if state.output_name in given:
            hint = "Give each state an output of its own."
            yield text.fault(
                f"{key}.output_name", f"two states from {state.output_name}", "names that differ", hint
            )
        names.add(state.input_name)
        given.add(state.output_name)
        if len(state.initial_state) > 1:
            found = f"{len(state.initial_state)} initial states of {state.input_name}"
            yield text.fault(f"{key}.initial_state", found, "one at most", "Keep one.")
        for j, first in enumerate(state.initial_state):
            place = f"{key}.initial_state[{j}]"
            if first.data_type != state.data_type:
                typed = list(ENUMS["DataType"])[state.data_type]
                hint, change = f"Write {typed}, the data type of the state.", Change(value=typed)
                yield text.fault(f"{place}.data_type", "another data type", "that of the state", hint, change)
            if min(first.dims, default=1) < 1 or not _fits(first.dims, state.dims):
                found, expected = str(list(first.dims)), f"{list(state.dims)}, every size known"
                mends = () if -1 in state.dims else (Change(value=str(list(state.dims))),)
                yield text.fault(f"{place}.dims", found, expected, "Write the shape of the data.", *mends)


def _fits(dims: Sequence[int], wanted: Sequence[int]) -> bool:
    return len(dims) == len(wanted) and all(w in (-1, s) for s, w in zip(dims, wanted, strict=True))


def _values(text: ConfigText, where: str, control: ControlMessage, signal: Signal) -> Iterator[Finding]:
    pairs = {name: len(getattr(control, name)) for name in _PAIRS if len(getattr(control, name))}
    if signal is Signal.ID:
        types = ", ".join("TYPE_STRING" if t is DataType.BYTES else f"TYPE_{t.wire}" for t in ID_TYPES)
        if not control.data_type or datatype_of(control.data_type) not in ID_TYPES:
            hint = "Write data_type: TYPE_UINT64."
            yield text.fault(f"{where}.data_type", "no type for an id", f"one of {types}", hint)
        if pairs:
            hint = "Remove it: the value is the sequence's id."
            yield text.fault(f"{where}.{next(iter(pairs))}", "values for an id", "data_type alone", hint)
        return
    if list(pairs.values()) != [2]:
        hint = "Write int32_false_true: [ 0, 1 ]."
        found = f"{sum(pairs.values())} values in {', '.join(pairs or _PAIRS)}"
        yield text.fault(where, found, "one pair: what stands for false, what for true", hint)


def _sizes(text: ConfigText) -> Iterator[Finding]:
    batching, rows = text.config.sequence_batching, text.config.max_batch_size
    if not 0 <= batching.direct.minimum_slot_utilization <= 1:
        found = f"{batching.direct.minimum_slot_utilization:g}"
        key = "sequence_batching.direct.minimum_slot_utilization"
        yield text.fault(key, found, "a part of the slots, from 0 to 1", "Write 0.5 for half of them.")
    for i, preferred in enumerate(batching.oldest.preferred_batch_size):
        if not 1 <= preferred <= max(rows, 1):
            found = f"the preferred size {preferred}, with max_batch_size {rows}"
            key = f"sequence_batching.oldest.preferred_batch_size[{i}]"
            yield text.fault(key, found, "1 up to max_batch_size", "Lower it, or raise max_batch_size.")
    if not 0 <= batching.oldest.max_candidate_sequences <= MOST_CANDIDATES:
        found = f"{batching.oldest.max_candidate_sequences} sequences at a time"
        key = "sequence_batching.oldest.max_candidate_sequences"
        yield text.fault(key, found, f"0 (as many as rows) to {MOST_CANDIDATES}", "Correct the number.")
