"""Each kind of management, over and over: all are answered, nothing grows, and a request costs as much as at first.

Some five hundred of each here, 20,000 by `make soak`. What is registered is removed again, so that what grew would be
what nobody sees: histories, statistics, threads, descriptors.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness.djl_serving import djl_serving
from tests.harness.server_process import GROWTH, SECONDS, LoggedProcess, serve_handlers, until
from tests.harness.torchserve_management import archive, managed

SAMPLE, WHOLE = 520, 20_000
"""Requests of each kind."""

TICKS = 0.1
"""Seconds of processor time that the system's own clock, and a machine with much else to do, may be off."""

Asked = tuple[str, str, bytes, int]
"""Method, path, body, and the status of the answer."""

Round = Callable[[int], list[Asked]]


@dataclass(frozen=True)
class ManagedServer:
    """A server, where it is managed, and the request whose answer lists all models."""

    server: LoggedProcess
    port: int
    listing: str
    method: str = "GET"


def ask(client: HTTPConnection, asked: Asked) -> bytes:
    method, path, body, status = asked
    client.request(method, path, body)
    answer = client.getresponse()
    said = answer.read()
    assert answer.status == status, (asked, answer.status, said[:500])
    return said


def processor_seconds(server: LoggedProcess) -> float:
    times = server.process.cpu_times()
    return float(times.user + times.system)


def spent(
    client: HTTPConnection, at: ManagedServer, made: Round, begin: int, count: int
) -> tuple[int, float]:
    """Make rounds until so many requests have been made; the number of the next round, and processor seconds of one."""
    before, number, done = processor_seconds(at.server), begin, 0
    while done < count:
        for asked in made(number):
            ask(client, asked)
            done += 1
        number += 1
    return number, (processor_seconds(at.server) - before) / done


