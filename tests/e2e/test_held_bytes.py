"""Whatever becomes of large requests, the server's memory stays within its budget, though it never collects garbage."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.harness.large_requests import HANDLERS, WAYS, LargeRequest, requests, waits, write_models
from tests.harness.memory import Peak, memory_of, without_collector
from tests.harness.server_process import ServerProcess, running, until

MIB = 2**20
BUDGET, SPARE = 64 * MIB, 150 * MIB
SMALL, SIZE = 64, 5 * MIB
"""Bytes of requests. A thread that reads one takes some times its size, and there are a few threads."""
ALTOGETHER = 320 * MIB
"""What the requests of a scene would take, were they kept: more than the budget and what is spare."""

SAMPLE = {
    "native": {
        "in chunks array_cut_short": "waits",
        "predictions csv_that_ends_badly": "waits",
        "deferred djl_sleeps": "waits",
        "DJL's gRPC array_cut_short": "waits",
        "DJL's gRPC djl_sleeps": "leaves",
        "infer inline identity less 1": "waits",
        "ModelInfer text identity less 1": "waits",
        "ModelInfer raw triton_sleeps less 0": "come_together",
        "ModelStreamInfer contents identity less 1": "waits",
    },
    "torchserve": {
        "predictions pytorch_sleeps": "come_together",
        "TorchServe's Predictions pytorch_raises": "waits",
        "TorchServe's StreamPredictions pytorch_sleeps": "leaves",
    },
}
"""By profile: requests of each kind that was seen to be kept, and what their clients do."""


@dataclass
class Serving:
    """A server that speaks a profile."""

    profile: str
    server: ServerProcess
    grpc_port: int


@pytest.fixture(scope="module", params=HANDLERS)
def serving(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("held")
    options = {
        "profile": request.param,
        "max-buffered-bytes": BUDGET,
        "max-body-bytes": 32 * MIB,
        "deferred-bytes": 16 * MIB,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    paths = write_models(folder / "models")
    with running(
        folder / "log", "serve", *words, *paths, models_raise=True, variables=without_collector()
    ) as server:
        yield Serving(request.param, server, int(server.grpc_address.rpartition(":")[2]))


def hold(serving: Serving, request: LargeRequest, way: str) -> str:
    """A scene; what is wrong with it, if anything is."""
    server = serving.server
    port = serving.grpc_port if request.wire == "grpc" else server.port
    waits(port, request.wire, request.make(SMALL), 100)
    server.signal(
        signal.SIGUSR1
    )  # what the allocator keeps of the scene before would hide what is kept in this one
    assert server.is_ready()
    base = memory_of(server)
    with Peak(server) as peak:
        WAYS[way](port, request.wire, request.make(SIZE), ALTOGETHER // SIZE // request.times)
        until(server.is_ready, server.said)
    more = (peak.most - base) // MIB
    said = f"{serving.profile}, {request}, {way}: {more} MiB above {base // MIB}"
    print(said)
    return said if peak.most > base + BUDGET + SPARE else ""


def test_a_sample_is_held_within_its_budget(serving: Serving) -> None:
    ways = SAMPLE.get(serving.profile, {})
    known = {request.name: request for request in requests(serving.profile)}
    faults = [hold(serving, known[name], way) for name, way in ways.items()]
    assert not any(faults), faults


@pytest.mark.soak
def test_all_are_held_within_their_budget(serving: Serving) -> None:
    faults = [hold(serving, request, way) for request in requests(serving.profile) for way in WAYS]
    assert not any(faults), faults
