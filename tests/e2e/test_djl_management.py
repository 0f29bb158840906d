"""Models of a DJL server that come, go and are scaled while clients ask: nothing is lost, and nothing stays behind."""

import math
import random
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest
from tests.harness.djl_serving import DjlServing, djl_serving
from tests.harness.raw_http import ask, get
from tests.harness.server_process import until

SLOW = """
import time
from djl_python import Output
def handle(inputs):
    if inputs.is_empty():
        return None
    time.sleep(0.02)
    return Output().add("{}")
"""
FAILS = "def handle(inputs):\n    raise RuntimeError('no weights')\n"
MODELS, CLIENTS, OPERATIONS, LEAST_SECONDS = 20, 8, 300, 60.0


def write(root: Path, name: str, code: str, *lines: str) -> Path:
    place = root / name
    place.mkdir(parents=True)
    (place / "model.py").write_text(code)
    (place / "serving.properties").write_text("\n".join(("minWorkers=1", "maxWorkers=2", *lines)) + "\n")
    return place


# -- from the first connection on --------------------------------------------------------------------------


def first_pings(root: Path, number: int) -> list[tuple[int, dict[str, str]]]:
    """Start a server, and return what its /ping says from the first accepted connection on until all is served."""
    variables = {"SERVING_WAIT_MODEL_LOADING": "false"}
    slow = f"import time\ntime.sleep({0.05 * (number % 4)})\n"
    names = [f"m{index}" for index in range(1 + number % 3)]
    store = root / str(number)
    for name in names:
        write(store, name, slow + SLOW.format(name))
    found: list[tuple[int, dict[str, str]]] = []
    with djl_serving(root / f"log{number}", "-s", store, variables=variables) as server:
        while not found or set(found[-1][1].values()) != {"Healthy"}:
            answer = ask(server.port, get("/ping"))
            found.append((answer.status, {name: each["status"] for name, each in answer.document.items()}))
            assert found[-1][1].keys() == set(names), found
            time.sleep(0.005)
    return found


