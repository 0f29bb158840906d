"""The models of a program that has a server of its own: `trivium.asgi` under uvicorn and below FastAPI."""

import contextlib
import http.client
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.e2e.asked_requests import OPTIONS, VOLATILE, recorded
from tests.harness import server_process
from tests.harness.asgi_program import MOUNTED
from tests.harness.raw_http import connect
from tests.harness.server_process import LoggedProcess, environment, serve

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
        fields = [(name.lower(), _CHOSEN.sub(b"", value.encode()).decode()) for name, value in response.getheaders()]
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
    assert not wrong, "\n".join(_difference(name, *pair) for name, pair in wrong.items())


def _difference(name: str, found: Answered, wanted: Answered) -> str:
    fields = set(found.fields) ^ set(wanted.fields)
    return f"{name}: {found.status} {found.body[:300]!r}, not {wanted.status} {wanted.body[:300]!r}; {fields}"
