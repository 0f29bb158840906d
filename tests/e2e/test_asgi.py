"""The models of a program that has a server of its own: `trivium.asgi` under uvicorn and below FastAPI."""

import asyncio
import contextlib
import http.client
import json
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.middleware.gzip import GZipMiddleware
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from tests.e2e.asked_requests import OPTIONS, VOLATILE, recorded
from tests.e2e.wrong_requests import ROW
from tests.harness import server_process
from tests.harness.asgi_program import MOUNTED
from tests.harness.browser import chromium, page_of
from tests.harness.keys import KEYS, key_file
from tests.harness.raw_http import connect, post
from tests.harness.server_process import LoggedProcess, environment, serve

import trivium
from trivium.commands.asgi_application import AsgiApplication
from trivium.demo import places

_ON = re.compile(r"^alone on (\d+), mounted on (\d+)", re.MULTILINE)
_FRAMING = {"date", "server", "connection", "content-length", "transfer-encoding", "keep-alive"}
_CHOSEN = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=\"created\":)\d+")
"""Names and times that a server chooses."""

_PREFIX = MOUNTED.replace(" ", "%20").encode()


@dataclass(frozen=True)
class Answered:
    """What a client sees of an answer, framing excepted."""

    status: int
    fields: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True)
class Program:
    """A program with models in it."""

    process: LoggedProcess
    alone: int
    mounted: int


@contextlib.contextmanager
def program(log: Path, options: Mapping[str, object], *paths: Path) -> Iterator[Program]:
    """Run it until the end of the block; it has to leave well."""
    command = (sys.executable, "-m", "tests.harness.asgi_program", json.dumps(options), *paths)
    with server_process.started(log, *command, variables=environment()) as process:
        running = LoggedProcess(process, log)
        found = running.await_line(_ON)
        yield Program(running, int(found[1]), int(found[2]))
        running.signal(server_process.signal.SIGTERM)
        running.wait()
        assert "Traceback" not in running.said(), running.said()


def answered(port: int, request: bytes) -> Answered:
    """Send a request on a connection of its own."""
    with connect(port) as plug:
        plug.sendall(request)
        response = http.client.HTTPResponse(plug, method=request.split(b" ", 1)[0].decode())
        response.begin()
        fields = [
            (name.lower(), _CHOSEN.sub(b"", value.encode()).decode()) for name, value in response.getheaders()
        ]
        told = tuple(sorted(each for each in fields if each[0] not in _FRAMING))
        return Answered(response.status, told, _CHOSEN.sub(b"", response.read()))


def below(request: bytes) -> bytes:
    """The same request for the application that is mounted."""
    return request.replace(b" /", b" %s/" % _PREFIX, 1)


@pytest.fixture(scope="module")
def models(repository: Path) -> tuple[Path, ...]:
    """Those of the repository, and the demo's handlers."""
    return (repository, *places.handlers())


