"""Acceptance C: mutants of every served key, generated from the message descriptor, are all named.

Misspelt and of a wrong type at each place where the key stands in a rich valid file; dropped where the sheet
(sections 2.5 and 3.2) requires it. A mutant counts as named if an error gives the file, the line where the
fault was put (dropped: the line of the enclosing block), its key, an expectation and a hint.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from tests.harness.triton_configs import BATCHES, GPUS, OTHER_POLICIES, RICH

from trivium.servers.triton.words.checks import check
from trivium.servers.triton.words.keys import ROWS
from trivium.servers.triton.words.reader import read_config
from trivium.settings.setting import Support
from trivium.types.findings import Severity
from trivium.wires.v2.descriptor import new_config

FILE = "repository/rich/config.pbtxt"
FILES = (RICH, BATCHES, *OTHER_POLICIES)

REQUIRED = {
    "input.name", "input.data_type", "input.dims",
    "output.name", "output.data_type", "output.dims",
    "version_policy.latest", "version_policy.latest.num_versions", "version_policy.specific.versions",
    "dynamic_batching.default_priority_level", "dynamic_batching.priority_queue_policy.key",
    "dynamic_batching.priority_queue_policy.value",
    "parameters.key", "parameters.value",
    "model_warmup.inputs", "model_warmup.inputs.key", "model_warmup.inputs.value",
    "model_warmup.inputs.value.data_type", "model_warmup.inputs.value.dims",
    "model_warmup.inputs.value.zero_data", "model_warmup.inputs.value.random_data",
    "model_warmup.inputs.value.input_data_file",
    "sequence_batching.control_input.name", "sequence_batching.control_input.control",
    "sequence_batching.control_input.control.int32_false_true",
    "sequence_batching.control_input.control.fp32_false_true",
    "sequence_batching.control_input.control.bool_false_true",
    "sequence_batching.control_input.control.data_type",
    "ensemble_scheduling.step.model_name", "ensemble_scheduling.step.input_map",
    "ensemble_scheduling.step.input_map.key", "ensemble_scheduling.step.input_map.value",
    "ensemble_scheduling.step.output_map", "ensemble_scheduling.step.output_map.key",
    "ensemble_scheduling.step.output_map.value",
    "optimization.execution_accelerators.gpu_execution_accelerator.name",
    "optimization.execution_accelerators.cpu_execution_accelerator.name",
    "batch_input.target_name", "batch_input.data_type", "batch_input.source_input",
    "batch_output.target_name", "batch_output.source_input",
}  # fmt: skip
"""What the sheet requires, written down here apart from the code under test. In files that hold it, a chosen
member of a required choice counts as required.
"""

_INTS = {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64}
_UINTS = {FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64}
_WRONG = {
    FieldDescriptor.CPPTYPE_STRING: ("5", "bare_word", "true", "{ }", "-1.5"),
    FieldDescriptor.CPPTYPE_FLOAT: ('"0.5"', "half", "true", "{ }"),
    FieldDescriptor.CPPTYPE_DOUBLE: ('"0.5"', "half", "true", "{ }"),
    FieldDescriptor.CPPTYPE_BOOL: ('"true"', "yes", "7", "{ }", "1.0"),
    FieldDescriptor.CPPTYPE_ENUM: ('"TYPE_FP32"', "TYPE_FP33", "4711", "1.5", "{ }"),
    FieldDescriptor.CPPTYPE_MESSAGE: ('"text"', "5", "true"),
}


def wrong_values(field: FieldDescriptor) -> tuple[str, ...]:
    if field.cpp_type in _INTS:
        return ('"4"', "four", "1.5", "{ }", "9" * 20)
    if field.cpp_type in _UINTS:
        return ('"4"', "four", "1.5", "{ }", "9" * 21, "-1")
    return _WRONG[field.cpp_type]


@dataclass(frozen=True)
class Place:
    """Where a key stands: offsets of its name and its end, its line, and the line of the block around it."""

    path: str
    field: FieldDescriptor
    siblings: frozenset[str]
    start: int
    end: int
    line: int
    block_line: int


def served_fields(descriptor: Descriptor, path: str = "") -> Iterator[str]:
    """Dotted paths of every key that is used or passed on, keys and values of maps included."""
    type_ = descriptor.full_name.removeprefix("inference.")
    is_entry = descriptor.GetOptions().map_entry
    for field in descriptor.fields:
        if is_entry or ROWS[f"{type_}.{field.name}"].support in (Support.YES, Support.PASSED_ON):
            inner = f"{path}{field.name}"
            yield inner
            if field.message_type:
                yield from served_fields(field.message_type, f"{inner}.")


def places(text: str) -> Iterator[Place]:
    """Every key in the file, by a plain scan of its braces: independent of the reader under test."""
    stack = [("", new_config().DESCRIPTOR, 1)]
    opened: list[tuple[str, FieldDescriptor, frozenset[str], int, int, int]] = []
    pending = None
    for match in re.finditer(r'#.*|"[^"]*"|[A-Za-z_]\w*(?=\s*[:{\[])|[{}]', text):
        token, line = match.group(), text.count("\n", 0, match.start()) + 1
        path, descriptor, block_line = stack[-1]
        if token == "{":
            assert pending is not None
            field = pending[1]
            stack.append((f"{pending[0]}.", field.message_type, line))
            opened.append(pending)
        elif token == "}":
            stack.pop()
            name, field, siblings, start, at, around = opened.pop()
            yield Place(name, field, siblings, start, match.end(), at, around)
            pending = (name, field, siblings, start, at, around)
        elif token[0] not in '#"':
            field = descriptor.fields_by_name[token]
            siblings = frozenset(descriptor.fields_by_name)
            pending = (f"{path}{token}", field, siblings, match.start(), line, block_line)
            if field.message_type is None:
                end = text.index("\n", match.start())
                yield Place(pending[0], field, siblings, match.start(), end, line, block_line)


def misspellings(name: str) -> set[str]:
    """One letter lost or swapped with the next, at every place, or the first one made a capital."""
    lost = {name[:i] + name[i + 1 :] for i in range(len(name))}
    swapped = {name[:i] + name[i + 1] + name[i] + name[i + 2 :] for i in range(len(name) - 1)}
    return {each for each in lost | swapped | {name.capitalize()} if each and each != name}


@dataclass(frozen=True)
class Mutant:
    what: str
    text: str
    line: int
    key: str


def mutants(text: str) -> Iterator[Mutant]:
    served = set(served_fields(new_config().DESCRIPTOR))
    for place in places(text):
        if place.path not in served:
            continue
        before, body, after = text[: place.start], text[place.start : place.end], text[place.end :]
        name = place.field.name
        for bad in sorted(misspellings(name) - place.siblings):
            yield Mutant("misspelt", before + bad + body[len(name) :] + after, place.line, bad)
        for value in wrong_values(place.field):
            yield Mutant("wrong type", f"{before}{name}: {value}{after}", place.line, name)
        if place.path in REQUIRED:
            blanked = "".join(letter for letter in body if letter == "\n")
            yield Mutant("dropped", before + blanked + after, place.block_line, name)


def is_named(mutant: Mutant) -> bool:
    return any(
        finding.severity is Severity.ERROR
        and finding.file == FILE
        and finding.line == mutant.line
        and finding.expected
        and finding.hint
        and (mutant.key in finding.key.replace("[", ".").split(".") or mutant.key in finding.found)
        for finding in check(read_config(FILE, mutant.text.encode()), GPUS)
    )


@pytest.mark.parametrize("text", FILES)
def test_the_files_themselves_have_no_error(text: str) -> None:
    findings = check(read_config(FILE, text.encode()), GPUS)
    assert [str(finding) for finding in findings if finding.severity is Severity.ERROR] == []


def test_every_served_key_is_in_the_files() -> None:
    there = {place.path for text in FILES for place in places(text)}
    assert set(served_fields(new_config().DESCRIPTOR)) - there == _NOT_SERVED_INSIDE
    assert there >= REQUIRED


_NOT_SERVED_INSIDE = {
    "model_operations", "model_repository_agents",
    "optimization.input_pinned_memory", "optimization.output_pinned_memory",
}  # fmt: skip
"""Blocks that are looked into, but in which every key is refused or reported."""


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 16])
def test_every_mutant_is_named(step: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Every one in the long run; in the short one, every sixteenth."""
    made = [mutant for text in FILES for mutant in mutants(text)][::step]
    missed = [mutant for mutant in made if not is_named(mutant)]
    counts = {
        what: sum(mutant.what == what for mutant in made) for what in ("misspelt", "wrong type", "dropped")
    }
    with capsys.disabled():
        print(f"\nmutants of config.pbtxt: {len(made)} ({counts}), not named: {len(missed)}")
    assert [(mutant.what, mutant.key, mutant.line) for mutant in missed] == []
    assert all(counts.values())
