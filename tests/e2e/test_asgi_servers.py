"""Models by `trivium.asgi` under two servers that people choose beside uvicorn: hypercorn and granian."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.harness import server_process
from tests.harness.ports import free_port
from tests.harness.raw_http import connect, post
from tests.harness.server_process import LoggedProcess, environment

from trivium.demo import places

PROGRAM = """
import trivium

app = trivium.asgi({models!r}, {handler!r})
"""

HANDLER = """
import asyncio
from collections.abc import AsyncIterator
from pathlib import Path


class Endless:
    async def predict(self, marker: str) -> AsyncIterator[str]:
        try:
            while True:
                yield "more "
                await asyncio.sleep(0.01)
        finally:
            Path(marker).write_text("ended")
"""

COMMANDS = {
    "hypercorn": ("hypercorn", "--bind", "127.0.0.1:0", "program:app"),
    "granian": ("granian", "--interface", "asgi", "--host", "127.0.0.1", "--port", "{port}", "program:app"),
}
"""What starts them: hypercorn takes a free port by itself, granian is given one."""

_ON = re.compile(r"(?:Running|Listening)\D+127\.0\.0\.1:(\d+)")


def is_ready(port: int) -> bool:
    """Whether all models are; a server may say where it listens before it does."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/v2/health/ready", timeout=60).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module", params=COMMANDS)
def port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Where the demo's models and a handler that streams for ever are served by the one or the other; at the end it
    has to leave well, with nothing left.
    """
    pytest.importorskip(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    handler = folder / "handler.py"
    handler.write_text(HANDLER)
    models = str(places.models())
    (folder / "program.py").write_text(PROGRAM.format(models=models, handler=f"{handler}:Endless"))
    command = [word.format(port=free_port()) for word in COMMANDS[request.param]]
    variables = {**environment(), "PYTHONPATH": str(folder)}
    with server_process.started(
        folder / "log", sys.executable, "-m", *command, variables=variables
    ) as process:
        running = LoggedProcess(process, folder / "log")
        found = int(running.await_line(_ON)[1])
        server_process.until(lambda: is_ready(found) or running.has_ended(), running.said)
        yield found
        running.signal(server_process.signal.SIGTERM)
        assert running.wait() == 0, running.said()


def test_a_picture_is_read(port: int) -> None:
    url = f"http://127.0.0.1:{port}"
    row = {"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": [0.0] * 64}
    answer = httpx.post(f"{url}/v2/models/digits/infer", json={"inputs": [row]}, timeout=60)
    assert answer.status_code == 200, answer.text
    assert answer.json()["outputs"][0]["shape"] == [1, 10]
    wrong = httpx.post(
        f"{url}/v2/models/digits/infer", json={"inputs": [row | {"name": "nobody"}]}, timeout=60
    )
    assert (wrong.status_code, "nobody" in wrong.json()["error"]) == (400, True)


def test_who_leaves_a_stream_ends_it(port: int, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with connect(port) as plug:
        plug.sendall(post("/predictions/Endless", str(marker).encode()))
        received = b""
        while received.count(b"more") < 3:
            part = plug.recv(1000)
            assert part, received
            received += part
    server_process.until(marker.exists, lambda: "the stream goes on")
