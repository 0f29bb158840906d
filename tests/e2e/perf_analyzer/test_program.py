"""A program that sleeps for ever by a fault of its own is told from one that waits for a server."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.perf_analyzer import program
from tests.e2e.serving import until

SLEEPS = "import time; {begun}; time.sleep(60)"
ASLEEP = "import threading; lock = threading.Lock(); lock.acquire(); {begun}; lock.acquire()"
ANSWERLESS = """
import select, socket, threading
near, far = socket.socketpair()
def ask():
    poll = select.poll()
    poll.register(near, select.POLLIN)
    {begun}
    poll.poll()
asking = threading.Thread(target=ask)
asking.start()
asking.join()
"""


@pytest.mark.parametrize(("code", "expected"), [(ASLEEP, True), (SLEEPS, True), (ANSWERLESS, False)])
def test_who_waits_for_whom(code: str, expected: bool) -> None:
    words = [sys.executable, "-c", code.format(begun="print(1, flush=True)")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            until(lambda: program.is_asleep(child.pid) is expected, lambda: "it was told wrongly")
        finally:
            child.kill()


@pytest.mark.parametrize(
    ("code", "raised"), [(SLEEPS, program.Asleep), (ANSWERLESS, subprocess.TimeoutExpired)]
)
def test_what_is_raised(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, raised: type[Exception]
) -> None:
    monkeypatch.setattr(program, "PROGRAM", Path(sys.executable))
    monkeypatch.setattr(program, "SECONDS", 1)
    with pytest.raises(raised):
        program.run(tmp_path, "-c", code.format(begun="pass"))
