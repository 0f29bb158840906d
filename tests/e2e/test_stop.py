"""SIGTERM and SIGINT whatever hangs: the process is gone, its status says what was cut off, and nothing is left.

What hangs is laid out by `tests.harness.hanging` and `hanging_clients`; several servers at a time.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from tests.fixtures import models
from tests.harness import hanging as h
from tests.harness import hanging_clients as c
from tests.harness.hanging import Act, Stage
from tests.harness.raw_http import connect
from tests.harness.server_process import ServerProcess, living, until
from tests.harness.staged_server import SECONDS, StagedServer, answers, child_of

GRACE = 0.5
START_CPU = 10.0
AT_ONCE = 4
CUT, CLEAN = {1}, {0}
EARLY = CUT | CLEAN | {-signal.SIGTERM, -signal.SIGINT}
"""Before a server takes signals, and when it has been refused and ends, a signal ends it as any process."""

Scene = Callable[[Stage], Act | None]
SCENES: Mapping[Scene, set[int]] = {
    h.worker_sleeps: CUT,
    h.worker_is_deaf: CUT,
    h.worker_blocks_signals: CUT,
    h.worker_holds_the_lock: CUT,
    h.worker_is_stopped: CUT,
    h.worker_is_stopped_at_work: CUT,
    h.worker_hangs_in_finalize: CUT,
    h.worker_holds_the_lock_in_finalize: CUT,
    h.worker_has_children: CUT,
    h.worker_has_deaf_children_elsewhere: CLEAN,
    h.worker_has_orphans: CLEAN,
    h.worker_forks_and_both_hang: CUT,
    h.worker_prints_without_end: CUT,
    h.handlers_call_one_another: CUT,
    h.requests_wait_behind_one_that_hangs: CUT,
    h.sequence_is_at_work: CUT,
    h.stream_has_no_end: CUT,
    h.onnx_runs_for_ever: CUT,
    h.thread_sleeps: CUT,
    h.unload_waits_for_one_that_hangs: CUT,
    h.load_by_a_client_hangs: CLEAN,
    h.reload_hangs_while_the_old_one_works: CLEAN,
    h.polled_folder_has_pipes: CLEAN,
    h.import_hangs: CLEAN,
    h.initialize_hangs: CLEAN,
    h.completion_hangs: CLEAN,
    h.warm_up_hangs: CLEAN,
    h.warm_up_of_onnx_hangs: CLEAN,
    h.files_of_models_are_pipes: EARLY,
    c.body_never_comes: CUT,
    c.head_never_ends: CLEAN,
    c.nobody_reads_the_answer: CUT,
    c.nobody_reads_the_metrics: CLEAN,
    c.handshakes_stay_half_done: CLEAN,
    c.grpc_message_never_comes: CUT,
    c.grpc_stream_is_idle: CLEAN,
    c.grpc_greeting_never_ends: CLEAN,
    c.grpc_answer_is_not_read: CUT,
    c.grpc_stream_is_not_read: CUT,
    c.grpc_call_hangs: CUT,
    c.nobody_reads_what_it_prints: CLEAN,
    c.nobody_reads_its_log: CLEAN,
    c.nobody_reads_the_access_log: CLEAN,
    c.nobody_reads_the_traces: CLEAN,
    c.collector_does_not_answer: CLEAN,
    c.keys_become_a_pipe: CLEAN,
    c.configuration_is_a_pipe: EARLY,
    c.keys_are_a_pipe: EARLY,
    c.certificate_is_a_pipe: EARLY,
}
"""What hangs -> the exit statuses that it may have."""

SIGNALS = [signal.SIGTERM, signal.SIGINT]


def is_at_pipe(number: int) -> bool:
    """Does a process wait for somebody to open the other end of a named pipe?"""
    return Path(f"/proc/{number}/wchan").read_text() in ("wait_for_partner", "fifo_open")


def play(folder: Path, scene: Scene, number: signal.Signals) -> tuple[float, int]:
    """Play one scene; the seconds from the signal to the end, and the exit status."""
    stage = Stage(folder)
    act = scene(stage)
    with child_of(stage, "--drain-timeout", str(GRACE)) as (child, log, scratch):
        if act is not None:
            server = StagedServer(child, log, stage.port)
            act(server)
        elif scene is c.configuration_is_a_pipe:
            until(lambda: is_at_pipe(child.pid), log.read_text)
        elif SCENES[scene] == EARLY:
            until(
                lambda: len(living(scratch)) >= 2 or child.poll() is not None, log.read_text
            )  # with its guard
            time.sleep(0.5)
        else:
            if stage.signs:
                stage.await_hang()
            # The server, its guard, and what loads; or it loads by itself, and what probed the model has gone again.
            until(lambda: len(living(scratch)) >= 3 or computes(child.pid), log.read_text)
            time.sleep(0.3)
        began = time.monotonic()
        child.send_signal(number)
        status = child.wait(SECONDS)
        taken = time.monotonic() - began
        said = log.read_text()
        assert status in SCENES[scene], f"{scene.__name__} ended with {status}: {said}"
        own = [line for line in said.splitlines() if line.startswith("Traceback")]
        assert not own, said
    return taken, status


def computes(pid: int) -> bool:
    """Has a process computed for longer than a start takes?"""
    return bool(psutil.Process(pid).cpu_times().user > START_CPU)


@pytest.mark.parametrize("number", SIGNALS)
def test_it_stops_whatever_hangs(tmp_path: Path, number: signal.Signals) -> None:
    # Whoever runs the tests in the background of a shell has them ignore SIGINT, which children inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    shared = {name for name in os.listdir("/dev/shm") if name.startswith("trivium")}
    with ThreadPoolExecutor(AT_ONCE) as threads:
        played = {scene: threads.submit(play, tmp_path / scene.__name__, scene, number) for scene in SCENES}
    faults = {scene.__name__: one.exception() for scene, one in played.items() if one.exception()}
    assert not faults, "\n\n".join(f"{name}: {fault!r}" for name, fault in faults.items())
    assert {name for name in os.listdir("/dev/shm") if name.startswith("trivium")} <= shared
    print(
        number.name, sorted((*one.result(), scene.__name__) for scene, one in played.items()), file=sys.stderr
    )


@pytest.mark.parametrize("number", SIGNALS)
def test_what_is_idle_ends_with_0_at_the_default_grace(tmp_path: Path, number: signal.Signals) -> None:
    stage = Stage(tmp_path)
    stage.python("pass")
    models.identity(stage.models, "echo", rows=16)
    with child_of(stage) as (child, log, _):
        server = ServerProcess(child, log)
        with connect(server.port):
            server.signal(number)
            assert child.wait(SECONDS) == 0, server.said()
        assert not answers(server.port)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_ends_a_drain(tmp_path: Path, number: signal.Signals) -> None:
    stage = Stage(tmp_path)
    act = h.worker_sleeps(stage)
    with child_of(stage, "--drain-timeout", "900") as (child, log, _):
        server = ServerProcess(child, log)
        act(server)
        server.signal(number)
        time.sleep(1.5)
        assert child.poll() is None, server.said()
        server.signal(number)
        assert child.wait(SECONDS) == 1, server.said()
