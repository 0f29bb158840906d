"""The screen of a server once it has loaded: a table where it fits, else a block for each model."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from trivium.cli.screen import models_screen
from trivium.types.datatype import DataType
from trivium.types.operations import Listing, VersionStatus
from trivium.types.spec import Batching, ModelSpec, TensorSpec
from trivium.types.state import VersionState

LONG = "a-name-of-a-model-that-takes-more-room-than-there-is"
SPECS = [
    ModelSpec(
        name,
        "3",
        Path("/m"),
        "onnx",
        "model.onnx",
        inputs=(
            TensorSpec("x", DataType.FP32, (-1, 3, 224, 224)),
            TensorSpec("mask", DataType.BOOL, (7,), optional=True),
        ),
        outputs=(TensorSpec("y", DataType.FP32, (10,)),),
        batching=Batching(batch_axis=True),
    )
    for name in ("digits", LONG)
]


def shown(width: int, specs: list[ModelSpec]) -> str:
    rows = [VersionStatus(spec.name, spec.version, VersionState.READY, "") for spec in specs]
    rows.append(VersionStatus("bad", "1", VersionState.FAILED, "it is damaged"))
    console = Console(file=io.StringIO(), width=width)
    for line in models_screen(Listing(tuple(rows)), specs, console):
        console.print(line, markup=False, soft_wrap=isinstance(line, Text))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 200])
def test_no_name_and_no_shape_is_broken(width: int) -> None:
    lines = shown(width, SPECS).splitlines()
    for words in (
        LONG,
        "digits",
        "x FP32[-1,-1,3,224,224]",
        "mask BOOL[-1,7]",
        "y FP32[-1,10]",
        "failed",
    ):
        assert any(words in line for line in lines), (words, lines)


def test_a_table_where_it_fits() -> None:
    assert "┃ model" in shown(100, SPECS[:1])
    assert "┃ model" in shown(150, SPECS)
    assert "┃ model" not in shown(80, SPECS)


def test_else_a_block_for_each_model() -> None:
    assert shown(40, SPECS[:1]).splitlines() == [
        "digits version 3: ready",
        "  engine  onnx",
        "  input   x FP32[-1,-1,3,224,224]",
        "  input   mask BOOL[-1,7]",
        "  output  y FP32[-1,10]",
        "bad version 1: failed",
    ]


def test_of_a_table_of_many_columns_the_first_are_shown() -> None:
    columns = tuple(TensorSpec(f"c{number}", DataType.FP32, (1,)) for number in range(40))
    lines = shown(40, [replace(SPECS[0], inputs=columns)]).splitlines()
    inputs = [line for line in lines if line.startswith("  input")]
    assert len(inputs) == 13
    assert inputs[-1] == "  input   and 28 more: `trivium check --all` lists them"
    assert "  output  y FP32[-1,10]" in lines
