"""Folders with anything in them, through serve, load, poll and check: a bad one is one bad model, named in time."""

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness.raw_http import get, infer, post
from tests.harness.server_process import COMMAND, SECONDS, ServerProcess, environment, serve_handlers, until

CONFIG = """name: "%s"
backend: "identity"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
dynamic_batching { max_queue_delay_microseconds: 100 }
"""
PROPERTIES = "engine=Python\nbatch_size=4\nmax_batch_delay=100\nminWorkers=1\noption.entryPoint=model.py\n"
MANIFEST = (
    '{"model": {"modelName": "m", "modelVersion": "1.0", "handler": "handler.py"}, "createdOn": "today"}'
)
HUGE = 2 * 2**30
SIGNS = '\0{}[]":9e-\u202e\x1b\n'


def triton(root: Path, name: str | bytes, config: str = "") -> bytes:
    folder = os.path.join(os.fsencode(root), os.fsencode(name))
    os.makedirs(os.path.join(folder, b"1"))
    if config:
        with open(os.path.join(folder, b"config.pbtxt"), "w") as file:
            file.write(config)
    return folder


def odd_repository(root: Path) -> None:
    """Lay out model folders that no model should look like; seven of them, and sixteen mutated ones."""
    triton(root, b"bytes\xff\xfe", CONFIG % "m")
    triton(root, b"escape\x1b[2J", CONFIG % "m")
    os.mkfifo(os.path.join(triton(root, "pipe_config"), b"config.pbtxt"))
    os.mkfifo(os.path.join(triton(root, "pipe_model", 'backend: "onnxruntime"'), b"1", b"model.onnx"))
    os.symlink("/dev/zero", os.path.join(triton(root, "endless"), b"config.pbtxt"))
    os.symlink("config.pbtxt", os.path.join(triton(root, "loop"), b"config.pbtxt"))
    os.makedirs(os.path.join(triton(root, "folder"), b"config.pbtxt"))
    with open(os.path.join(triton(root, "huge"), b"config.pbtxt"), "wb") as file:
        file.truncate(HUGE)
    for number in range(16):
        triton(root, f"mutated_{number}", mutated(CONFIG % f"mutated_{number}", number))


def mutated(text: str, seed: int) -> str:
    chance = random.Random(seed)
    letters = list(text)
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(letters))
        letters[place : place + chance.randint(0, 3)] = chance.choices(
            '\0{}[]":9e-\u202e\x1b\n', k=chance.randint(0, 3)
        )
    return "".join(letters)


ODD = ("pipe_config", "pipe_model", "endless", "loop", "folder", "huge")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("hostile")
    root = folder / "models"
    models.identity(root, "echo", rows=16)
    odd_repository(root)
    with serve_handlers(folder / "log", root) as serving:
        yield serving


def serves(server: ServerProcess) -> bool:
    return infer(server.port, "echo", [[1, 2, 3, 4]]) == [[1, 2, 3, 4]]


def test_neighbours_serve_from_the_start_and_each_fault_names_its_folder(server: ServerProcess) -> None:
    assert serves(server)
    rows = {row["name"]: row for row in server.ask(post("/v2/repository/index", b"{}")).document}
    for name in (*ODD, "bytes\\xff\\xfe", "escape\\x1b[2J"):
        assert rows[name]["state"] == "UNAVAILABLE", name
        assert name.split("\\")[0] in rows[name]["reason"]
    assert "\x1b" not in server.said()


@pytest.mark.parametrize("name", ODD)
def test_a_load_of_a_bad_one_is_refused_with_its_folder(server: ServerProcess, name: str) -> None:
    answer = server.ask(post(f"/v2/repository/models/{name}/load", b"{}"))
    assert answer.status == 503
    assert name in answer.error
    assert serves(server)


def test_what_appears_later_is_found_by_polling(tmp_path: Path) -> None:
    root = tmp_path / "models"
    models.identity(root, "echo", rows=16)
    words = ("--model-control", "poll", "--poll-seconds", "0.2")
    with serve_handlers(tmp_path / "log", root, *words) as serving:
        assert serves(serving)
        odd_repository(root)
        models.identity(root, "late")
        until(lambda: serving.ask(get("/v2/models/late/ready")).status == 200, serving.said)
        for name in ODD:
            until(lambda name=name: f"'{name}'" in serving.said(), serving.said)
        assert serves(serving)
        assert "\x1b" not in serving.said()


def stores(folder: Path) -> Iterator[Path]:
    """Yield a DJL store and a TorchServe store, each with a good model, files that are none, and mutated ones."""
    djl, torchserve = folder / "djl", folder / "torchserve"
    for number in range(-1, 8):
        place = djl / f"m{number + 1}"
        place.mkdir(parents=True)
        text = PROPERTIES if number < 0 else mutated(PROPERTIES, number)
        (place / "serving.properties").write_text(text, newline="")
        (place / "model.py").write_text("def handle(inputs):\n    return None\n")
    for number in range(-1, 8):
        place = torchserve / f"m{number + 1}"
        (place / "MAR-INF").mkdir(parents=True)
        text = MANIFEST.replace('"m"', f'"m{number + 1}"')
        (place / "MAR-INF" / "MANIFEST.json").write_text(text if number < 0 else mutated(text, number))
        (place / "handler.py").write_text("def handle(data, context):\n    return data\n")
    for store in (djl, torchserve):
        (store / "README.md").write_text("not a model")
        os.mkfifo(store / "pipe")
        yield store


def test_check_names_each_fault_and_ends(tmp_path: Path) -> None:
    root = tmp_path / "models"
    models.identity(root, "echo", rows=16)
    odd_repository(root)
    said = checked(root)
    for name in ODD:
        assert f"model {name} in " in said
    for store in stores(tmp_path):
        assert "m0" in checked(store)


def checked(path: Path) -> str:
    command = [*COMMAND, "check", str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, env=environment(), check=False
    )
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stdout
    return done.stdout
