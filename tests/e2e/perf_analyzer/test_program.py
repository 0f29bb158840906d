"""A program that sleeps for ever by a fault of its own is told from one that waits for a server."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.perf_analyzer import models, program
from tests.harness.server_process import until
from tests.harness.tritonserver import TritonServer, tritonserver

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


# -- by the program itself, of a server that owes it an answer ---------------------------------------------------


@pytest.fixture(scope="module")
def owing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    root = models.write_repository(tmp_path_factory.mktemp("models"))
    (root / "sleeper" / "1" / "model.py").write_text(models.SLEEPER.replace("0.002", "5"))
    with tritonserver(tmp_path_factory.mktemp("server") / "log", "--model-repository", root) as server:
        yield server


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--async", "--concurrency-range", "4"),
        ("--request-rate-range", "60"),
        ("-i", "grpc"),
        ("-i", "grpc", "--async", "--concurrency-range", "4"),
        ("-i", "grpc", "--async", "--streaming"),
    ],
    ids=["HTTP", "HTTP, asynchronous", "HTTP, at a rate", "gRPC", "gRPC, asynchronous", "gRPC, a stream"],
)
def test_who_waits_for_an_answer_is_not_asleep(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, owing: TritonServer, flags: tuple[str, ...]
) -> None:
    monkeypatch.setattr(program, "SECONDS", 2)
    where = owing.address("grpc" if "grpc" in flags else "http")
    with pytest.raises(subprocess.TimeoutExpired):
        program.run(
            program.libraries(tmp_path), "-m", "sleeper", "-u", where, *flags, "--request-count", "128"
        )
