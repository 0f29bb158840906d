"""The life of each serving command: its steps in their order, its exit status and its words, for each way to end.

The commands' own records live with a server that is a list of what was asked of it; what happens at a step is written
beside the step's name, so that no test waits for time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console
from rich.table import Table

from trivium.catalogue import CATALOGUE, configured
from trivium.cli import serve
from trivium.codecs.java_properties import read
from trivium.commands.cannot_listen import CannotListen
from trivium.commands.collector import COLLECTIONS
from trivium.commands.life import (
    ExitStatuses,
    FatalFailure,
    Life,
    StartReport,
    exit_status,
    is_fatal,
    live_with,
)
from trivium.commands.listeners import Listeners
from trivium.commands.server_line import ServerLine
from trivium.commands.stopping import StopSignals
from trivium.core.server import Server
from trivium.frontends.http.ending import DrainReport
from trivium.servers.djl.command import life as djl
from trivium.servers.djl.command import settings as djl_settings
from trivium.servers.djl.command import sources as djl_sources
from trivium.servers.torchserve.command import life as torchserve
from trivium.servers.torchserve.command import settings as torchserve_settings
from trivium.servers.torchserve.command import sources as torchserve_sources
from trivium.servers.triton.command import life as triton
from trivium.servers.triton.command.errors import CannotStart
from trivium.servers.triton.command.settings import settle
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Listing, VersionStatus
from trivium.types.sources import SourceSetting
from trivium.types.spec import ModelSpec, Origin
from trivium.types.state import VersionState

LEFT = 30.0
READY = VersionStatus("a", "1", VersionState.READY)
FAILED = VersionStatus("b", "1", VersionState.FAILED, "why")
UP, DOWN = ["load", "up"], ["begin drain", "drain", "close", "unload"]
"""Steps that all share, once everything is loaded and once the end was asked for."""


@dataclass
class World:
    """A server, its listeners and the wish to stop, as far as a life has to do with them."""

    at: Mapping[str, Callable[["World"], Awaitable[None] | None]] = field(default_factory=dict)
    """What happens at a step, beside the step."""

    rows: tuple[VersionStatus, ...] = (READY,)
    unfinished: tuple[str, ...] = ()
    killed: tuple[str, ...] = ()
    steps: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    is_loaded: bool = False

    async def reach(self, step: str) -> None:
        self.steps.append(step)
        event = self.at.get(step)
        if event is not None and (more := event(self)) is not None:
            await more

    def say(self, line: Any) -> None:
        self.lines.append("TABLE" if isinstance(line, Table) else str(line))


class WorldLog(logging.Handler):
    """Takes the lines that commands log as what is said in a world."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        self._world.say(record.getMessage())


class FakeServer:
    def __init__(self, world: World) -> None:
        self._world = world
        self.metrics = SimpleNamespace(take=lambda model, step: None)

    def add(self, place: object, form: object = None, asked: object = None) -> None:
        self._world.steps.append("add")

    async def start(self, told: Callable[[VersionStatus], None], only: object, known: Any) -> Listing:
        await self._world.reach("read")
        await known()
        await self._world.reach("load")
        for row in self._world.rows:
            told(row)
        self._world.is_loaded = True
        return Listing(self._world.rows)

    def specs(self) -> tuple[ModelSpec, ...]:
        serving = [row for row in self._world.rows if row.state is VersionState.READY]
        specs = [ModelSpec(row.model, row.version, Path("/m"), "onnx", "m.onnx") for row in serving]
        return tuple(specs) if self._world.is_loaded else ()

    def begin_drain(self) -> None:
        self._world.steps.append("begin drain")

    async def close(self, grace: float) -> tuple[str, ...]:
        await self._world.reach("unload")
        self._world.is_loaded = False
        return self._world.killed


class FakeListeners:
    def __init__(self, world: World) -> None:
        self._world = world
        self.url, self.lines = "", ["HTTP on http://h:1"]
        self.places: dict[str, str] = {}
        self.urls: dict[str, str] = {}

    async def start(self) -> None:
        await self._world.reach("listen")
        self.url, self.places, self.urls = "http://h:1", {"HTTP": "h:1"}, {"HTTP": "http://h:1"}

    async def drain(self, grace: float) -> DrainReport:
        await self._world.reach("drain")
        return DrainReport(3, self._world.unfinished)

    async def close(self) -> None:
        await self._world.reach("close")


class FakeStop:
    left = LEFT

    def __init__(self, world: World) -> None:
        self._world = world

    async def wait(self) -> None:
        await self._world.stopped.wait()


