"""What people's tests import without a server: the mock of a context, the store of metrics, the launcher's command."""

import importlib
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.harness.torchserve_child import TorchServeChildHarness, stage

__all__ = ["stage"]


@pytest.fixture
def ts(stage: TorchServeChildHarness, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a module of our `ts`, with nobody who measures."""
    stage.load("def handle(data, context):\n    return data and [''] * len(data)\n")
    monkeypatch.setattr(importlib.import_module("ts.metrics.sink").Sink, "measure", None)
    return importlib.import_module


def test_the_mock_names_what_it_is_given(ts: Any, tmp_path: Path) -> None:
    mock = ts("ts.torch_handler.unit_tests.test_utils.mock_context").MockContext
    plain = mock()
    assert plain.manifest == {"model": {"serializedFile": "model.pt", "modelFile": "model.py"}}
    assert plain.system_properties["model_dir"] == "ts/torch_handler/unit_tests/models/tmp"
    assert plain.model_yaml_config == {}
    (tmp_path / "c.yaml").write_text("handler: {a: 1}\n")
    other = mock(
        model_pt_file=None, model_file=None, model_dir=str(tmp_path), model_yaml_config_file="c.yaml"
    )
    assert other.manifest == {"model": {}}
    assert other.model_yaml_config == {"handler": {"a": 1}}
    assert [other.get_request_header(at, "explain") for at in (0, 1)] == [False, False]
    other.explain = True
    assert [other.get_request_header(at, "explain") for at in (0, 1)] == [False, True]


def test_the_store_keeps_sums_and_last_values(ts: Any, caplog: pytest.LogCaptureFixture) -> None:
    store = ts("ts.metrics.metrics_store").MetricsStore("r1", "m")
    with caplog.at_level(logging.INFO):
        for value in (1, 2):
            store.add_counter("Count", value)
            store.add_time("Time", value)
        store.add_error("Bad", 1)
    assert {each.name: each.value for each in store.store} == {"Count": 3, "Time": 2, "Bad": 1}
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0].startswith("[METRICS]Count.Count:1|#ModelName:m,Level:Model|#type:COUNTER|#hostname:")
    assert lines[1].startswith("[METRICS]Time.Milliseconds:1|#ModelName:m,Level:Model|#type:GAUGE|#hostname:")
    assert lines[0].endswith(",r1")
    assert "|#Level:Error|" in lines[-1]
    assert str(store.store[1]).startswith("Time.Milliseconds:2|#ModelName:m,Level:Model|#hostname:")


def test_the_launcher_runs_the_command_of_the_path(
    ts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    launcher = ts("ts.launcher")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="trivium link DIR"):
        launcher.stop()
    program = tmp_path / "trivium"
    program.write_text(
        '#!/bin/sh\n[ $2 = --start ] && echo starting && echo Model server started. && echo "$@"\nexit 0\n'
    )
    program.chmod(0o755)
    said = launcher.start("store", no_config_snapshots=True, disable_token=True, models="all")
    assert said.get(timeout=60) == (
        "torchserve --start --model-store store --models all --no-config-snapshots --disable-token-auth\n"
    )
    assert said.get(timeout=60) is None
    assert "Model server started." in capsys.readouterr().out
    with pytest.raises(ValueError, match="model_store"):
        launcher.start()
