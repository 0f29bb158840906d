"""The wheel, equal to the byte however it is built, and the image of processors, without a container engine.

The lines of the Dockerfile that install run as they stand in a copy of this machine's files; its entry point then runs
as a user without a name, with no capability, while nothing but /tmp can be written: as OpenShift and a read-only root
have it. Restages "permission denied" under another user (kserve 3041, kserve 1607, pytorch/serve 1246) and SageMaker's
`serve` with a port of its own (triton-inference-server/server, docker/sagemaker).
"""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness.image import ROOT, Image, reason
from tests.harness.ports import free_port
from tests.harness.server_process import SECONDS, LoggedProcess, environment, until
from tests.harness.told_archive import told_archive

BUILDING = 600
ECHO = {"inputs": [{"name": "x", "shape": [4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}
_JSON = "application/json"
SLOW = """
import time
from djl_python import Output

def handle(inputs):
    if inputs.is_empty():
        return None
    open("/tmp/begun", "w").close()
    time.sleep(2)
    return Output().add(b"done")
"""
_SOURCES = ("src", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore")


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that can build, as `make dist` makes it."""
    folder = tmp_path_factory.mktemp("builder")
    venv.create(folder, with_pip=True)
    named = re.search(r"build==\S+ hatchling==\S+", (ROOT / "Makefile").read_text())
    assert named is not None
    command = [folder / "bin" / "pip", "install", "--quiet", *named[0].split()]
    subprocess.run(command, check=True, timeout=BUILDING)
    return folder / "bin" / "python"


def built(python: Path, folder: Path, umask: int, zone: str) -> dict[str, bytes]:
    """The files that a build in this folder leaves, with such a umask and time zone."""
    folder.mkdir(parents=True)
    for name in _SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder)
    mode = 0o777 & ~umask
    for path in (folder / "src").rglob("*"):
        path.chmod(mode if path.is_dir() else mode & 0o666)
        os.utime(path, (umask * 1000, umask * 1000))
    variables = {**environment(), "TZ": zone, "SOURCE_DATE_EPOCH": "1700000000"}
    command = [
        "sh",
        "-c",
        f'umask {umask:o}; exec "$@"',
        "sh",
        python,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        "dist",
        ".",
    ]
    subprocess.run(command, cwd=folder, env=variables, check=True, capture_output=True, timeout=BUILDING)
    return {path.name: path.read_bytes() for path in (folder / "dist").iterdir()}


def test_two_builds_are_equal_to_the_byte(builder: Path, tmp_path: Path) -> None:
    first = built(builder, tmp_path / "a", 0o022, "UTC")
    second = built(builder, tmp_path / "elsewhere" / "deep er", 0o077, "Asia/Tokyo")
    assert sorted(name.rpartition(".")[2] for name in first) == ["gz", "whl"]
    assert first == second


WHY_NOT = reason()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The image of processors, with few extras."""
    if WHY_NOT:
        pytest.skip(f"no image can be made here: {WHY_NOT}")
    made = Image((ROOT / "docker" / "cpu" / "Dockerfile").read_text(), tmp_path_factory.mktemp("image"))
    made.build({"EXTRAS": "torchserve"})
    return made


@pytest.fixture
def empty(image: Image) -> Iterator[Image]:
    """It, with nothing mounted before and after."""
    yield image
    for place in ("/opt/ml/model", "/models", "/home/model-server/model-store"):
        image.take(place)


@contextmanager
def started(
    image: Image, log: Path, words: Sequence[str], variables: Mapping[str, str], status: int = 0
) -> Iterator[LoggedProcess]:
    """The entry point with these words; at the end it is asked to stop, and has this exit status."""
    process = image.start(words, variables, log)
    serving = LoggedProcess(process, log)
    try:
        yield serving
        serving.signal(signal.SIGTERM)
        assert serving.wait() == status, serving.said()
        assert "Traceback" not in serving.said(), serving.said()
    finally:
        process.terminate()  # a killed tini would leave the server behind
        process.wait(SECONDS)


def asked(url: str, body: object = None) -> tuple[int, bytes]:
    """The status and the body of an answer; 0 where nobody listens."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {} if isinstance(body, bytes) else {"Content-Type": _JSON})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


def until_up(url: str, serving: LoggedProcess, body: object = None) -> None:
    """Wait for a server that answers there; TorchServe answers for itself before it knows its models."""

    def is_up() -> bool:
        assert not serving.has_ended(), serving.said()
        return asked(url, body)[0] == 200

    until(is_up, serving.said)


def is_healthy(image: Image, variables: Mapping[str, str]) -> bool:
    """What the image's own check of health says."""
    words = json.loads(image.last("HEALTHCHECK").partition("CMD ")[2])
    return image.run(words, variables).returncode == 0


def test_what_sagemaker_asks_of_one_model(empty: Image, tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo")
    empty.put(tmp_path / "models", "/opt/ml/model")
    port = str(free_port())
    variables = {"SAGEMAKER_BIND_TO_PORT": port}
    assert not is_healthy(empty, {**variables, "HEALTH_URL": f"http://127.0.0.1:{port}/ping"})
    with started(empty, tmp_path / "log", ["serve"], variables) as serving:
        until_up(f"http://127.0.0.1:{port}/ping", serving)
        status, answer = asked(f"http://127.0.0.1:{port}/invocations", ECHO)
        assert (status, json.loads(answer)["outputs"][0]["data"]) == (200, [1, 2, 3, 4])
        assert is_healthy(empty, variables)
        user = serving.process.uids().real
        assert user == 54321
        assert not {each.username() for each in serving.process.children(recursive=True)} & {"root"}


def test_what_sagemaker_asks_of_many_models(empty: Image, tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo")
    empty.put(tmp_path / "models", "/models")
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    variables = {"SAGEMAKER_BIND_TO_PORT": port, "SAGEMAKER_MULTI_MODEL": "true"}
    with started(empty, tmp_path / "log", ["serve"], variables) as serving:
        until_up(f"{url}/ping", serving)
        assert asked(f"{url}/models", {"model_name": "second", "url": "/models/echo"})[0] == 200
        status, answer = asked(f"{url}/models/second/invoke", ECHO)
        assert (status, json.loads(answer)) == (200, {"predictions": [1, 2, 3, 4]})


def test_sagemaker_with_archives_of_torchserve(empty: Image, tmp_path: Path) -> None:
    told_archive(tmp_path / "models")
    empty.put(tmp_path / "models", "/opt/ml/model")
    port = str(free_port())
    ports = {name: str(free_port()) for name in ("TS_GRPC_INFERENCE_PORT", "TS_GRPC_MANAGEMENT_PORT")}
    variables = {
        "SAGEMAKER_BIND_TO_PORT": port,
        "TS_METRICS_ADDRESS": f"http://127.0.0.1:{free_port()}",
        **ports,
    }
    with started(empty, tmp_path / "log", ["serve"], variables) as serving:
        until_up(f"http://127.0.0.1:{port}/ping", serving)
        until_up(f"http://127.0.0.1:{port}/invocations", serving, b"x")


def test_the_command_of_tritonserver(empty: Image, tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo")
    empty.put(tmp_path / "models", "/models")
    http, grpc, metrics = (free_port() for _ in range(3))
    words = ["tritonserver", "--model-repository=/models", f"--http-port={http}", f"--grpc-port={grpc}"]
    words.append(f"--metrics-port={metrics}")
    with started(empty, tmp_path / "log", words, {}) as serving:
        until_up(f"http://127.0.0.1:{http}/v2/health/ready", serving)
        assert asked(f"http://127.0.0.1:{http}/v2/models/echo/infer", ECHO)[0] == 200
        assert is_healthy(empty, {"HEALTH_URL": f"http://127.0.0.1:{http}/v2/health/live"})


def test_the_command_of_torchserve(empty: Image, tmp_path: Path) -> None:
    told_archive(tmp_path / "store")
    empty.put(tmp_path / "store", "/home/model-server/model-store")
    ports = [free_port() for _ in range(5)]
    variables = dict(
        zip(
            ("TS_INFERENCE_ADDRESS", "TS_MANAGEMENT_ADDRESS", "TS_METRICS_ADDRESS"),
            (f"http://127.0.0.1:{port}" for port in ports),
            strict=False,
        )
    )
    variables |= {"TS_GRPC_INFERENCE_PORT": str(ports[3]), "TS_GRPC_MANAGEMENT_PORT": str(ports[4])}
    words = ["torchserve", "--start", "--model-store", "/home/model-server/model-store", "--models", "all"]
    words += ["--ts-config", "/home/model-server/config.properties", "--disable-token-auth"]
    with started(empty, tmp_path / "log", words, variables) as serving:
        until_up(f"http://127.0.0.1:{ports[0]}/ping", serving)
        until_up(f"http://127.0.0.1:{ports[0]}/predictions/told", serving, b"x")


def test_the_keys_of_torchserve_have_no_place_on_a_read_only_root(empty: Image, tmp_path: Path) -> None:
    process = empty.start(["serve"], {"SERVE_AS": "torchserve"}, tmp_path / "log")
    assert process.wait(SECONDS) == 1
    assert "key_file.json: Read-only file system" in (tmp_path / "log").read_text()
    assert "--disable-token-auth" in (tmp_path / "log").read_text()


def test_our_own_command_drains_what_is_in_work(empty: Image, tmp_path: Path) -> None:
    folder = tmp_path / "models" / "slow"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(SLOW)
    (folder / "serving.properties").write_text("engine=Python\n")
    empty.put(tmp_path / "models", "/models")
    http, grpc = free_port(), free_port()
    words = ["trivium", "serve", "/models/slow", "--open", f"--http-port={http}", f"--grpc-port={grpc}"]
    answers: list[tuple[int, bytes]] = []
    with started(empty, tmp_path / "log", words, {}) as serving:
        until_up(f"http://127.0.0.1:{http}/v2/health/ready", serving)
        asking = threading.Thread(
            target=lambda: answers.append(asked(f"http://127.0.0.1:{http}/predictions/slow", b"x"))
        )
        asking.start()
        until((empty.scratch / "begun").exists, serving.said)
    asking.join(SECONDS)
    assert answers == [(200, b"done")]


def test_words_that_are_no_command(image: Image) -> None:
    ended = image.run([*json.loads(image.last("ENTRYPOINT")), "serv"])
    assert ended.returncode == 127
    assert "There is no command 'serv' in this image" in ended.stderr


def test_the_unit_of_systemd(image: Image) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    image.put(ROOT / "docker" / "systemd" / "trivium.service", "/usr/lib/trivium/trivium.service")
    ended = image.run(["systemd-analyze", "verify", "/usr/lib/trivium/trivium.service"])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
