"""Rounds of what goes wrong on a cluster of Ray, under 16 senders: every request ends once, and none is run twice.

The one proxy lives, on the head. What was handed to a replica that dies ends with a status of 500 or above, or is cut;
all else is answered. `ROUNDS` of each kind are run by `make ray`, one by `make e2e`.
"""

import contextlib
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest
from tests.harness.server_process import until

pytest.importorskip("ray", reason="Ray is not in this environment; `make ray` makes one that has it.")

from tests.harness.ray_cluster import RayCluster, ray_cluster, replicas

pytestmark = pytest.mark.filterwarnings("default")

SEED = 20261128
NODES = 3
SENDERS = 16
ROUNDS = int(os.environ.get("TRIVIUM_RAY_ROUNDS", "1"))
STEADY = 20
"""Requests that are answered between two rounds."""

DRAIN_SECONDS = 30.0
ANSWER_SECONDS = 120.0

HANDLER = """
import os
import time
from collections.abc import Iterator


def note(name: str) -> None:
    with open(os.environ["HOME"] + "/executed", "a") as file:
        file.write(name + "\\n")


class Echo:
    def predict(self, name: str, pause: float) -> str:
        note(name)
        time.sleep(pause)
        return name + " {mark}"
"""
WORDS = """
import os
import time
from collections.abc import Iterator


def note(name: str) -> None:
    with open(os.environ["HOME"] + "/executed", "a") as file:
        file.write(name + "\\n")


class Words:
    def predict(self, name: str, pause: float) -> Iterator[str]:
        note(name)
        for number in range(4):
            time.sleep(pause / 4)
            yield name + " " + str(number) + ";"
"""


