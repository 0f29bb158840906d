"""What sequence batchers and ensembles must not say, at which key, and how a valid one is read."""

import pytest

from trivium.servers.triton.words.checks import check
from trivium.servers.triton.words.reader import read_config
from trivium.types.findings import Severity


def control(body, name="START"):
    return f'sequence_batching {{ control_input {{ name: "{name}" control {{ {body} }} }} }}'


TWICE = "".join(
    f'control_input {{ name: "{name}" control {{ kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] }} }}'
    for name in ("a", "b")
)


def ensemble(version, outputs='key: "b" value: "B"'):
    maps = f'input_map {{ key: "a" value: "A" }} output_map {{ {outputs} }}'
    return f'ensemble_scheduling {{ step {{ model_name: "m" {version} {maps} }} }}'


def states(*blocks):
    return f"sequence_batching {{ {' '.join(f'state {{ {block} }}' for block in blocks)} }}"


STATE = 'input_name: "i" output_name: "o" data_type: TYPE_FP32 dims: [ 2, -1 ]'
FIRST = 'initial_state { name: "f" data_type: TYPE_FP32 dims: [ 2, 3 ] zero_data: true }'
TO_ONE_PLACE = 'key: "b" value: "B" } output_map { key: "c" value: "B"'
FAULTS = [
    (
        control("kind: CONTROL_SEQUENCE_START int32_false_true: [ 0 ]"),
        "control_input[0].control[0]",
        "one pair",
    ),
    (control("kind: CONTROL_SEQUENCE_START"), "control_input[0].control[0]", "one pair"),
    (
        control("kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] fp32_false_true: [ 0, 1 ]"),
        "control_input[0].control[0]",
        "one pair",
    ),
    (control("kind: CONTROL_SEQUENCE_CORRID"), "control[0].data_type", "TYPE_UINT64"),
    (control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32"), "control[0].data_type", "TYPE_STRING"),
    (
        control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32 bool_false_true: [ false, true ]"),
        "control[0].bool_false_true",
        "data_type alone",
    ),
    (
        control("kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ]", "x"),
        "control_input[0].name",
        "differ",
    ),
    (f"sequence_batching {{ {TWICE} }}", "control_input[1].control[0].kind", "each kind once"),
    (
        "sequence_batching { direct { minimum_slot_utilization: 1.5 } }",
        "minimum_slot_utilization",
        "from 0 to 1",
    ),
    ("sequence_batching { oldest { preferred_batch_size: 9 } }", "preferred_batch_size[0]", "max_batch_size"),
    ("sequence_batching { oldest { max_candidate_sequences: -1 } }", "max_candidate_sequences", "0 (as many"),
    (states(STATE.replace('"i"', '"x"')), "state[0].input_name", "differ"),
    (states(STATE, STATE.replace('"i"', '"j"')), "state[1].output_name", "differ"),
    (states(f"{STATE} {FIRST} {FIRST}"), "state[0].initial_state", "one at most"),
    (states(f"{STATE} {FIRST.replace('FP32', 'INT8')}"), "initial_state[0].data_type", "that of the state"),
    (states(f"{STATE} {FIRST.replace('2, 3', '2, -1')}"), "initial_state[0].dims", "every size known"),
    (states(f"{STATE} {FIRST.replace('2, 3', '3, 3')}"), "initial_state[0].dims", "[2, -1]"),
    (ensemble("model_version: -2"), "step[0].model_version", "-1"),
    (
        ensemble("model_version: -1", TO_ONE_PLACE),
        "step[0].output_map",
        "names that differ",
    ),
    (
        ensemble("model_version: -1") + " instance_group { count: 2 }",
        "instance_group",
        "no instances of its own",
    ),
]
HEAD = 'max_batch_size: 8 input { name: "x" data_type: TYPE_FP32 dims: 2 }\n'


@pytest.mark.parametrize(("text", "key", "expected"), FAULTS)
def test_is_refused_at_its_key(text: str, key: str, expected: str) -> None:
    findings = check(read_config("config.pbtxt", (HEAD + text).encode()), 0)
    errors = [each for each in findings if each.severity is Severity.ERROR]
    assert len(errors) == 1, errors
    (error,) = errors
    assert error.key.endswith(key)
    assert expected in error.expected
    assert error.line == 2
    assert error.hint


def test_a_step_without_a_version_is_told_what_that_means() -> None:
    (notice,) = check(read_config("config.pbtxt", (HEAD + ensemble("")).encode()), 0)
    assert notice.severity is Severity.NOTICE
    assert "version 0, not the latest" in notice.found
