"""Whatever becomes of large requests, the server's memory stays within its budget, without any garbage collector."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.test_memory_budget import Peak, memory_of
from tests.harness import large_requests
from tests.harness.large_requests import MIB, SMALL, WAYS, LargeRequest, waits, write_models
from tests.harness.server_process import ServerProcess, environment, running

BUDGET, SPARE = 64 * MIB, 150 * MIB
SIZE, COUNT = 15 * MIB, 16
PROFILES = ("native", "djl", "torchserve")
"""So many requests of such a size are far more than the budget and what is spare."""

NO_COLLECTOR = Path(large_requests.__file__).parent / "no_collector"


def all_requests() -> list[tuple[str, LargeRequest]]:
    return [(profile, request) for profile in PROFILES for request in large_requests.requests(profile)]


@pytest.fixture(scope="module", params=PROFILES)
def server(tmp_path_factory: pytest.TempPathFactory, request) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("held")
    words = (
        "--max-buffered-bytes",
        str(BUDGET),
        "--max-body-bytes",
        str(32 * MIB),
        "--profile",
        request.param,
    )
    path = os.pathsep.join((str(NO_COLLECTOR), environment().get("PYTHONPATH", "")))
    with running(
        folder / "log",
        "serve",
        *words,
        write_models(folder / "models"),
        models_raise=True,
        variables={"PYTHONPATH": path},
    ) as serving:
        serving.profile = request.param
        yield serving


import time


def test_all(server):
    bad = []
    for one in large_requests.requests(server.profile):
        if 'csv' in one.name: continue
        port = server.port if one.wire == "http" else int(server.grpc_address.rpartition(":")[2])
        for way, act in WAYS.items():
            waits(port, one.wire, one.make(SMALL), 100)
            base = memory_of(server)
            data = one.make(SIZE)
            t = time.time()
            with Peak(server) as peak:
                act(port, one.wire, data, 4 if "csv" in one.name else COUNT)
                time.sleep(0.3)
            more = peak.most - base
            if memory_of(server)-base > 50*MIB:
                open('/tmp/garbage.txt','a').write(f'#### {one.name} {way}\n'); import signal; server.process.send_signal(signal.SIGUSR2); time.sleep(1)
            with open("/tmp/bytes-new.txt", "a") as f:
                print(
                    f"{server.profile:10} {one.name:45} {way:7} base {base // MIB} +{more // MIB} then +{(memory_of(server) - base) // MIB} {time.time() - t:.1f}s {'BAD' if more > BUDGET + SPARE else ''}",
                    file=f,
                )