def ask_to_stop(world: World) -> None:
    world.stopped.set()


async def ask_to_stop_for_good(world: World) -> None:
    """What is going on goes on until it is cancelled."""
    world.stopped.set()
    await asyncio.Event().wait()


def is_taken(world: World) -> None:
    raise CannotListen("A sentence.", "HTTP", "h:1")


def has_no_log(world: World) -> None:
    raise CannotListen("No access log.")


# -- the records of the commands ---------------------------------------------------------------------------


def native(folder: Path) -> Life[Any]:
    return serve.record([folder], configured(), lambda *facts: None, Console(file=StringIO()))


def tritonserver(folder: Path, *flags: str) -> Life[Any]:
    values = {"--model-repository": (str(folder),), **dict.fromkeys(flags, False)}
    return triton.record(settle(CATALOGUE, values))


def lenient_tritonserver(folder: Path) -> Life[Any]:
    return tritonserver(folder, "--exit-on-error")


def djl_serving(folder: Path, text: str = "", **environment: str) -> Life[Any]:
    (folder / "m").mkdir()
    (folder / "m" / "model.py").touch()
    sources = djl_sources.gather(read("f", text.encode()), (str(folder / "m"),), "", environment)
    return djl.record(djl_settings.settle(CATALOGUE, sources, environment, folder), [ServerLine("first")])


def early_djl_serving(folder: Path) -> Life[Any]:
    return djl_serving(folder, "wait_model_loading=false")


def failing_djl_serving(folder: Path) -> Life[Any]:
    return djl_serving(folder, SERVING_FAIL_FAST="true")


def torchserve_command(folder: Path) -> Life[Any]:
    (folder / "m.mar").touch()
    flags = {
        "model_store": SourceSetting(str(folder), Origin("", "")),
        "load_models": SourceSetting("m.mar", Origin("", "")),
        "disable_system_metrics": SourceSetting("true", Origin("", "")),
    }
    settings = torchserve_settings.settle(
        CATALOGUE, torchserve_sources.gather(None, flags, {}), lambda: ("", ""), (1, 0), {}
    )
    log = SimpleNamespace(add=lambda *line: None)
    logs = SimpleNamespace(access=log, server_metrics=log, model_metrics=log, flush=lambda: None)
    services = torchserve.LifeServices(
        [], None, None, lambda: None, lambda: None, cast("torchserve.TorchServeLogs", logs)
    )
    return torchserve.record(settings, services)


RECORDS = {
    "serve": native,
    "tritonserver": tritonserver,
    "tritonserver --exit-on-error=false": lenient_tritonserver,
    "djl-serving": djl_serving,
    "djl-serving, wait_model_loading=false": early_djl_serving,
    "djl-serving, SERVING_FAIL_FAST": failing_djl_serving,
    "torchserve": torchserve_command,
}
BEGINNINGS = {
    "serve": ["add", "listen", "read", "load"],
    "tritonserver": ["add", "read", "load"],
    "tritonserver --exit-on-error=false": ["add", "read", "load"],
    "djl-serving": ["add", "read", "load"],
    "djl-serving, wait_model_loading=false": ["add", "read", "listen", "load"],
    "djl-serving, SERVING_FAIL_FAST": ["add", "read", "load"],
    "torchserve": ["listen", "add", "read", "load"],
}
"""The steps up to that at which models are loaded."""


def beginning(name: str) -> list[str]:
    """The steps up to that at which it serves."""
    steps = BEGINNINGS[name]
    return steps if "listen" in steps else [*steps, "listen"]