def test_a_ping_is_never_a_bare_200_before_all_is_served(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as threads:
        starts = list(threads.map(lambda number: first_pings(tmp_path, number), range(50)))
    assert all(status == 200 for pings in starts for status, _ in pings)
    assert any("PENDING" in states.values() for pings in starts for _, states in pings)


# -- under load --------------------------------------------------------------------------------------------


class Scene:
    """The models that a server has, when each was surely there or surely not, and what clients were answered."""

    def __init__(self, server: DjlServing, root: Path, seed: int) -> None:
        self.server, self.root = server, root
        self.chance = random.Random(seed)
        self.lock = threading.Lock()
        self.there: dict[str, set[str]] = defaultdict(set)
        self.since: dict[str, float] = {}
        self.asking: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.odd: list[str] = []
        self.leaves = threading.Event()

    # -- clients

    def live(self, seed: int) -> None:
        chance = random.Random(seed)
        with closing(HTTPConnection("127.0.0.1", self.server.port, timeout=60)) as connection:
            while not self.leaves.is_set():
                self.ask(connection, f"m{chance.randrange(MODELS)}")

    def ask(self, connection: HTTPConnection, name: str) -> None:
        with self.lock:
            self.asking[name] += 1
            before, since = set(self.there[name]), self.since.get(name, 0.0)
        began = time.monotonic()
        connection.request("POST", f"/predictions/{name}", b"x")
        answer = connection.getresponse()
        body = answer.read().decode()
        with self.lock:
            self.asking[name] -= 1
            is_still = self.since.get(name, 0.0) == since and since < began
            self.counts[str(answer.status)] += 1
            after = self.there[name]
            self.judge(name, answer.status, body, before, after, is_still)

    def judge(
        self, name: str, status: int, body: str, before: set[str], after: set[str], is_still: bool
    ) -> None:
        """Note an answer that could not be: `is_still` of a model that nobody has changed meanwhile."""
        told = f"{name}: {status} {body[:200]}, registered {before} and {after}"
        if status == 200 and (
            not body.startswith(f"{name}:") or (is_still and body.partition(":")[2] not in before)
        ):
            self.odd.append(told)
        if status == 404 and is_still and before:
            self.odd.append(told)
        if status not in (200, 404, 503):
            self.odd.append(told)

    # -- who manages

    def change(self, name: str, versions: set[str], is_done: bool = True) -> None:
        """Note what is registered; before it `is_done` nobody can say what a client will find."""
        with self.lock:
            self.there[name] = versions
            self.since[name] = time.monotonic() if is_done else math.inf

    def operate(self) -> str:
        busy = [name for name, count in self.asking.items() if count]
        name = (
            self.chance.choice(busy)
            if busy and self.chance.random() < 0.5
            else f"m{self.chance.randrange(MODELS)}"
        )
        is_busy = bool(self.asking[name])
        versions = set(self.there[name])
        act = self.chance.choice(("register", "scale", "unregister", "fail", "version"))
        if act == "fail":
            answer = self.server.manage(
                "POST", f"/models?url={self.root}/bad&model_name={name}&model_version=v9"
            )
            assert answer.status in (409, 500), answer
        elif not versions or act in ("register", "version"):
            self.add(name, versions)
        elif act == "scale":
            answer = self.server.manage(
                "PUT", f"/models/{name}?min_worker=1&max_worker={self.chance.choice((1, 2))}"
            )
            assert answer.status == 200, answer
        else:
            self.remove(name, versions)
        return "while it is asked" if is_busy else "at rest"

    def add(self, name: str, versions: set[str]) -> None:
        version = self.chance.choice(("v1", "v2"))
        url = f"{self.root}/{name}-{version}"
        if version in versions:
            answer = self.server.manage(
                "POST", f"/models?url={url}&model_name={name}&model_version={version}"
            )
            assert answer.status == 409, answer
            return
        self.change(name, versions | {version}, is_done=False)
        answer = self.server.manage("POST", f"/models?url={url}&model_name={name}&model_version={version}")
        assert answer.status == 200, answer
        self.change(name, versions | {version})

    def remove(self, name: str, versions: set[str]) -> None:
        version = self.chance.choice(sorted(versions))
        self.change(name, versions - {version}, is_done=False)
        assert self.server.manage("DELETE", f"/models/{name}/{version}").status == 200
        self.change(name, versions - {version})


def test_every_request_is_answered_by_a_model_that_was_there(tmp_path: Path) -> None:
    for index in range(MODELS):
        for version in ("v1", "v2"):
            write(tmp_path, f"m{index}-{version}", SLOW.format(f"m{index}:{version}"))
    write(tmp_path, "bad", FAILS)
    with djl_serving(tmp_path / "log", variables={"SERVING_LOAD_MODELS": "NONE"}, split=True) as server:
        scene = Scene(server, tmp_path, 20261125)
        kinds: Counter[str] = Counter()
        with ThreadPoolExecutor(CLIENTS) as threads:
            clients = [threads.submit(scene.live, seed) for seed in range(CLIENTS)]
            try:
                end = time.monotonic() + LEAST_SECONDS
                while kinds.total() < OPERATIONS or time.monotonic() < end:
                    kinds[scene.operate()] += 1
            finally:
                scene.leaves.set()
            for client in clients:
                client.result(120)
        assert not scene.odd, scene.odd[:5]
        assert kinds["while it is asked"] >= 50, kinds
        assert scene.counts["200"] > OPERATIONS, scene.counts
        left_as_it_should_be(scene)
        for name in [name for name, versions in scene.there.items() if versions]:
            assert server.manage("DELETE", f"/models/{name}").status == 200
        until(lambda: not server_workers(server), server.said)
        assert server.manage("GET", "/models").document == {"models": []}


def left_as_it_should_be(scene: Scene) -> None:
    """What is described is what was registered, with as many workers as are there."""
    expected = {(name, version) for name, versions in scene.there.items() for version in versions}

    def described() -> bool:
        listed = scene.server.manage("GET", "/models").document["models"]
        found = {(row["modelName"], row["version"]) for row in listed}
        counted = 0
        for name in {name for name, _ in expected}:
            for about in scene.server.manage("GET", f"/models/{name}").document:
                for group in about["models"][0]["workerGroups"]:
                    assert group["minWorkers"] <= len(group["workers"]) + 1 <= group["maxWorkers"] + 1
                    counted += len(group["workers"])
        return found == expected and counted == len(server_workers(scene.server))

    until(described, scene.server.said)


def server_workers(server: DjlServing) -> list[psutil.Process]:
    """The processes that run models."""
    found = []
    for child in server.process.children(recursive=True):
        try:
            words = child.cmdline()
        except psutil.Error:
            continue
        if any(word.endswith("trivium_worker") for word in words):
            found.append(child)
    return found


# -- more workers with more work, and fewer without --------------------------------------------------------


def workers_of(server: DjlServing, name: str) -> int:
    (about,) = server.manage("GET", f"/models/{name}").document
    return sum(len(group["workers"]) for group in about["models"][0]["workerGroups"])


@pytest.mark.parametrize("seed", [1])
def test_workers_grow_to_the_maximum_under_load_and_go_when_they_idle(tmp_path: Path, seed: int) -> None:
    place = write(
        tmp_path, "m", SLOW.format("m:v1").replace("0.02", "0.1"), "max_idle_time=1", "job_queue_size=100"
    )
    place.joinpath("serving.properties").write_text("minWorkers=1\nmaxWorkers=3\nmax_idle_time=1\n")
    with djl_serving(tmp_path / "log", "-m", place) as server:
        assert workers_of(server, "m") == 1
        leaves = threading.Event()

        def keep_asking(_: int) -> int:
            count = 0
            with closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
                while not leaves.is_set():
                    connection.request("POST", "/predictions/m", b"x")
                    assert connection.getresponse().read() == b"m:v1"
                    count += 1
            return count

        with ThreadPoolExecutor(9) as threads:
            clients = [threads.submit(keep_asking, number) for number in range(9)]
            until(lambda: workers_of(server, "m") == 3, server.said)
            leaves.set()
            assert all(client.result(60) > 0 for client in clients)
        until(lambda: workers_of(server, "m") == 1, server.said)