def nothing_grows(at: ManagedServer, kind: str, made: Round, count: int) -> None:
    """The figures of the first and the last twentieth, but for some rounds before."""
    few, began = min(max(count // 20, 100), count // 4), time.monotonic()
    process = at.server.process
    with contextlib.closing(HTTPConnection("127.0.0.1", at.port, timeout=SECONDS)) as client:
        number, _ = spent(client, at, made, 0, few)
        listed = ask(client, (at.method, at.listing, b"", 200))
        held = process.num_fds(), process.num_threads(), process.memory_info().rss
        number, first = spent(client, at, made, number, few)
        number, _ = spent(client, at, made, number, max(count - 3 * few, few))
        _, last = spent(client, at, made, number, few)
        until(
            lambda: process.num_fds() <= held[0] and process.num_threads() <= held[1] + 2,
            lambda: (
                f"{kind}: {process.num_fds()} descriptors, {process.num_threads()} threads; before {held}"
            ),
        )
        assert len(ask(client, (at.method, at.listing, b"", 200))) <= len(listed) + 100
    grown = process.memory_info().rss - held[2]
    seconds = time.monotonic() - began
    print(
        f"{kind}: {seconds:.1f} s; {first * 1000:.2f} ms, at the end {last * 1000:.2f} ms, {grown / 2**20:+.1f} MiB"
    )
    assert grown < GROWTH, kind
    assert last < 2 * first + TICKS / few, (kind, first, last)


# -- TorchServe's


@contextlib.contextmanager
def torch(folder: Path) -> Iterator[ManagedServer]:
    store = folder / "store"
    archive(store, "other")
    models.identity(folder / "models", "echo", rows=1)
    with managed(folder / "log", store, folder / "models") as server:
        at = ManagedServer(server.process, server.port, "/models?limit=100000")
        assert (
            server.manage("POST", "/models?url=other.mar&model_name=kept&initial_workers=0").status_code
            == 200
        )
        yield at


def of_torch() -> Mapping[str, Round]:
    made = "/models?url=other.mar&initial_workers=0&model_name="
    return {
        "register, unregister": lambda n: [
            ("POST", f"{made}m{n}", b"", 200),
            ("DELETE", f"/models/m{n}", b"", 200),
        ],
        "register what is there": lambda n: [("POST", f"{made}kept", b"", 409)],
        "register what is nowhere": lambda n: [("POST", f"/models?url=no{n}.mar", b"", 404)],
        "scale": lambda n: [
            ("PUT", f"/models/kept?min_worker=0&max_worker={n % 3}&synchronous=true", b"", 200)
        ],
        "scale what is nowhere": lambda n: [("PUT", f"/models/no{n}?min_worker=1", b"", 404)],
        "describe": lambda n: [("GET", "/models/kept/all", b"", 200), ("GET", f"/models/no{n}", b"", 404)],
        "list": lambda n: [("GET", "/models?limit=5", b"", 200)],
        "default version": lambda n: [("PUT", "/models/kept/1.0/set-default", b"", 200)],
        "unregister what is nowhere": lambda n: [("DELETE", f"/models/no{n}", b"", 404)],
    }


# -- DJL's


@contextlib.contextmanager
def djl(folder: Path) -> Iterator[ManagedServer]:
    for name in ("kept", "other"):
        model = folder / name
        model.mkdir()
        (model / "model.py").write_text(
            "from djl_python import Output\ndef handle(inputs):\n    return Output()\n"
        )
        (model / "serving.properties").write_text("engine=Python\nminWorkers=0\nmaxWorkers=1\n")
    workflow = {
        "name": "flow",
        "version": "1.0",
        "models": {"m": str(folder / "other")},
        "workflow": {"out": ["m", "in"]},
    }
    (folder / "flow.json").write_text(json.dumps(workflow))
    with djl_serving(folder / "log", "-m", f"kept={folder / 'kept'}", split=True) as server:
        yield ManagedServer(server, server.management, "/models?limit=1000")


def of_djl(folder: Path) -> Mapping[str, Round]:
    made = f"/models?url={folder / 'other'}&min_worker=0&model_name="
    flow = f"/workflows?url={folder / 'flow.json'}"
    return {
        "register, unregister": lambda n: [
            ("POST", f"{made}m{n}", b"", 200),
            ("DELETE", f"/models/m{n}", b"", 200),
        ],
        "register what is nowhere": lambda n: [("POST", f"/models?url=no{n}", b"", 404)],
        "scale": lambda n: [("PUT", f"/models/kept?min_worker=0&max_worker={1 + n % 3}", b"", 200)],
        "scale what is nowhere": lambda n: [("PUT", f"/models/no{n}?min_worker=1", b"", 404)],
        "describe": lambda n: [("GET", "/models/kept", b"", 200), ("GET", f"/models/no{n}", b"", 404)],
        "list": lambda n: [("GET", "/models?limit=5", b"", 200), ("GET", "/workflows", b"", 200)],
        "unregister what is nowhere": lambda n: [("DELETE", f"/models/no{n}", b"", 404)],
        "workflows": lambda n: [
            ("POST", flow, b"", 200),
            ("GET", "/workflows/flow", b"", 200),
            ("DELETE", "/workflows/flow", b"", 200),
        ],
        "adapters": lambda n: [
            ("GET", "/models/kept/adapters", b"", 400),
            ("GET", f"/models/no{n}/adapters", b"", 404),
        ],
    }


# -- Triton's, and our own


@contextlib.contextmanager
def repository(folder: Path, profile: str) -> Iterator[ManagedServer]:
    for name in ("kept", "other"):
        models.identity(folder / "models", name, rows=1)
    words = ("--profile", profile, "--client-shared-memory")
    with serve_handlers(folder / "log", *words, folder / "models") as server:
        until(server.is_ready, server.said)
        yield ManagedServer(server, server.port, "/v2/repository/index", "POST")


def of_repository(nowhere: int, no_memory: int) -> Mapping[str, Round]:
    of, region = "/v2/repository/models", b'{"key": "/no", "offset": 0, "byte_size": 4}'
    return {
        "load, unload": lambda n: [("POST", f"{of}/other/{verb}", b"{}", 200) for verb in ("load", "unload")],
        "load again": lambda n: [("POST", f"{of}/kept/load", b"{}", 200)],
        "load what is nowhere": lambda n: [("POST", f"{of}/no{n}/load", b"{}", nowhere)],
        "index": lambda n: [("POST", "/v2/repository/index", b"{}", 200)],
        "describe": lambda n: [("GET", f"/v2/models/kept/{what}", b"", 200) for what in ("config", "stats", "ready")],
        "settings": lambda n: [
            ("POST", "/v2/models/kept/trace/setting", b'{"trace_rate": "%d"}' % (n % 7 + 1), 200),
            ("GET", "/v2/trace/setting", b"", 200), ("GET", "/v2/logging", b"", 200),
        ],
        "memory": lambda n: [
            ("POST", f"/v2/systemsharedmemory/region/r{n}/register", region, no_memory),
            ("POST", f"/v2/systemsharedmemory/region/r{n}/unregister", b"", 200),
            ("GET", "/v2/systemsharedmemory/status", b"", 200),
        ],
    }  # fmt: skip


SCENES: Mapping[
    str,
    tuple[
        Callable[[Path], contextlib.AbstractContextManager[ManagedServer]],
        Callable[[Path], Mapping[str, Round]],
    ],
] = {
    "torchserve": (torch, lambda folder: of_torch()),
    "djl": (djl, of_djl),
    "triton": (lambda folder: repository(folder, "triton"), lambda folder: of_repository(500, 500)),
    "native": (lambda folder: repository(folder, "native"), lambda folder: of_repository(404, 404)),
}


DEAR = ("djl: register, unregister", "djl: workflows")
"""Each starts a process that looks at the model's code: there is a fifth of them in the sample."""


def run(scene: str, folder: Path, count: int) -> None:
    served, rounds = SCENES[scene]
    with served(folder) as at:
        for kind, made in rounds(folder).items():
            is_dear = count == SAMPLE and f"{scene}: {kind}" in DEAR
            nothing_grows(at, f"{scene}: {kind}", made, count // 5 if is_dear else count)


@pytest.mark.parametrize("scene", SCENES)
def test_hundreds_of_each_kind_leave_nothing(tmp_path: Path, scene: str) -> None:
    run(scene, tmp_path, SAMPLE)


@pytest.mark.soak
@pytest.mark.parametrize("scene", SCENES)
def test_twenty_thousand_of_each_kind_leave_nothing(tmp_path: Path, scene: str) -> None:
    run(scene, tmp_path, WHOLE)
