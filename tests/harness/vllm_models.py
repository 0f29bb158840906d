"""Models that vLLM serves, the real one or a stand-in for it, and the steps of their tests."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.language_models import HERE, Steps

from trivium.engines.hf.vllm.engine import ENGINE
from trivium.engines.hf.vllm.installed import argument_forms

STAND_IN = Path(__file__).parent / "vllm_stand_in"
"""The folder in front of which a Python finds no other vLLM."""

WIDE = {"hidden_size": 128}
"""Of a model whose heads are wide enough for vLLM's kernels on a processor."""


class VllmSteps(Steps):
    """An opened model of the engine `vllm`."""

    def opened(self, described, engine):
        return ENGINE.open_steps(vllm_spec(described), HERE, self)


def vllm_spec(described):
    """The spec of the same model for the engine `vllm`, on few threads and with little memory."""
    parameters = {name: text for name, text in described.parameters.items() if name != "threads"}
    return replace(described, engine="vllm", parameters={"kv_bytes": str(2**26), "slots": "8"} | parameters)


def with_stand_in(environment):
    """An environment in which programs find the stand-in."""
    before = environment.get("PYTHONPATH")
    return {**environment, "PYTHONPATH": f"{STAND_IN}{os.pathsep}{before}" if before else str(STAND_IN)}


@pytest.fixture
def stand_in(monkeypatch):
    """The class of the stand-in's engine, which this process and those that it starts find in place of vLLM."""
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "vllm"}
    for name in before:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(STAND_IN))
    monkeypatch.setenv("PYTHONPATH", with_stand_in(os.environ)["PYTHONPATH"])
    for name in ("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "HF_HUB_OFFLINE", "VLLM_LOGGING_LEVEL"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))
    argument_forms.cache_clear()
    from vllm.v1.engine.async_llm import AsyncLLM

    AsyncLLM.made.clear()
    yield AsyncLLM
    argument_forms.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
        del sys.modules[name]
