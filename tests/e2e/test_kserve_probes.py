"""The probes of our manifests, while a pod starts, is busy, has a dead model, and ends: what they say is what is.

The chart's probes are the same, which a test of the chart holds them to.
"""

import http.client
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
from tests.harness.kserve_pod import Pod, pod
from tests.harness.server_process import SECONDS, is_guard, until

HANDLER = """
import os, time
from djl_python import Input, Output

PLACE = os.environ["PLACE"]

def handle(inputs):
    if inputs.is_empty():
        if os.path.exists(os.path.join(PLACE, "broken")):
            raise ValueError("the weights are gone")
        while not os.path.exists(os.path.join(PLACE, "loaded")):
            time.sleep(0.02)
        return None
    open(os.path.join(PLACE, "asked"), "w").close()
    while not os.path.exists(os.path.join(PLACE, "done")):
        time.sleep(0.02)
    return Output().add("answered")
"""


class Scene:
    """A pod with a handler that loads, answers and fails when files are there."""

    def __init__(self, running: Pod, place: Path) -> None:
        self.pod = running
        self.place = place

    def allow(self, *names: str) -> None:
        """Make files that the handler waits for."""
        for name in names:
            (self.place / name).touch()

    def ask(self) -> tuple[int, bytes]:
        """One request; ends when the handler may answer."""
        plug = http.client.HTTPConnection("127.0.0.1", self.pod.http, timeout=SECONDS)
        plug.request("POST", "/predictions/slow", b"x", {"Content-Type": "text/plain"})
        answer = plug.getresponse()
        found = answer.status, answer.read()
        plug.close()
        return found

    def says(self, **probes: bool) -> bool:
        """Whether the probes say this."""
        return {name: self.pod.probe(name) for name in probes} == probes

    def await_said(self, **probes: bool) -> None:
        """Wait until the probes say this."""
        until(lambda: self.says(**probes), lambda: f"not {probes}:\n{self.pod.said()}")

    def workers(self) -> list[psutil.Process]:
        """The processes of handlers."""
        family = self.pod.process.children(recursive=True)
        return [each for each in family if not is_guard(each)]


@contextmanager
def scene(tmp_path: Path) -> Iterator[Scene]:
    mount, place = tmp_path / "mnt" / "models", tmp_path / "place"
    (mount / "slow").mkdir(parents=True)
    place.mkdir()
    (mount / "slow" / "model.py").write_text(HANDLER)
    (mount / "slow" / "serving.properties").write_text("engine=Python\nminWorkers=1\nmaxWorkers=1\n")
    with pod("trivium", mount, tmp_path / "log", variables={"PLACE": str(place)}) as running:
        made = Scene(running, place)
        try:
            yield made
        finally:
            made.allow("loaded", "done")


def test_while_a_model_loads_a_pod_lives_and_is_not_ready(tmp_path: Path) -> None:
    with scene(tmp_path) as slow:
        slow.await_said(startup=True)
        assert slow.says(startup=True, liveness=True, readiness=False)
        slow.allow("loaded")
        slow.await_said(readiness=True)
        assert slow.says(startup=True, liveness=True)


def test_a_busy_pod_answers_its_probes(tmp_path: Path) -> None:
    """More requests wait than there are workers; the probes are answered within their own time-out."""
    with scene(tmp_path) as slow, ThreadPoolExecutor(8) as threads:
        slow.allow("loaded")
        slow.pod.await_ready()
        asked: list[Future[tuple[int, bytes]]] = [threads.submit(slow.ask) for _ in range(8)]
        until((slow.place / "asked").exists, slow.pod.said)
        for _ in range(10):
            assert slow.says(startup=True, liveness=True, readiness=True)
        slow.allow("done")
        assert [each.result(SECONDS)[0] for each in asked] == [200] * 8


def test_a_dead_model_takes_the_pod_from_its_endpoints_and_does_not_restart_it(tmp_path: Path) -> None:
    with scene(tmp_path) as slow:
        slow.allow("loaded")
        slow.pod.await_ready()
        slow.allow("broken")  # none that is started in its place loads
        for worker in slow.workers():
            worker.send_signal(signal.SIGKILL)
        slow.await_said(readiness=False)
        assert slow.says(startup=True, liveness=True)
        (slow.place / "broken").unlink()


def test_a_model_whose_worker_died_once_comes_back_by_itself(tmp_path: Path) -> None:
    with scene(tmp_path) as slow:
        slow.allow("loaded", "done")
        slow.pod.await_ready()
        killed = {worker.pid for worker in slow.workers()}
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        until(
            lambda: {each.pid for each in slow.workers()}.isdisjoint(killed) and slow.ask()[0] == 200,
            slow.pod.said,
        )
        slow.await_said(startup=True, liveness=True, readiness=True)


def test_a_pod_that_ends_is_not_ready_and_finishes_what_it_has(tmp_path: Path) -> None:
    """From SIGTERM on new connections are refused or answered as not ready, and what is in work is answered."""
    with scene(tmp_path) as slow, ThreadPoolExecutor(1) as threads:
        slow.allow("loaded")
        slow.pod.await_ready()
        asked = threads.submit(slow.ask)
        until((slow.place / "asked").exists, slow.pod.said)
        slow.pod.signal(signal.SIGTERM)
        slow.await_said(readiness=False)
        assert not slow.pod.has_ended()
        assert not asked.done()
        slow.allow("done")
        assert asked.result(SECONDS)[0] == 200
        assert slow.pod.wait() == 0, slow.pod.said()
