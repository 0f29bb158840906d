"""Every wait has an owner who ends it: whatever an operation waits for, and whatever becomes of that, it is answered.

Each operation of each wire, in each state in which it may wait, while its model is unloaded, unregistered or scaled to
nothing, its worker killed, or the server told to stop. What hangs here hangs for ten minutes; every wait has a deadline
of a few seconds, and a drain one of two. The operations and their models are in `tests.harness.waits`.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest
from tests.harness import waits as w
from tests.harness.raw_http import get
from tests.harness.scripted_server import copied_source, script
from tests.harness.server_process import COMMAND, SECONDS, ServerProcess, environment, started, until
from tests.harness.waits import AskingProgress, WaitingOperation, WaitingScene

DRAIN = 2
Event = Callable[[WaitingScene, str], None]


# -- what becomes of that which is waited for


def unloaded(scene: WaitingScene, model: str) -> None:
    w.http("POST", f"/v2/repository/models/{model}/unload")(scene, AskingProgress())


def unregistered(scene: WaitingScene, model: str) -> None:
    w.http("DELETE", f"/models/{model}")(scene, AskingProgress())


def scaled_to_nothing(scene: WaitingScene, model: str) -> None:
    w.http("PUT", f"/models/{model}?min_worker=0&max_worker=0")(scene, AskingProgress())


def killed(scene: WaitingScene, model: str) -> None:
    """Whatever model: all workers that there are, once."""
    if model == scene.models[0]:
        for worker in scene.running.workers():
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()


def stopped(scene: WaitingScene, model: str) -> None:
    if model == scene.models[0]:
        scene.running.terminate()


EVENTS: Sequence[Event] = (unloaded, unregistered, scaled_to_nothing, killed, stopped)

# -- the scenes


@contextlib.contextmanager
def djl(scene: WaitingScene) -> Iterator[None]:
    w.lay_out_v2(scene)
    w.lay_out_djl(scene)
    with serving(scene, "--profile", "djl", scene.root, scene.bodies):
        yield


@contextlib.contextmanager
def torchserve(scene: WaitingScene) -> Iterator[None]:
    w.lay_out_v2(scene)
    archives = w.lay_out_torchserve(scene)
    store = scene.folder / "store"
    with serving(scene, "--profile", "torchserve", "--torchserve-model-store", store, scene.root, *archives):
        yield


@contextlib.contextmanager
def generating(scene: WaitingScene) -> Iterator[None]:
    script(scene.root / "slow", pause=1.0)
    scene.models.append("slow")
    source = {"PYTHONPATH": str(copied_source(scene.folder / "source"))}
    with serving(scene, scene.root / "slow", variables=source):
        yield


@contextlib.contextmanager
def serving(
    scene: WaitingScene, *words: str | Path, variables: Mapping[str, str] | None = None
) -> Iterator[None]:
    command = [
        *COMMAND,
        "serve",
        "--http-port",
        "0",
        "--grpc-port",
        "0",
        "--drain-timeout",
        str(DRAIN),
        *words,
    ]
    with started(scene.folder / "log", *command, variables={**environment(), **(variables or {})}) as process:
        scene.server = ServerProcess(process, scene.folder / "log")
        until(scene.server.is_ready, scene.server.said)
        yield


Wire = Callable[[WaitingScene], contextlib.AbstractContextManager[None]]
WIRES: Mapping[Wire, Sequence[WaitingOperation]] = {
    djl: (*w.V2, *w.DJL_OPERATIONS),
    torchserve: (*w.V2, *w.TORCHSERVE_OPERATIONS),
    generating: w.GENERATING,
}


def play(folder: Path, wire: Wire, event: Event) -> str:
    """Play one scene; returns how everything was answered, and how long it took to stop."""
    scene = WaitingScene(folder)
    operations = WIRES[wire]
    with ThreadPoolExecutor(64) as threads, wire(scene):  # whose end ends all that waits
        if event is stopped and wire is not generating:
            w.lay_out_loads(scene)
            operations = (*operations, *w.LOADS)
        asked = _all_asked(scene, operations, threads)
        ends = {f"{event.__name__} {model}": threads.submit(event, scene, model) for model in scene.models}
        if event is stopped:
            began = time.monotonic()
        answers = {**asked, **ends}
        faults = {name: error for name, one in answers.items() if (error := one.exception(SECONDS))}
        if event is not stopped:
            began = time.monotonic()
            scene.running.terminate()
        status = scene.running.wait()
        taken = time.monotonic() - began
        said = scene.running.said()
    assert not faults, f"{wire.__name__}, {event.__name__}: {faults}\n{said}"
    assert status in (0, 1), said
    assert "\nTraceback" not in said
    assert "Not everything could be closed" not in said
    told = "\n".join(f"  {name}: {one.result()}" for name, one in asked.items())
    return f"{wire.__name__}, {event.__name__}: stopped in {taken:.1f} s\n{told}"


def _all_asked(
    scene: WaitingScene, operations: Sequence[WaitingOperation], threads: ThreadPoolExecutor
) -> dict[str, "Future[str]"]:
    """Ask everything, and return once each operation is in the state in which it waits."""
    asked: dict[str, Future[str]] = {}
    for is_behind in (False, True):
        for each in operations:
            if each.is_behind is is_behind:
                progress = AskingProgress()
                one = asked[each.name] = threads.submit(each.run, scene, progress)
                if is_behind:
                    assert progress.sent.wait(SECONDS)
                else:
                    until(partial(_waits, scene, each, progress, one), scene.running.said)
    assert (
        scene.running.ask(get("/v2/health/live")).status == 200
    )  # so that all who came before it have been let in
    return asked


def _waits(
    scene: WaitingScene, asked: WaitingOperation, progress: AskingProgress, one: "Future[str]"
) -> bool:
    """Is an operation in its state? One that is over by then never was."""
    assert not one.done() or asked.is_quick, f"{asked.name} did not wait: {one.exception() or one.result()}"
    return (scene.signs / asked.sign).exists() if asked.sign else progress.begun.is_set()


def all_played(tmp_path: Path, scenes: Sequence[tuple[Wire, Event]]) -> None:
    with ThreadPoolExecutor(2) as threads:
        played = [
            threads.submit(play, tmp_path / f"{wire.__name__}-{event.__name__}", wire, event)
            for wire, event in scenes
        ]
    faults = [str(error) for one in played if (error := one.exception())]
    assert not faults, "\n\n".join(faults)
    print("\n".join(one.result() for one in played), file=sys.stderr)


def test_at_a_signal_everybody_is_answered(tmp_path: Path) -> None:
    all_played(tmp_path, [(wire, stopped) for wire in WIRES])


@pytest.mark.soak
def test_whatever_becomes_of_its_model_everybody_is_answered(tmp_path: Path) -> None:
    all_played(tmp_path, [(wire, event) for wire in WIRES for event in EVENTS])