def test_it_answers_as_the_front_end_does(models, tmp_path):
    requests = recorded()
    assert len(requests) >= 200
    flags = [word for name, value in OPTIONS.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    with (
        serve(tmp_path / "front", *models, *flags) as front,
        program(tmp_path / "program", OPTIONS, *models) as asgi,
    ):
        wrong = {}
        for name, request in requests.items():
            wanted = answered(front.port, request)
            for where, port, asked in (
                ("alone", asgi.alone, request),
                ("mounted", asgi.mounted, below(request)),
            ):
                found = answered(port, asked)
                if any(name.endswith(path) for path in VOLATILE):
                    found = Answered(found.status, found.fields, wanted.body)
                if found != wanted:
                    wrong[f"{name}, {where}"] = (found, wanted)
    assert not wrong, "\n".join(difference(name, *pair) for name, pair in wrong.items())


def test_the_pages_find_the_server_below_the_path_where_it_is_mounted(tmp_path):
    with program(tmp_path / "log", {}, places.models()) as asgi, chromium() as browser:
        url = f"http://127.0.0.1:{asgi.mounted}{_PREFIX.decode()}"
        for path in ("/console/", "/console/index.html", "/docs/"):
            moved = httpx.get(url + path, follow_redirects=True)
            assert (moved.status_code, str(moved.url)) == (200, url + path.rpartition("/")[0])
        with page_of(browser, url) as page:
            page.evaluate("location.hash = '#/models/digits/try'")
            page.locator(".pad canvas").click()
            page.get_by_role("button", name="Send", exact=True).click()
            page.get_by_text("200", exact=True).first.wait_for()
            page.evaluate("location.hash = '#/api'")
            page.get_by_role("link", name="All routes, to read and try").click()
            page.locator(".opblock-tag", has_text="Open Inference Protocol").first.click()
            live = page.locator("[data-path='/v2/health/live']")
            live.wait_for()
            assert page.locator(".servers option").all_inner_texts() == [_PREFIX.decode()]
            live.click()
            page.get_by_role("button", name="Execute", exact=True).first.click()
            page.locator(".live-responses-table .response-col_status", has_text="200").first.wait_for()


def difference(name: str, found: Answered, wanted: Answered) -> str:
    fields = set(found.fields) ^ set(wanted.fields)
    return f"{name}: {found.status} {found.body[:300]!r}, not {wanted.status} {wanted.body[:300]!r}; {fields}"


APP = """
import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path


class Words:
    def predict(self, text: str) -> Iterator[str]:
        for word in text.split():
            yield word + " "


class Endless:
    async def predict(self, marker: str) -> AsyncIterator[str]:
        try:
            while True:
                yield "more "
                await asyncio.sleep(0.01)
        finally:
            Path(marker).write_text("ended")
"""


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Handlers that answer in parts."""
    file = tmp_path_factory.mktemp("streams") / "app.py"
    file.write_text(APP)
    return (f"{file}:Words", f"{file}:Endless")


def test_who_leaves_a_stream_ends_it(streams, tmp_path):
    markers = [tmp_path / "alone", tmp_path / "mounted"]
    with program(tmp_path / "log", {}, *map(Path, streams)) as asgi:
        for port, marker in zip((asgi.alone, asgi.mounted), markers, strict=True):
            request = post("/predictions/Endless", str(marker).encode())
            with connect(port) as plug:
                plug.sendall(request if port == asgi.alone else below(request))
                received = b""
                while received.count(b"more") < 3:
                    received += plug.recv(1000)
                assert b"chunked" in received
            server_process.until(marker.exists, lambda: asgi.process.said())


def test_no_models_no_start(tmp_path):
    log = tmp_path / "log"
    command = (sys.executable, "-m", "tests.harness.asgi_program", "{}", str(tmp_path / "nothing"))
    with server_process.started(log, *command, variables=environment()) as process:
        process.wait(server_process.SECONDS)
    assert "No such file or directory" in log.read_text()
    assert "startup failed" in log.read_text()


def infer(client: TestClient | httpx.Client, below: str = "", **more: Any) -> Any:
    document = {"inputs": [ROW]}
    return client.post(f"{below}/v2/models/echo/infer", json=document, **more)


def test_test_clients_ask_without_a_lifespan(repository):
    """Each request comes from a loop of its own; the models are loaded at the first."""
    application = trivium.asgi(repository)
    try:
        client = TestClient(application)
        for _ in range(3):
            assert infer(client).json()["outputs"][0]["data"] == ROW["data"]
        assert client.get("/v2/health/ready").status_code == 200
        assert asyncio.run(_ask_in_process(application)) == 200
    finally:
        asyncio.run(_closed(application))


async def _ask_in_process(application: AsgiApplication) -> int:
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://models") as client:
        return (await client.get("/v2/models/echo/ready")).status_code


async def _closed(application: AsgiApplication) -> None:
    async with application.lifespan():
        pass


def test_a_lifespan_may_be_had_again_and_a_program_keeps_its_own_routes(repository):
    application = trivium.asgi([repository], keys="")
    around = FastAPI(lifespan=application.lifespan)
    around.mount("/models", application)
    around.add_middleware(GZipMiddleware, minimum_size=10)

    @around.middleware("http")
    async def mark(request: Request, call_next: Any) -> Any:
        response = await call_next(request)
        response.headers["x-around"] = "1"
        return response

    for _ in range(2):
        with TestClient(around) as client:
            answer = infer(client, "/models")
            assert answer.status_code == 200
            assert answer.headers["x-around"] == "1"
            assert answer.headers["content-encoding"] == "gzip"
            assert client.get("/models/v2").json()["name"] == "trivium"
            assert client.get("/v2").status_code == 404
    server_process.until(lambda: not _threads(), lambda: f"threads go on: {_threads()}")


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "trivium"]


def test_keys_are_asked_for_below_a_program(repository, tmp_path):
    file = key_file(tmp_path / "keys.toml")
    with TestClient(trivium.asgi(repository, keys=str(file))) as client:
        assert infer(client).status_code == 401
        assert infer(client, headers={"Authorization": f"Bearer {KEYS['infer'].text}"}).status_code == 200


def test_web_sockets_and_other_scopes_are_refused(repository):
    application = trivium.asgi(repository)
    with (
        TestClient(application) as client,
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/v2"),
    ):
        pass


def test_wrong_options_are_named():
    with pytest.raises(trivium.ServeError, match="http_port, grpc_port have no effect"):
        trivium.asgi("models", http_port=1, grpc_port=2)
    with pytest.raises(trivium.ServeError, match="Did you mean 'max_body_bytes'"):
        trivium.asgi("models", max_body_byte=1)
    with pytest.raises(trivium.ServeError, match="no models"):
        trivium.asgi()
