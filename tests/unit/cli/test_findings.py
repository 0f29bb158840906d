"""What `trivium check` prints: everything, at 80 columns, without colour where nobody can see it."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from trivium.cli.findings import print_check
from trivium.types.datatype import DataType
from trivium.types.findings import Finding, Severity
from trivium.types.spec import Dynamic as Scheduling
from trivium.types.spec import (
    InstanceGroup,
    InvalidModel,
    ModelSpec,
    Origin,
    QueuePolicy,
    Specific,
    TensorSpec,
)

LONG = "/models/" + "a-very-long-folder-name/" * 6 + "config.pbtxt"
NOTICE = Finding(
    Severity.NOTICE, LONG, 12, "response_cache.enable", "not supported: every request is computed"
)
ERROR = Finding(Severity.ERROR, LONG, 7, "input[0].dims", "the text 'a'", "an integer", "Write dims: 1.")

SPEC = ModelSpec(
    name="digits",
    version="3",
    root=Path("/models/digits/3"),
    engine="onnx",
    entry="model.onnx",
    inputs=(TensorSpec("x", DataType.FP32, ()),),
    scheduling=Scheduling(level_policies={2: QueuePolicy(timeout=0.5)}),
    groups=(InstanceGroup("digits"),),
    version_policy=Specific(frozenset({"3"})),
    parameters={"p" * 40: "[bold]not markup[/bold]"},
    origin={
        "inputs[0].dims": Origin(LONG, "input[0].dims", 7),
        "engine": Origin("the file's suffix", ""),
        "scheduling": Origin("default", "dynamic_batching"),
    },
    reports=(NOTICE,),
)
BROKEN = InvalidModel("broken", Path(LONG).parent, (ERROR,))


def printed(specs: list[ModelSpec], unreadable: list[InvalidModel], width: int = 80) -> tuple[str, bool]:
    console = Console(file=io.StringIO(), width=width)
    served = print_check(console, specs, unreadable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue(), served


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("width", [40, 80, 200])
def test_nothing_is_cut_off_and_no_line_is_too_long(width: int) -> None:
    text, _ = printed([SPEC], [BROKEN], width)
    assert "\x1b" not in text
    assert "\u2026" not in text
    assert max(map(len, text.splitlines())) <= width
    for words in (
        f"read from {LONG}",
        f"{LONG}:12",
        f"{LONG}:7",
        NOTICE.found,
        f"model broken in {BROKEN.root}",
    ):
        assert squeezed(words) in squeezed(text)


def test_every_value_with_its_origin() -> None:
    rows = [line.split() for line in printed([SPEC], [], 200)[0].splitlines()]
    assert ["inputs[0].dims", "[]", "config.pbtxt:7", "(input[0].dims)"] in rows
    assert ["inputs[0].datatype", "FP32", "default"] in rows
    assert ["engine", "onnx", "the", "file's", "suffix"] in rows
    assert ["scheduling.max_delay", "0.0", "default", "(dynamic_batching)"] in rows
    assert ["version_policy", "specific", "versions", "[3]", "default"] in rows
    assert ["groups[0].device", "cpu", "default"] in rows
    assert [f"parameters[{'p' * 40}]", "[bold]not", "markup[/bold]", "default"] in rows
    policy = next(row for row in rows if row[:1] == ["scheduling.level_policies[2]"])
    assert policy[1:8] == ["on_expiry", "reject,", "timeout", "0.5,", "may_shorten", "no", "default"]


def test_a_fault_says_where_what_and_how() -> None:
    text, _ = printed([], [BROKEN], 400)
    assert [line.strip().split(None, 1) for line in text.splitlines()] == [
        ["cannot", f"be served: model broken in {BROKEN.root}"],
        ["error", f"{LONG}:7"],
        ["key", "input[0].dims"],
        ["found", "the text 'a'"],
        ["expected", "an integer"],
        ["hint", "Write dims: 1."],
    ]


def test_true_if_all_can_be_served() -> None:
    assert printed([SPEC], [])[1]
    assert not printed([SPEC], [BROKEN])[1]
    assert not printed([ModelSpec("m", "1", Path(), "onnx", "m", reports=(ERROR,))], [])[1]