@pytest.fixture(autouse=True)
def unfrozen(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(COLLECTIONS, "settle", lambda: None)
    caplog.set_level(logging.INFO)


def lived(record: Life[Any], world: World, on_screen: bool = False) -> int:
    """Live to the end; what is said and `up` are seen by the world."""

    async def up(server: Server, report: StartReport) -> None:
        await record.up(server, report)
        await world.reach("up")

    async def scene() -> int:
        seen = replace(record, up=up, say=world.say if on_screen else record.say)
        server, listeners, stop = FakeServer(world), FakeListeners(world), FakeStop(world)
        return await asyncio.wait_for(
            live_with(seen, cast(Server, server), cast(Listeners, listeners), cast(StopSignals, stop)), 60
        )

    log, handler = logging.getLogger(), WorldLog(world)
    log.addHandler(handler)
    try:
        return asyncio.run(scene())
    finally:
        log.removeHandler(handler)


# -- each way to end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDS)
def test_it_serves_until_it_is_asked_to_stop(name: str, tmp_path: Path) -> None:
    world = World({"up": ask_to_stop})
    assert lived(RECORDS[name](tmp_path), world) == 0
    assert world.steps == [*beginning(name), "up", *DOWN]


@pytest.mark.parametrize("name", RECORDS)
def test_a_signal_ends_loading(name: str, tmp_path: Path) -> None:
    world = World({"load": ask_to_stop_for_good})
    assert lived(RECORDS[name](tmp_path), world) == 0
    assert world.steps == [*BEGINNINGS[name], *DOWN]


@pytest.mark.parametrize("name", RECORDS)
def test_a_signal_that_comes_with_the_last_model_finds_a_server(name: str, tmp_path: Path) -> None:
    world = World({"load": ask_to_stop})
    assert lived(RECORDS[name](tmp_path), world) == 0
    assert world.steps == [*beginning(name), "up", *DOWN]


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("tritonserver", 1, "failed to start HTTP service: Unavailable - Socket 'h:1' already in use "),
        ("djl-serving", 2, "Failed to listen: h:1 (HTTP) is taken, or not an address of this machine."),
        ("djl-serving, wait_model_loading=false", 2, "Failed to listen: h:1 (HTTP) is taken"),
        ("torchserve", 1, "Failed to listen: h:1 (HTTP) is taken"),
    ],
)
def test_a_port_that_cannot_be_had_ends_it(name: str, status: int, said: str, tmp_path: Path) -> None:
    world = World({"listen": is_taken})
    assert lived(RECORDS[name](tmp_path), world) == status
    assert world.lines[-1].startswith(said)
    expected = beginning(name)
    assert world.steps == expected[: expected.index("listen") + 1]


@pytest.mark.parametrize(
    ("name", "event"), [("serve", is_taken), ("torchserve", has_no_log), ("djl-serving", has_no_log)]
)
def test_what_has_no_words_of_its_own_ends_the_command_with_its_sentence(
    name: str, event: Callable[[World], None], tmp_path: Path
) -> None:
    with pytest.raises(CannotListen):
        lived(RECORDS[name](tmp_path), World({"listen": event}))


def test_tritonserver_logs_that_it_has_no_access_log(tmp_path: Path) -> None:
    world = World({"listen": has_no_log})
    assert lived(tritonserver(tmp_path), world) == 1
    assert world.lines[-1] == "No access log."


@pytest.mark.parametrize("name", ["serve", "tritonserver --exit-on-error=false", "torchserve"])
def test_it_goes_on_without_a_model_that_fails(name: str, tmp_path: Path) -> None:
    world = World({"up": ask_to_stop}, rows=(READY, FAILED))
    assert lived(RECORDS[name](tmp_path), world) == 0
    assert world.steps == [*beginning(name), "up", *DOWN]


@pytest.mark.parametrize("name", ["tritonserver --exit-on-error=false", "torchserve"])
def test_it_goes_on_without_any_model(name: str, tmp_path: Path) -> None:
    world = World({"up": ask_to_stop}, rows=(FAILED,))
    assert lived(RECORDS[name](tmp_path), world) == 0
    assert world.steps == [*beginning(name), "up", *DOWN]


def test_serve_ends_where_nothing_serves(tmp_path: Path) -> None:
    world = World(rows=(FAILED,))
    assert lived(native(tmp_path), world, on_screen=True) == 1
    assert world.steps == [*BEGINNINGS["serve"], "close"]
    assert world.lines == ["TABLE", "Nothing can be served; see the reasons above."]


@pytest.mark.parametrize(
    "name", ["djl-serving", "djl-serving, wait_model_loading=false", "djl-serving, SERVING_FAIL_FAST"]
)
def test_djl_serving_ends_where_a_model_fails(name: str, tmp_path: Path) -> None:
    record = RECORDS[name](tmp_path)
    assert record.last_answers == djl.LAST_PINGS
    world = World(rows=(READY, FAILED))
    assert lived(replace(record, last_answers=0.0), world) == 1
    assert world.steps == [*BEGINNINGS[name], "close"]
    assert world.lines[-2] == "Failed to load model b: why"
    assert world.lines[-1].startswith("StartupFailed.Count:1|")


def test_a_signal_ends_the_last_answers(tmp_path: Path) -> None:
    world = World({"load": ask_to_stop}, rows=(FAILED,))
    record = replace(early_djl_serving(tmp_path), last_answers=10_000.0)
    assert lived(record, world) == 1
    assert world.steps[-1] == "close"


def test_tritonserver_unloads_and_ends_where_a_model_fails(tmp_path: Path) -> None:
    world = World(rows=(READY, FAILED))
    with pytest.raises(CannotStart, match="Internal - failed to load all models"):
        lived(tritonserver(tmp_path), world)
    assert world.steps == [*BEGINNINGS["tritonserver"], *DOWN]


