"""The servers of the story as child processes: FastAPI under uvicorn, and Trivium in tritonserver's place."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def variant(repository: Path, model: str, name: str, changes: Mapping[str, str], more: str = "") -> None:
    """A copy of a model under another name, with its configuration changed."""
    folder = repository / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(repository / model, folder)
    config = (folder / "config.pbtxt").read_text().replace(f'name: "{model}"', f'name: "{name}"')
    for before, after in changes.items():
        if before not in config:
            raise ValueError(f"{folder / 'config.pbtxt'} has no {before!r}, which was to become {after!r}")
        config = config.replace(before, after)
    (folder / "config.pbtxt").write_text(config + more)


@contextmanager
def fastapi(app: str, model: Path) -> Iterator[str]:
    """One of the two endpoints; its address."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", f"examples.food11.{app}.app:app", "--port", str(port)]
    command += ["--log-level", "warning"]
    url = f"http://127.0.0.1:{port}"
    with _running(command, f"{url}/docs", {"FOOD11_MODEL": str(model)}):
        yield url


@contextmanager
def tritonserver(repository: Path) -> Iterator[str]:
    """The models of a repository; host and port, as Triton's clients take them."""
    http, grpc, metrics = free_port(), free_port(), free_port()
    command = [sys.executable, "-m", "trivium.cli.main", "tritonserver"]
    command += [f"--model-repository={repository}", f"--http-port={http}", f"--grpc-port={grpc}"]
    command += [f"--metrics-port={metrics}", "--http-address=127.0.0.1", "--grpc-address=127.0.0.1"]
    with _running(command, f"http://127.0.0.1:{http}/v2/health/ready", {}):
        yield f"127.0.0.1:{http}"


@contextmanager
def _running(command: list[str], url: str, environment: Mapping[str, str]) -> Iterator[None]:
    child = subprocess.Popen(command, env={**os.environ, **environment})
    try:
        _await(url, child)
        yield
    finally:
        child.terminate()
        child.wait(60)


def _await(url: str, child: "subprocess.Popen[bytes]", seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and child.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.2)
    raise RuntimeError(f"{' '.join(child.args)} did not come up")  # type: ignore[arg-type]


def free_port() -> int:
    """One that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