@dataclass
class Outcomes:
    """How requests ended: by name, and counted."""

    ends: Counter[str] = field(default_factory=Counter)
    answered: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stop: threading.Event = field(default_factory=threading.Event)

    def note(self, name: str, end: str) -> None:
        """A request has ended so."""
        with self.lock:
            self.ends[end] += 1
            if end == "right":
                self.answered.add(name)
            else:
                self.failed[name] = end


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where handlers write what they execute."""
    folder = tmp_path_factory.mktemp("home")
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "echo.py").write_text(HANDLER.replace("{mark}", name))
        (folder / name / "words.py").write_text(WORDS)
    (folder / "executed").touch()
    before = os.environ["HOME"]
    os.environ["HOME"] = str(folder)
    yield folder
    os.environ["HOME"] = before


@pytest.fixture(scope="module")
def cluster(home: Path) -> Iterator[RayCluster]:
    """A replica on each of three nodes."""
    with ray_cluster(NODES) as made:
        made.deploy(application(home / "one", 0))
        made.await_running("models", NODES)
        yield made


def application(folder: Path, revision: int) -> dict[str, object]:
    """The configuration of the application, with the models of this folder."""
    paths = [f"{folder}/echo.py:Echo", f"{folder}/words.py:Words"]
    args = {"paths": paths, "drain_timeout": DRAIN_SECONDS}
    deployment = {
        "name": "trivium",
        "num_replicas": NODES,
        "user_config": {"paths": paths, "revision": revision},
        "health_check_period_s": 1,
        "health_check_timeout_s": 10,
    }
    return {
        "name": "models",
        "route_prefix": "/",
        "import_path": "trivium.ray:app",
        "args": {
            **args,
            "paths": [f"{folder.parent}/one/echo.py:Echo", f"{folder.parent}/one/words.py:Words"],
        },
        "deployments": [deployment],
    }


@contextlib.contextmanager
def senders(port: int, executed: Path) -> Iterator[Outcomes]:
    """16 closed loops that ask until the end of the block. Then all that they asked has ended, none of it ran twice."""
    outcomes = Outcomes()
    executed.write_text("")
    with ThreadPoolExecutor(SENDERS) as threads:
        asking = [threads.submit(send, port, number, outcomes) for number in range(SENDERS)]
        try:
            yield outcomes
        finally:
            outcomes.stop.set()
            for each in asking:
                each.result(ANSWER_SECONDS * 2)
    counts = Counter(executed.read_text().split())
    assert {name: count for name, count in counts.items() if count > 1} == {}, "executed twice"
    assert {name: counts[name] for name in outcomes.answered if counts[name] != 1} == {}, "answered by nobody"


def send(port: int, number: int, outcomes: Outcomes) -> None:
    """Ask one request after the other; every fourth is answered in parts."""
    chance = random.Random(f"{SEED} {number}")
    count = 0
    while not outcomes.stop.is_set():
        count += 1
        name = f"{os.urandom(3).hex()}-{number}-{count}"
        model = "Words" if count % 4 == 0 else "Echo"
        outcomes.note(name, asked(port, model, name, chance.uniform(0.0, 0.1)))


def asked(port: int, model: str, name: str, pause: float) -> str:
    """How a request ended: `right`, `cut`, the status of 500 or above, or whatever must not be."""
    connection = HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    try:
        connection.request(
            "POST",
            f"/predictions/{model}",
            f'{{"name": "{name}", "pause": {pause}}}',
            {"Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        status, body = answer.status, answer.read().decode()
    except TimeoutError:
        return "never ended"
    except (HTTPException, OSError):
        return "cut"
    finally:
        connection.close()
    if status >= 500:
        return str(status)
    wanted = f"{name} (one|two)" if model == "Echo" else "".join(f"{name} {part};" for part in range(4))
    return "right" if status == 200 and re.fullmatch(wanted, body) else f"wrong: {status} {body[:200]}"


def steady(outcomes: Outcomes, more: int = STEADY) -> None:
    """Wait until so many more are answered."""
    start = outcomes.ends["right"]
    until(lambda: outcomes.ends["right"] >= start + more, lambda: f"{outcomes.ends}")


def rounds(cluster: RayCluster, home: Path, act: Callable[[random.Random, int], None]) -> Outcomes:
    """Have it go wrong so often, under load, each time from a whole cluster."""
    chance = random.Random(SEED)
    with senders(cluster.port, home / "executed") as outcomes:
        for number in range(ROUNDS):
            steady(outcomes)
            time.sleep(chance.uniform(0, 0.1))
            act(chance, number)
            cluster.await_running("models", NODES)
        steady(outcomes)
    return outcomes


def only_those_in_hand(outcomes: Outcomes, deaths: int) -> None:
    """No more failed than the senders can have had in hand at the dead, each time with a status or a cut."""
    bad = {end for end in outcomes.ends if end not in ("right", "cut") and not end.isdecimal()}
    assert not bad, outcomes.ends
    assert len(outcomes.failed) <= deaths * SENDERS, outcomes.ends


def test_killed_replicas(cluster: RayCluster, home: Path) -> None:
    def kill(chance: random.Random, number: int) -> None:
        victim = chance.choice(sorted(replicas(), key=lambda each: each.pid))
        os.kill(victim.pid, signal.SIGKILL)
        until(lambda: not victim.is_running() or victim.status() == "zombie", lambda: str(victim))
        until(lambda: not cluster.is_running("models", NODES), lambda: "Ray has not noticed")

    only_those_in_hand(rounds(cluster, home, kill), ROUNDS)


def test_killed_nodes(cluster: RayCluster, home: Path) -> None:
    def kill(chance: random.Random, number: int) -> None:
        node = chance.choice(cluster.nodes)
        cluster.replace(node)
        cluster.kill(node)
        until(lambda: not cluster.is_running("models", NODES), lambda: "Ray has not noticed")

    only_those_in_hand(rounds(cluster, home, kill), ROUNDS)


def test_drained_nodes_lose_nothing(cluster: RayCluster, home: Path) -> None:
    def drain(chance: random.Random, number: int) -> None:
        node = chance.choice(cluster.nodes)
        cluster.replace(node)
        cluster.drain(node, DRAIN_SECONDS * 4)
        until(lambda: not cluster.is_running("models", NODES), lambda: "Ray has not noticed")
        cluster.await_running("models", NODES)
        cluster.kill(node)

    outcomes = rounds(cluster, home, drain)
    assert outcomes.failed == {}, outcomes.ends


def test_reconfigured_replicas_lose_nothing(cluster: RayCluster, home: Path) -> None:
    def reconfigure(chance: random.Random, number: int) -> None:
        wanted = "one" if number % 2 else "two"
        cluster.deploy(application(home / wanted, number + 1))
        until(
            lambda: all(marked(cluster.port) == wanted for _ in range(NODES * 4)), lambda: f"never {wanted}"
        )

    outcomes = rounds(cluster, home, reconfigure)
    assert outcomes.failed == {}, outcomes.ends


def marked(port: int) -> str:
    """Which of the two handlers answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    with contextlib.closing(connection):
        body = f'{{"name": "{os.urandom(6).hex()}", "pause": 0}}'
        connection.request("POST", "/predictions/Echo", body, {"Content-Type": "application/json"})
        return connection.getresponse().read().decode().rpartition(" ")[2]