def test_a_model_that_is_given_up_ends_djl_serving_that_fails_fast(tmp_path: Path) -> None:
    record = failing_djl_serving(tmp_path)
    assert record.given_up is not None
    world = World({"up": lambda world: record.given_up and record.given_up.set()})
    assert lived(record, world) == 137
    assert world.steps == [*beginning("djl-serving, SERVING_FAIL_FAST"), "up", *DOWN]
    assert djl_serving(tmp_path / "m").given_up is None


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("cut", [{"unfinished": ("POST /x",)}, {"killed": ("worker 1",)}])
def test_what_was_cut_off_is_said_and_is_the_status(
    name: str, cut: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    world = World({"up": ask_to_stop}, **cut)  # type: ignore[arg-type]
    assert lived(RECORDS[name](tmp_path), world, on_screen=name == "serve") == 1
    ((what,),) = cut.values()
    assert f"cut off: {what}" in world.lines


@pytest.mark.parametrize("name", RECORDS)
def test_a_signal_while_models_are_read_is_no_different(name: str, tmp_path: Path) -> None:
    world = World({"read": ask_to_stop_for_good})
    assert lived(RECORDS[name](tmp_path), world) == 0
    until = BEGINNINGS[name]
    assert world.steps == [*until[: until.index("read") + 1], *DOWN]


@pytest.mark.parametrize("name", ["serve", "djl-serving"])
def test_what_raises_while_it_loads_ends_it(name: str, tmp_path: Path) -> None:
    def fail(world: World) -> None:
        raise ServeError(Code.INVALID, "That is wrong.")

    with pytest.raises(ServeError, match=r"That is wrong\."):
        lived(RECORDS[name](tmp_path), World({"load": fail}))


# -- what is said ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "serve",
            [
                "TABLE",
                "HTTP on http://h:1",
                "1 of 2 did not load; /v2/health/ready says so.",
                "Stopping: no new connections; requests in work have 30 s to finish.",
                "cut off: POST /x",
                "cut off: worker 1",
                "Stopped: 3 requests answered, 1 cut off.",
            ],
        ),
        (
            "tritonserver --exit-on-error=false",
            [
                "Internal: failed to load all models",
                "Started HTTPService at h:1",
                "Waiting for in-flight requests to complete.",
                "cut off: POST /x",
                "failed to stop server: Internal - Exit timeout expired. Exiting immediately.",
                "All models are stopped, unloading models",
                "Timeout 30: Found 1 live models and 0 in-flight non-inference requests",
                "cut off: worker 1",
                "Timeout 30: Found 0 live models and 0 in-flight non-inference requests",
            ],
        ),
        (
            "torchserve",
            [
                "Inference API bind to: http://h:1",
                "Loading initial models: m.mar",
                "Model a loaded.",
                "Failed to load model: b, why",
                "cut off: POST /x",
                "cut off: worker 1",
                "Torchserve stopped.",
            ],
        ),
    ],
)
def test_what_is_said_in_its_order(name: str, lines: list[str], tmp_path: Path) -> None:
    world = World({"up": ask_to_stop}, (READY, FAILED), ("POST /x",), ("worker 1",))
    lived(RECORDS[name](tmp_path), world, on_screen=name == "serve")
    changes = ("successfully loaded", "failed to load '")
    assert [line for line in world.lines if "+---" not in line and not line.startswith(changes)] == lines


# -- what decides ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "fatal"),
    [
        ((READY,), set()),
        ((READY, FAILED), {FatalFailure.ANY}),
        ((FAILED,), {FatalFailure.ANY, FatalFailure.ALL}),
        ((), {FatalFailure.ALL}),
    ],
)
def test_which_failures_end_a_server(rows: tuple[VersionStatus, ...], fatal: set[FatalFailure]) -> None:
    specs = [ModelSpec("a", "1", Path("/m"), "onnx", "m.onnx")] if READY in rows else []
    report = StartReport(Listing(rows), specs, cast(Listeners, None))
    assert {each for each in FatalFailure if is_fatal(each, report)} == fatal


@pytest.mark.parametrize(
    ("is_cut", "has_given_up", "status"),
    [(False, False, 0), (True, False, 3), (False, True, 4), (True, True, 4)],
)
def test_the_exit_status(is_cut: bool, has_given_up: bool, status: int) -> None:
    assert exit_status(ExitStatuses(1, 2, 3, 4), is_cut, has_given_up) == status
