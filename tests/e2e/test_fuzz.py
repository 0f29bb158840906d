"""Whatever reads bytes of strangers reads or refuses them, in bounded time and memory; a real server lives on.

A sample of each target here, a million inputs of each by `make soak`; `python -m tests.fuzz` does it by hand.
"""

from collections import Counter
from pathlib import Path

import pytest
from tests.e2e.test_chaos import CONFIG, DJL, MANIFEST, TORCHSERVE, TRITON
from tests.fixtures import models
from tests.fuzz.runner import SAMPLE, WHOLE, inputs, run
from tests.fuzz.targets import TARGETS
from tests.fuzz.wires import h2_target, http_target, send, statuses
from tests.harness.raw_http import get, post
from tests.harness.server_process import ServerProcess, running, serve, withstanding
from tests.harness.stall_watch import watched

SEED = 20261125
PROFILES = ("triton", "djl", "torchserve")
HTTP_INPUTS, H2_INPUTS = 170, 100
"""For each profile."""

MOST_SECONDS = 0.5
SAYS_500 = ("triton",)
"""The original has this status for JSON that cannot be read."""

pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries that read hostile text


@pytest.mark.parametrize("name", TARGETS)
def test_a_sample_is_read_or_refused(name: str) -> None:
    report = run(TARGETS[name], SEED, inputs(SAMPLE))
    print(report)
    assert report.read, "none of its inputs was good"


@pytest.mark.soak
@pytest.mark.parametrize("name", TARGETS)
def test_a_million_are_read_or_refused(name: str) -> None:
    print(run(TARGETS[name], SEED + 1, inputs(WHOLE)))


def lay_out(root: Path, profile: str) -> list[Path]:
    """Write `echo`, which the neighbour asks, and `own`, a handler of the profile's own kind."""
    repository, own = root / "models", root / "own"
    models.identity(repository, "echo", rows=16)
    if profile == "triton":
        own = repository / "own"
        files = {"1/model.py": TRITON, "config.pbtxt": CONFIG.replace("count: 2", "count: 1")}
    elif profile == "djl":
        files = {"model.py": DJL, "serving.properties": "engine=Python\nminWorkers=1\nmaxWorkers=1\n"}
    else:
        manifest = MANIFEST.replace('"echo"', '"own"')
        files = {"handler.py": TORCHSERVE, "MAR-INF/MANIFEST.json": manifest, "c.yaml": "maxWorkers: 1\n"}
    for name, text in files.items():
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(text)
    return [repository] if profile == "triton" else [repository, own]


def attack(server: ServerProcess, profile: str) -> Counter[int]:
    """Send the inputs of both wires; the statuses of what was answered over HTTP."""
    found: Counter[int] = Counter()
    target = http_target(profile)
    for index in range(HTTP_INPUTS):
        data, _ = target.input(SEED, index)
        said = send(server.port, data)
        came = statuses(said)
        is_ours = b"a fault of its own" in said or (500 in came and profile not in SAYS_500)
        assert not is_ours, (
            f"input {index} of {target.name}: {data.hex()}\n{said[:2000]!r}\n{server.said()[-4000:]}"
        )
        found.update(came)
    grpc_port = int(server.grpc_address.rpartition(":")[2])
    target = h2_target(profile)
    for index in range(H2_INPUTS):
        data, _ = target.input(SEED, index)
        send(grpc_port, data)
        assert not server.has_ended(), f"input {index} of {target.name}: {data.hex()}"
    return found


@pytest.mark.parametrize("profile", PROFILES)
def test_a_server_answers_its_neighbours_meanwhile(tmp_path: Path, profile: str) -> None:
    paths = lay_out(tmp_path, profile)
    with running(tmp_path / "log", "serve", *paths, "--profile", profile) as server:
        with withstanding(server), watched(server) as watch:
            found = attack(server, profile)
        print(f"{profile}: {dict(found)}, the longest wait {watch.longest:.3f} s")
        assert found[200], "none was good"
        assert sum(found.values()) > HTTP_INPUTS // 2
        assert watch.longest <= MOST_SECONDS, server.said()


REFUSED = (
    get("/v2/models/nobody"),
    get("/v2/models/nobody/stats"),
    get("/v2/nowhere"),
    post("/v2/models/nobody/infer", b"{}"),
    post("/v2/models/echo/infer", b'{"inputs": ['),
    post("/v2/models/echo/trace/setting", b'{"a": ' + bytes(1000)),
    post("/v2/models/echo/generate", b"[]"),
)
TURNS, AT_ONCE, LEAST_LEAK = 40, 100, 1000


def test_refusals_leave_nothing_in_memory(tmp_path: Path) -> None:
    """An error that is kept with its frames takes kilobytes; anybody can cause it as often as he likes."""
    repository = lay_out(tmp_path, "triton")[0]
    grown = {}
    with serve(tmp_path / "log", repository) as server:
        for request in REFUSED:
            sizes = []
            for turn in range(TURNS):
                if turn == TURNS // 4:
                    sizes.append(server.process.memory_info().rss)
                came = statuses(send(server.port, request * AT_ONCE))
                assert min(came) >= 400
                assert len(came) == AT_ONCE
            sizes.append(server.process.memory_info().rss)
            grown[request.partition(b" HTTP")[0]] = (sizes[1] - sizes[0]) / (TURNS * AT_ONCE * 3 / 4)
    assert max(grown.values()) < LEAST_LEAK, grown
