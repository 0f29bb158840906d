"""`torch.compile` in handlers: what is not compiled and why, what is kept over a restart, and warm batch sizes."""

import importlib
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.harness.torchserve_child import TorchServeChildHarness, body, stage

__all__ = ["stage"]

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
NET = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []
    def forward(self, x, *more):
        self.seen.append([x.shape[0], *(list(one.shape) for one in more), str(x.dtype)])
        if x.shape[-1] != 3:
            raise ValueError("three, please")
        return x
"""
OWN = """
import torch
from ts.torch_handler.base_handler import BaseHandler
class Own(BaseHandler):
    def preprocess(self, data):
        return torch.tensor([row["body"] for row in data])
    def postprocess(self, data):
        return [self.model.seen] * len(data)
"""
SHAPE = {"shape": [3]}


def load(stage: TorchServeChildHarness, config: dict[str, Any]) -> Any:
    (stage.root / "warm_net.py").write_text(NET)
    sys.modules.pop("warm_net", None)
    told = {"modelName": "m", "modelFile": "warm_net.py"}
    return stage.load(OWN, manifest={"model": told}, config=config)


@pytest.fixture
def compiling(stage: TorchServeChildHarness) -> Any:
    load(stage, {})
    return importlib.import_module("ts.torch_handler.compiling")


@pytest.mark.parametrize(
    ("config", "runs"),
    [
        ({}, []),
        ({"trivium_warm_up": SHAPE}, [[1, "torch.float32"]]),
        ({"trivium_warm_up": SHAPE, "batchSize": 4}, [[1, "torch.float32"], [4, "torch.float32"]]),
        (
            {"trivium_warm_up": {"shape": [[3], [2, 2]], "datatype": "int64", "batch_sizes": [8]}},
            [[8, [8, 2, 2], "torch.int64"]],
        ),
    ],
)
def test_batch_sizes_are_warm_before_a_request(
    stage: TorchServeChildHarness, config: dict[str, Any], runs: list[Any]
) -> None:
    adapter = load(stage, config)
    (outcome,) = adapter.run([stage.item(b"[1, 2, 3]", "application/json")])
    assert json.loads(body(outcome))[:-1] == runs


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (5, "Found: 5"),
        ({}, "expected {shape"),
        ({"shape": 3}, "expected {shape"),
        ({"shape": [0]}, "expected {shape"),
        ({"shape": [True]}, "expected {shape"),
        ({"shape": [3], "batch_sizes": []}, "expected {shape"),
        ({"shape": [3], "batch_sizes": [1] * 65}, "expected {shape"),
        ({"shape": [3], "batchSizes": [1]}, "expected {shape"),
        ({"shape": [3], "datatype": "Tensor"}, "a datatype of torch's"),
        (
            {"shape": [4]},
            r"does not take trivium_warm_up of model-config.yaml, a batch of 1 .* three, please",
        ),
    ],
)
def test_a_warm_up_that_cannot_be_fails_the_load(
    stage: TorchServeChildHarness, value: Any, words: str
) -> None:
    with pytest.raises(Exception, match=words):
        load(stage, {"trivium_warm_up": value})


def test_torchscript_is_not_compiled_and_says_so(compiling: Any, caplog: pytest.LogCaptureFixture) -> None:
    script = torch.jit.script(torch.nn.Linear(2, 2))
    assert compiling.compiled(script, {"pt2": "inductor"}, "cpu") is script
    assert "it is TorchScript" in caplog.text


def test_without_a_compiler_a_model_runs_as_it_is(
    compiling: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CXX", "/nowhere/g++")
    model = torch.nn.Linear(2, 2)
    assert compiling.compiled(model, {"pt2": "inductor"}, "cpu") is model
    assert "Install g++" in caplog.text
    assert compiling.compiled(model, {"pt2": "eager"}, "cpu") is not model


def test_what_is_compiled_is_kept_in_a_folder_of_this_user(
    compiling: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    folder = tmp_path / "cache" / "trivium" / "compiled"
    variables = {"TRIVIUM_COMPILE_CACHE": str(folder)}
    compiling.keep(variables)
    assert variables["TORCHINDUCTOR_CACHE_DIR"] == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    for chosen in ({}, {**variables, "TORCHINDUCTOR_CACHE_DIR": "/mine"}):
        before = dict(chosen)
        compiling.keep(chosen)
        assert chosen == before
    assert not caplog.text


@pytest.mark.parametrize("kind", ["open to all", "a file", "under a file"])
def test_a_folder_that_cannot_be_trusted_is_not_used(
    compiling: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    folder = tmp_path / "compiled"
    if kind == "open to all":
        folder.mkdir()
        os.chmod(folder, 0o777)
    else:
        folder.touch()
    variables = {"TRIVIUM_COMPILE_CACHE": str(folder / "more" if kind == "under a file" else folder)}
    compiling.keep(variables)
    assert "TORCHINDUCTOR_CACHE_DIR" not in variables
    assert "is not kept over a restart" in caplog.text


@pytest.mark.parametrize(
    ("most", "removed"),
    [(600, []), (599, ["c"]), (400, ["c"]), (399, ["c", "a"]), (0, ["c", "a"])],
)
def test_what_was_used_least_recently_goes_first_and_what_is_in_use_stays(
    compiling: Any, most: int, removed: list[str]
) -> None:
    found = [(500.0, 100, "a"), (9999.0, 300, "b"), (400.0, 200, "c")]
    assert compiling.surplus(found, most, 10_000.0) == removed


def test_a_folder_is_trimmed_to_its_bound(compiling: Any, tmp_path: Path) -> None:
    folder = tmp_path / "compiled"
    for age, name in enumerate(["new", "old", "older"]):
        file = folder / "aa" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * 100)
        os.utime(file, (1e9 - age, 1e9 - age))
    compiling.trim(str(folder), 150)
    assert [file.name for file in folder.rglob("*") if file.is_file()] == ["new"]
    compiling.trim(str(tmp_path / "nowhere"), 0)
