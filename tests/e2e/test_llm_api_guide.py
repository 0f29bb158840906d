"""docs/llm-api.md, command by command and client by client, on the ports that it names, in a network of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests.harness.commands import trivium
from tests.harness.language_models import write
from tests.harness.server_process import environment

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "llm-api.md"
FILES = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROTO = Path(__file__).parent / "torchserve_client"
ALONE = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "alone"]
END = "<|endoftext|>"
PROMPT, COUNT = "The value of an expression", 12
LARGE = 100 * 2**20
SECONDS = 300

STORY = """
import json, subprocess, sys, time, urllib.error, urllib.request
from concurrent.futures import ThreadPoolExecutor

URL = "http://localhost:8080/predictions/llama2-7b-chat"


def ask(fields, seconds=60):
    body = json.dumps(fields).encode()
    began = time.monotonic()
    try:
        with urllib.request.urlopen(urllib.request.Request(URL, body, {"Content-Type": "application/json"}),
                                    timeout=seconds) as answer:
            return answer.status, answer.read().decode(errors="replace"), time.monotonic() - began
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), time.monotonic() - began


found = {}
log = open("server.log", "wb")
server = subprocess.Popen(["bash", "-e", "serve.sh"], stdout=log, stderr=subprocess.STDOUT)
try:
    ends = time.monotonic() + 120
    while True:
        try:
            if ask({"text": "x", "max_new_tokens": 1})[0] == 200:
                break
        except OSError:
            pass
        if server.poll() is not None or time.monotonic() > ends:
            sys.exit(open("server.log").read())
        time.sleep(0.2)
    for name in ("whole", "streaming", "grpc_streaming"):
        done = subprocess.run([sys.executable, name + ".py"], capture_output=True, text=True, timeout=120)
        found[name] = done.stdout + (done.stderr if done.returncode else "")
    given = {"text": PROMPT, "max_new_tokens": COUNT}
    with ThreadPoolExecutor() as pool:
        found["two"] = list(pool.map(ask, [given, given]))
        found["refused beside"] = list(pool.map(ask, [{**given, "temprature": 1}, given]))
        found["shorter beside"] = list(pool.map(ask, [{**given, "max_new_tokens": 2}, given]))
    form = ["-d", "inputs_embeds=0.25", "-d", "inputs_embeds=0.5"]
    found["repeated"] = subprocess.run(["curl", "-s", *form, URL], capture_output=True, text=True).stdout
    found["misspelt"] = ask({"input_embeds": [[0.5]]})
    found["large"] = ask({"text": "a " * (LARGE // 2), "max_new_tokens": 2}, 120)
finally:
    subprocess.run(["torchserve", "--stop", "--foreground"], timeout=60)
    server.wait(60)
json.dump(found, open("found.json", "w"))
"""


def alone(*words: str | Path, folder: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ALONE, *map(str, words)],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `examples`, with the page's files in it, a model, and the commands linked."""
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make a network of its own")
    folder = tmp_path_factory.mktemp("guide")
    shutil.copytree(ROOT / "examples" / "llm_api", folder / "llm_api")
    (folder / "model").mkdir()
    write(folder / "model", "llama")
    for name, text in FILES.findall(PAGE.read_text()):
        (folder / name).write_text(text.replace("/models/llama-2-7b-chat-hf", str(folder / "model")))
    stubs = folder / "llm_api" / "proto"
    stubs.mkdir()
    (stubs / "__init__.py").write_text(
        "import os, sys\nsys.path.append(os.path.dirname(__file__))\nimport inference_pb2, inference_pb2_grpc\n"
    )
    words = ["-m", "grpc_tools.protoc", f"-I{PROTO}", f"--python_out={stubs}", f"--grpc_python_out={stubs}"]
    subprocess.run([sys.executable, *words, "inference.proto"], check=True)
    assert trivium("link", folder / "bin").returncode == 0
    return folder


@pytest.fixture(scope="module")
def variables(place: Path) -> Mapping[str, str]:
    path = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
    own = {
        "DTYPE": "float32",
        "MODEL_PATH": str(place / "model"),
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(place),
    }
    return {**environment(), "PATH": path, **own}


@pytest.fixture(scope="module")
def found(place: Path, variables: Mapping[str, str]) -> dict[str, Any]:
    numbers = f"PROMPT, COUNT, LARGE = {PROMPT!r}, {COUNT}, {LARGE}\n"
    done = alone(sys.executable, "-c", numbers + STORY, folder=place, variables=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads((place / "found.json").read_text())
    return told


@pytest.fixture(scope="module")
def expected(place: Path) -> str:
    """What transformers itself answers."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(place / "model")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(place / "model", dtype=torch.float32)
    ids = tokenizer(PROMPT, return_tensors="pt")
    made = loaded.generate(**ids, max_new_tokens=COUNT, do_sample=False)[0][ids["input_ids"].shape[1] :]
    return str(tokenizer.decode(made, skip_special_tokens=True))


def test_whole_answers_to_text_and_embeddings(found: Mapping[str, Any], expected: str) -> None:
    assert found["whole"].split(END)[:2] == [expected, f"\n{expected}"], found["whole"]


def test_streams_come_chunk_by_chunk(found: Mapping[str, Any], expected: str) -> None:
    assert found["streaming"].replace("|", "") == expected.replace("|", "") * 2, found["streaming"]
    assert found["grpc_streaming"].replace("|", "") == expected.replace("|", ""), found["grpc_streaming"]
    assert min(found[name].count("|") for name in ("streaming", "grpc_streaming")) > 4


def test_a_batch_of_two_ends_each_stream_by_its_own_token(found: Mapping[str, Any], expected: str) -> None:
    whole = [200, expected + END]
    assert [answer[:2] for answer in found["two"]] == [whole, whole]
    short, long = found["shorter beside"]
    assert long[:2] == whole
    assert short[0] == 200
    assert short[1].endswith(END)
    assert len(short[1]) < len(long[1])


def test_one_that_is_refused_does_not_fail_the_one_beside_it(found: Mapping[str, Any], expected: str) -> None:
    refused, good = found["refused beside"]
    assert refused[0] == 400
    assert "temprature is no generation parameter: did you mean temperature?" in refused[1]
    assert good[:2] == [200, expected + END]


def test_what_the_guide_gets_wrong_is_answered_with_what_was_meant(found: Mapping[str, Any]) -> None:
    assert "Send JSON" in found["repeated"]
    assert found["misspelt"][0] == 400
    assert (
        "found input_embeds, expected text or inputs_embeds: did you mean inputs_embeds?"
        in found["misspelt"][1]
    )


def test_a_body_of_100_mb(found: Mapping[str, Any]) -> None:
    assert found["large"][0] == 200
    assert found["large"][1].endswith(END)


def test_the_configuration_as_printed_ends_with_the_line_and_the_brace(
    place: Path, variables: Mapping[str, str]
) -> None:
    text = (place / "llm_api" / "config.properties").read_text()
    assert text.count("    }\\\n  },\\\n") == 1
    (place / "printed.properties").write_text(text.replace("    }\\\n  },\\\n", "  },\\\n"))
    (place / "none").mkdir()
    words = ["torchserve", "--start", "--foreground", "--ncs", "--ts-config", "printed.properties"]
    done = alone(*words, "--model-store", "none", folder=place, variables=variables)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "models" in said
    assert "brace" in said or "}" in said
    assert "Traceback" not in said
    (place / "said").write_text(said)


def test_the_file_for_the_archiver_is_served_by_the_engine(place: Path, variables: Mapping[str, str]) -> None:
    """The page's last commands; what comes of them is asked of `check`."""
    (place / "model-store").mkdir(exist_ok=True)
    command = f"{sys.executable} -m trivium.cli.main"
    script = (place / "built_in.sh").read_text().replace("trivium ", f"{command} ", 1)
    done = alone("bash", "-e", "-c", script, folder=place, variables=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    done = alone(
        *command.split(), "check", "--all", place / "model-store" / "chat", folder=place, variables=variables
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "python-torchserve" not in done.stdout
    assert re.search(r"^  engine\s+(value\s+)?hf\b", done.stdout, re.MULTILINE)
