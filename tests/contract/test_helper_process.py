"""Work in a process beside this one: done, or ended when it is late, when nobody wants it, and when it dies."""

import json
import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from tests.harness.server_process import until

from trivium.machine.helper_process import EndOfWork, HelperLane, HelperProcess, WorkEnded, WorkOpener

WORK = '''
import json
import os
import sys
import threading

from trivium.machine.helper_process import Unopened


def opened(arguments):
    """Does what a piece of work asks for."""
    told = json.loads(arguments)
    if told == "exit":
        sys.exit("it has to go")
    if told == "words":
        raise Unopened("é" * 1000)
    if told == "path":
        raise OSError("/a/path")

    def work(asked):
        if asked == b"pid":
            return b"%d" % os.getpid()
        if asked == b"modules":
            return " ".join(sys.modules).encode()
        if asked == b"endless":
            while True:
                pass
        if asked == b"memory":
            return bytes(2**31)
        if asked == b"exit":
            sys.exit(3)
        if asked == b"die":
            os._exit(4)
        return told.encode() if asked == b"told" else asked[::-1]

    return work
'''
MEMORY = 2**28


@pytest.fixture
def opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What makes a process for some arguments of its work."""
    (tmp_path / "works.py").write_text(WORK)
    monkeypatch.syspath_prepend(str(tmp_path))
    made = []

    def start(arguments: object, function: str = "works:opened") -> HelperProcess:
        made.append(HelperProcess(WorkOpener(function, json.dumps(arguments)), MEMORY))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.fixture
def process(opening):
    return opening("")


@pytest.fixture
def lane(process):
    made = HelperLane(process, 0)
    yield made
    made.close()


def always() -> bool:
    return True


def do(lane, work: bytes, seconds: float = 60.0, is_wanted=always) -> bytes:
    return lane.do(work, time.monotonic(), seconds, is_wanted)


def is_gone(number: int) -> bool:
    return not psutil.pid_exists(number) or psutil.Process(number).status() == psutil.STATUS_ZOMBIE


def test_a_piece_of_work_has_a_result_however_long_it_is(lane):
    for size in (1, 100, 2**20, 2**24 + 1):
        work = os.urandom(size)
        assert do(lane, work) == work[::-1]


def test_nothing_is_started_before_it_is_needed(process, lane):
    assert process.pid is None
    do(lane, b"x")
    assert process.pid is not None


def test_what_is_late_is_killed_and_the_next_is_done(lane):
    number = int(do(lane, b"pid"))
    with pytest.raises(WorkEnded) as caught:
        do(lane, b"endless", 0.3)
    assert (caught.value.reason, caught.value.has_begun) == (EndOfWork.LATE, True)
    assert is_gone(number)
    assert do(lane, b"abc") == b"cba"


def test_what_waited_too_long_is_not_begun(lane):
    do(lane, b"x")
    with pytest.raises(WorkEnded) as caught:
        lane.do(b"endless", time.monotonic() - 5, 0.0, always)
    assert (caught.value.reason, caught.value.has_begun) == (EndOfWork.LATE, False)


def test_what_nobody_wants_any_more_is_killed(lane):
    number = int(do(lane, b"pid"))
    asked = []

    def is_wanted() -> bool:
        asked.append(True)
        return len(asked) < 4

    with pytest.raises(WorkEnded) as caught:
        do(lane, b"endless", is_wanted=is_wanted)
    assert caught.value.reason is EndOfWork.UNWANTED
    assert is_gone(number)
    with pytest.raises(WorkEnded):
        do(lane, b"endless", is_wanted=lambda: False)
    assert do(lane, b"abc") == b"cba"


@pytest.mark.parametrize("work", [b"exit", b"die", b"memory"])
def test_what_ends_its_process_ends_itself_alone(lane, work):
    with pytest.raises(WorkEnded) as caught:
        do(lane, work)
    assert caught.value.reason is EndOfWork.DIED
    assert do(lane, b"abc") == b"cba"


def test_a_lane_does_not_wait_for_another(process, lane):
    other = HelperLane(process, 1)
    with pytest.raises(WorkEnded):
        do(lane, b"endless", 0.3, lambda: do(other, b"abc") != b"cba")
    assert do(lane, b"pid") != do(other, b"pid")
    other.close()


def test_a_process_that_was_killed_is_started_anew(process, lane):
    child = int(do(lane, b"pid"))
    os.kill(process.pid, signal.SIGKILL)
    until(lambda: is_gone(child), lambda: "the child of a process that died lives on")
    with pytest.raises(WorkEnded) as caught:
        do(lane, b"abc")
    assert caught.value.reason is EndOfWork.DIED
    assert do(lane, b"abc") == b"cba"


def test_nothing_is_left_behind(process, lane):
    numbers = [int(do(lane, b"pid")), process.pid]
    process.close()
    assert all(map(is_gone, numbers))
    with pytest.raises(OSError, match="closed"):
        HelperLane(process, 0).do(b"abc", time.monotonic(), 1.0, always)


def test_the_current_folder_is_on_no_path(process, lane, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    for name in ("random", "struct", "json"):
        (here / f"{name}.py").write_text("raise SystemExit('it was run')\n")
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend("")
    assert b"json" in do(lane, b"modules").split()


def test_what_crosses_is_text_and_no_object(lane):
    assert b"pickle" not in do(lane, b"modules").split()


@pytest.mark.parametrize(
    ("arguments", "function", "words"),
    [
        ("exit", "works:opened", "could not be started: SystemExit; its last lines"),
        ("path", "works:opened", "could not be started: OSError; its last lines"),
        ("words", "works:opened", "could not be started: " + "é" * 500 + "; its last lines"),
        ("", "works:nothing", "could not be started: AttributeError; its last lines"),
        ("", "nowhere:opened", "could not be started: ModuleNotFoundError; its last lines"),
    ],
)
def test_work_that_cannot_be_opened_is_named_and_tried_anew(opening, arguments, function, words):
    process = opening(arguments, function)
    lane = HelperLane(process, 0)
    for _ in range(2):
        with pytest.raises(OSError, match=words):
            do(lane, b"abc")
        assert process.pid is None


def test_what_opens_work_is_told_its_arguments(opening):
    lane = HelperLane(opening("some text of ü"), 0)
    assert do(lane, b"told").decode() == "some text of ü"
    lane.close()
