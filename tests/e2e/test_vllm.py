"""The real vLLM on this processor (`make vllm`): its interface beside the stand-in's, its tokens beside ours, a server.

Skipped where the real one is not installed.
"""

import json
import os
import subprocess
import sys
from importlib import util

import httpx
import psutil
import pytest
from tests.harness.language_models import Steps, text, write
from tests.harness.lora_folders import write_adapter
from tests.harness.server_process import ServerProcess, serve, until
from tests.harness.vllm_models import STAND_IN, WIDE, VllmSteps

from trivium.engines.hf.vllm.installed import argument_forms, arguments_in, version
from trivium.types.adapters import REGISTER
from trivium.types.errors import ServeError
from trivium.types.generation import Finish, Sampling

pytestmark = pytest.mark.skipif(util.find_spec("vllm") is None, reason="vLLM is not installed: make vllm")
LOADS = {"kv_bytes": 2**26, "dtype": "fp32", "max_context": 512}
TELL = """
import inspect, json
from vllm.exceptions import VLLMClientError, VLLMValidationError
from vllm.inputs.engine import embeds_input, tokens_input
from vllm.lora.request import LoRARequest
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.v1.engine.async_llm import AsyncLLM

def names(what):
    return [name for name in inspect.signature(what).parameters if name != "self"]

print("TOLD" + json.dumps({
    **{f"AsyncLLM.{name}": names(getattr(AsyncLLM, name)) for name in (
        "generate", "abort", "add_lora", "remove_lora", "shutdown", "from_engine_args")},
    "errored": isinstance(AsyncLLM.errored, property),
    "tokens_input": names(tokens_input), "embeds_input": names(embeds_input),
    "LoRARequest": names(LoRARequest), "SamplingParams": names(SamplingParams),
    "kinds": [kind.name for kind in RequestOutputKind],
    "client": issubclass(VLLMValidationError, VLLMClientError),
}))
"""


