"""What `trivium check` prints: everything, at 80 columns, without colour where nobody can see it."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from trivium.cli.findings import print_model
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


def printed(
    specs: list[ModelSpec], unreadable: list[InvalidModel], width: int = 80, shows_all: bool = False
) -> tuple[str, bool]:
    console = Console(file=io.StringIO(), width=width)
    served = [print_model(console, model, shows_all) for model in (*specs, *unreadable)]
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue(), all(served)


@pytest.mark.parametrize("shows_all", [False, True])
@pytest.mark.parametrize("width", [30, 40, 80, 120, 200])
def test_nothing_is_cut_off_and_no_key_place_or_name_is_broken(width: int, shows_all: bool) -> None:
    text, _ = printed([SPEC], [BROKEN], width, shows_all)
    assert "\x1b" not in text
    assert "\u2026" not in text
    lines = text.splitlines()
    for words in (
        f"read from {LONG}",
        f"{LONG}:12",
        f"{LONG}:7",
        f"model broken in {BROKEN.root}",
        "input[0].dims",
        "config.pbtxt:7",
        "response_cache.enable",
    ):
        assert any(words in line for line in lines), (words, text)
    assert " ".join(NOTICE.found.split()) in " ".join(text.split())


def test_sentences_keep_to_the_width() -> None:
    finding = Finding(
        Severity.ERROR, "f", 1, "key", "a word or two " * 30, hint="Write dims: [ 1, 2, 3 ]. " * 9
    )
    text, _ = printed([], [InvalidModel("m", Path("/m"), (finding,))], 60)
    assert max(map(len, text.splitlines())) <= 60
    assert text.count("[ 1, 2, 3 ]") == 9


def test_what_is_set_comes_first_in_the_keys_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "config.pbtxt"
    file.write_text('backend: "onnx"\nmax_batch_size: 8\n')
    origin = {
        "batching.batch_axis": Origin(str(file), "max_batch_size", 2),
        "batching.max_rows": Origin(str(file), "max_batch_size", 2),
        "engine": Origin(str(file), "backend", 1),
        "limits.queue_items": Origin("the environment", "QUEUE"),
    }
    spec = ModelSpec("digits", "3", tmp_path, "onnx", "model.onnx", origin=origin, reports=(NOTICE,))
    lines = printed([spec], [], 80)[0].splitlines()
    assert lines[:6] == [
        "model digits, version 3",
        f"  read from {file}",
        "  key             value  from where",
        "  backend         onnx   config.pbtxt:1",
        "  max_batch_size  8      config.pbtxt:2",
        "  QUEUE           1000   the environment",
    ]
    assert lines[6].startswith("  notice ")
    assert lines[-2].endswith("further values hold by default (--all lists them)")


def test_where_a_row_does_not_fit_each_value_has_a_block(tmp_path: Path) -> None:
    origin = {"engine": Origin(str(tmp_path / "serving.properties"), "option.a_key_that_is_long", 12)}
    spec = ModelSpec("m", "1", tmp_path, "onnx", "model.onnx", origin=origin)
    text = printed([spec], [], 40)[0]
    assert (
        "  option.a_key_that_is_long\n    value       onnx\n    from where  serving.properties:12\n" in text
    )


def test_all_lists_every_value_with_its_origin() -> None:
    text = printed([SPEC], [], 200, shows_all=True)[0]
    rows = [line.split() for line in text.splitlines()]
    assert "by default (" not in text
    assert ["inputs[0].dims", "[]", "config.pbtxt:7", "(input[0].dims)"] in rows
    assert ["inputs[0].datatype", "FP32", "default"] in rows
    assert ["engine", "onnx", "the", "file's", "suffix"] in rows
    assert ["scheduling.max_queue_delay_seconds", "0.0", "default", "(dynamic_batching)"] in rows
    assert ["version_policy", "specific", "versions", "[3]", "default"] in rows
    assert ["instances[0].device", "cpu", "default"] in rows
    assert [f"parameters[{'p' * 40}]", "[bold]not", "markup[/bold]", "default"] in rows
    policy = next(row for row in rows if row[:1] == ["scheduling.priority_queue_policy[2]"])
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
