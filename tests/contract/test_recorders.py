"""What a recorder hears: each request once, each worker, and what becomes of custom metrics that it judges."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.harness.torchserve_management import archive

from trivium import app
from trivium.catalogue import CATALOGUE
from trivium.config.options import ServerConfig
from trivium.core.server import Server
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Raw, RawPart
from trivium.types.recording import WORKER_LINE, InstanceName, WorkerEnd, WorkerLine

HANDLER = """
import os, signal
from ts.handler_utils.utils import send_intermediate_predict_response
from ts.utils.util import PredictionException
class Handler:
    def initialize(self, context):
        print("here I am", flush=True)
        context.metrics.add_counter("Loads", 1)
    def handle(self, data, context):
        text = bytes(data[0]["body"]).decode()
        context.metrics.add_counter("Good" if text == "x" else "Bad", 2)
        if text == "fail":
            raise ValueError("as told")
        if text == "status":
            context.set_response_status(code=404, idx=0)
        if text == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if text == "parts":
            send_intermediate_predict_response(["a"], context.request_ids, "ok", 200, context)
        return [text]
"""


@dataclass
class Heard:
    """A recorder that keeps what it hears, and counts of custom metrics only those called Good, as Better."""

    requests: list[tuple[str, str, str]] = field(default_factory=list)
    times: list[tuple[float, float]] = field(default_factory=list)
    lingered: list[float] = field(default_factory=list)
    instances: list[tuple[str, InstanceName]] = field(default_factory=list)
    replaced: list[tuple[InstanceName, float]] = field(default_factory=list)
    post_mortems: list[str] = field(default_factory=list)
    steps: list[Mapping[str, object]] = field(default_factory=list)

    def answered(self, request: Infer, waited: float, spent: float) -> None:
        self.requests.append(("answered", request.id, request.version))
        self.times.append((waited, spent))

    def failed(self, request: Infer, code: Code, spent: float) -> None:
        self.requests.append((code.value, request.id, request.version))

    def ran(self, lingered: float) -> None:
        self.lingered.append(lingered)

    def starting(self, instance: InstanceName) -> None:
        self.instances.append(("starting", instance))

    def opened(self, instance: InstanceName, seconds: float) -> None:
        self.instances.append(("opened", instance))
        assert seconds > 0

    def ended(self, instance: InstanceName, why: WorkerEnd, post_mortem: str) -> None:
        self.instances.append((why.name, instance))
        self.post_mortems.append(post_mortem)

    def replacing(self, instance: InstanceName, seconds: float) -> None:
        self.replaced.append((instance, seconds))

    def measured(self, model: str, step: Mapping[str, object]) -> Mapping[str, object] | None:
        self.steps.append(step)
        if step["name"] == "Bad":
            raise ValueError("it is bad")
        return {**step, "name": "Better"} if step["name"] == "Good" else None


@contextlib.asynccontextmanager
async def recorded(folder: Path, heard: Heard) -> AsyncIterator[Server]:
    server = app.build(CATALOGUE, ServerConfig(), recorder=heard)
    async with server:
        server.add(archive(folder, "m", code=HANDLER))
        await server.start()
        yield server


def ask(text: str, version: str = "") -> Infer:
    return Infer("m", Raw((RawPart(text.encode()),)), version, text)


async def told(server: Server, text: str, version: str = "") -> None:
    with contextlib.suppress(ServeError):
        await server.execute(ask(text, version))


def test_each_request_is_recorded_once_however_it_ends(tmp_path: Path) -> None:
    async def play() -> None:
        heard = Heard()
        async with recorded(tmp_path, heard) as server:
            for text, version in (("x", ""), ("x", "1.0"), ("fail", ""), ("status", ""), ("parts", "")):
                await told(server, text, version)
            with pytest.raises(ServeError):
                await server.execute(Infer("nobody", Raw(())))
            assert heard.requests == [
                ("answered", "x", ""),
                ("answered", "x", "1.0"),
                (Code.MODEL_FAILED.value, "fail", ""),
                ("answered", "status", ""),
                ("answered", "parts", ""),
            ]
            assert all(0 <= waited <= spent for waited, spent in heard.times)
            assert heard.lingered
            assert all(seconds >= 0 for seconds in heard.lingered)

    asyncio.run(play())


def test_workers_are_recorded_from_their_start_to_their_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def play() -> None:
        heard = Heard()
        async with recorded(tmp_path, heard) as server:
            first, second = (InstanceName("m", "1.0", number) for number in (1, 2))
            assert heard.instances == [("starting", first), ("opened", first)]
            await told(server, "kill")
            await told(server, "x")
            assert heard.requests == [(Code.WORKER_DIED.value, "kill", ""), ("answered", "x", "")]
            assert sorted(heard.instances[2:]) == [
                ("DIED", first),
                ("opened", second),
                ("starting", second),
            ]
            assert "SIGKILL" in heard.post_mortems[0]
            assert heard.replaced == [(first, 0.0)]
        assert heard.instances[-1] == ("ASKED", second)
        lines = [getattr(record, WORKER_LINE) for record in caplog.records if hasattr(record, WORKER_LINE)]
        assert WorkerLine(first, "stdout", "here I am", "m_0") in lines
        assert WorkerLine(second, "stdout", "here I am", "m_0") in lines

    asyncio.run(play())


def test_a_custom_metric_is_counted_as_the_recorder_says(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        heard = Heard()
        async with recorded(tmp_path, heard) as server:
            await told(server, "x")
            await told(server, "y")
            assert [step["name"] for step in heard.steps] == ["Loads", "Good", "Bad"]
            (family,) = server.metrics.report()
            assert (family.name, family.series[0].value) == ("Better", 2)
        assert "it is bad" in caplog.text

    asyncio.run(play())