def interface(path: str) -> dict[str, object]:
    """What a vLLM says of its interface, found in front of others on this path."""
    told = subprocess.run(
        [sys.executable, "-c", TELL],
        env={**os.environ, "PYTHONPATH": path, "VLLM_LOGGING_LEVEL": "ERROR"},
        capture_output=True,
        text=True,
        check=True,
    )
    line = next(line for line in told.stdout.splitlines() if line.startswith("TOLD"))
    return json.loads(line.removeprefix("TOLD"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("llama"), "llama", **WIDE)


def test_the_stand_in_has_the_interface_of_the_real_one():
    real, ours = interface(os.environ.get("PYTHONPATH", "")), interface(str(STAND_IN))
    of_params, told = set(ours.pop("SamplingParams")), set(real.pop("SamplingParams"))
    assert of_params <= told
    assert ours == real
    assert arguments_in(STAND_IN / "vllm") == argument_forms()
    assert version().startswith("0.32.")


def requests():
    made = [
        {
            "prompts": (text(i, 40 + 30 * i),),
            "sampling": Sampling(max_tokens=5 + i, logprobs=2),
            "streams": bool(i % 2),
        }
        for i in range(10)
    ]
    scored = {"prompts": ("a b c",), "sampling": Sampling(max_tokens=3, logprobs=1)}
    made.append(scored | {"scores_prompts": True, "echoes": True})
    made.append({"prompts": ("a b c",), "sampling": Sampling(max_tokens=0), "scores_prompts": True})
    return made


def test_greedy_tokens_and_log_probabilities_are_ours(folder):
    with Steps(folder, dtype="fp32") as steps:
        expected = steps.answers(requests())
    with VllmSteps(folder, **LOADS) as steps:
        found = steps.answers(requests())
        for mine, theirs in zip(expected, found, strict=True):
            for one, other in zip(mine.choices, theirs.choices, strict=True):
                assert (one.text, one.ids, one.finish) == (other.text, other.ids, other.finish)
                assert [a.name for a in one.tokens] == [b.name for b in other.tokens]
                scores = [
                    (a.logprob or 0, b.logprob or 0) for a, b in zip(one.tokens, other.tokens, strict=True)
                ]
                assert all(abs(a - b) < 1e-3 for a, b in scores)
            assert mine.usage.new_tokens == theirs.usage.new_tokens
        drawn = {"prompts": ("a b c",), "sampling": Sampling(max_tokens=6, samples=True, choices=3, seed=5)}
        first, again = steps.answers([drawn]), steps.answers([drawn])
        assert first[0].choices == again[0].choices
        assert len({choice.ids for choice in first[0].choices}) > 1
        stop = expected[9].choices[0].text[2:4]
        ended = {"prompts": requests()[9]["prompts"], "sampling": Sampling(max_tokens=40, stop=(stop,))}
        assert steps.answers([ended])[0].choices[0].finish is Finish.STOP
        for bad in ({"samples": True, "temperature": 3.0}, {"presence_penalty": 5.0}):
            item = steps.add(prompts=("a",), sampling=Sampling(max_tokens=2, **bad))
            steps.run()
            with pytest.raises(ServeError):
                steps.answer(item)
        long = steps.add(prompts=("a",), sampling=Sampling(max_tokens=400, ignores_eos=True), streams=True)
        while not steps.parts.get(long):
            steps.step()
        assert steps.runner.abort(long) > 0
        until(lambda: steps.runner.debug_state()["computed"] == 0, lambda: "vLLM still computes it", 20)
        same = {"prompts": (text(3, 700),), "sampling": Sampling(max_tokens=1)}
        steps.answers([same])
        assert steps.answers([same])[0].usage.cached_tokens > 0


def test_adapters_change_tokens_as_ours(folder, tmp_path):
    made = write_adapter(tmp_path / "eng", folder)
    asked = [{"prompts": (text(1, 60),), "sampling": Sampling(max_tokens=8)}]
    both = [asked[0] | {"adapter": "eng"}, asked[0]]
    answers = []
    for kind, options in ((Steps, {"dtype": "fp32"}), (VllmSteps, LOADS)):
        with kind(folder, enable_lora="true", max_cpu_loras=2, **options) as steps:
            steps.call(REGISTER, "eng", made)
            answers.append([answer.choices[0].ids for answer in steps.answers(both)])
    assert answers[0] == answers[1]
    assert answers[1][0] != answers[1][1]


def complete(server: ServerProcess) -> httpx.Response:
    body = {"model": "llama", "prompt": "Once upon a time", "max_tokens": 6, "temperature": 0}
    return httpx.post(f"{server.url}/v1/completions", json=body, timeout=120)


def is_served(server: ServerProcess) -> bool:
    """Is it answered again?"""
    return complete(server).status_code == 200


def lives(process: psutil.Process) -> bool:
    """Does it compute, or hold anything? What nobody has reaped yet does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def engines(server: ServerProcess) -> list[psutil.Process]:
    """The processes in which vLLM schedules, below the server."""
    return [one for one in server.workers(recursive=True) if one.name().startswith("VLLM::EngineC")]


def test_a_server_answers_by_vllm_outlives_its_engine_and_leaves_nothing(folder, tmp_path):
    place = tmp_path / "llama"
    place.symlink_to(folder)
    parameters = "vllm.kv_bytes=64M,vllm.dtype=fp32,vllm.max_context=512"
    words = (place, "--text-engine", "vllm", "--engine-parameters", parameters)
    with serve(tmp_path / "log", *words, models_raise=True) as server:
        first = complete(server)
        assert first.status_code == 200, first.text
        assert 'trivium_generated_tokens_total{model="llama"' in httpx.get(f"{server.url}/metrics").text
        (engine,) = engines(server)
        engine.kill()
        until(lambda: is_served(server), server.said, 120)
        assert complete(server).json()["choices"] == first.json()["choices"]
        (engine,) = engines(server)
        worker = engine.parent()
        family = [worker, *worker.children(recursive=True)]
        worker.kill()
        until(lambda: not any(map(lives, family)), server.said, 30)
        until(lambda: is_served(server), server.said, 120)
        family = server.workers(recursive=True)
    until(lambda: not any(map(lives, family)), lambda: f"{family} are left behind", 60)  # it ends by itself
