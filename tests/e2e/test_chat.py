"""`trivium chat` and `trivium run`: a conversation over a server's own API, through a pipe and at a terminal."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.harness.scripted_server import TEXTS, copied_source, script, scripted
from tests.harness.server_process import SECONDS, ServerProcess, environment, until

ANSWER = TEXTS["*"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied_source(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def server(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("models")
    with scripted(source, folder / "log", script(folder / "m"), script(folder / "slow", pause=0.3)) as server:
        yield server


def words(*arguments: str | Path) -> list[str | Path]:
    return [sys.executable, "-m", "trivium.cli.main", *arguments]


def asked(server: ServerProcess, questions: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words("chat", "--url", server.url, *arguments),
        input=questions,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(),
        check=False,
    )


def test_each_line_of_a_pipe_is_a_question(server: ServerProcess) -> None:
    found = asked(server, "hi\n\n/show\nagain?\n", "m", "--max-tokens", "3", "--system", "Be brief.")
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert lines[0] == lines[-1] == "The capital of "
    assert "system       Be brief." in lines
    assert found.stderr == ""


def test_what_was_said_before_is_sent_along(server: ServerProcess) -> None:
    found = asked(server, "hi\n/clear\nfirst\nmessages\n", "m", "--seed", "1")
    assert ANSWER in found.stdout
    last = found.stdout.splitlines()[-1]
    assert last.index("first") < last.index(ANSWER) < last.index("messages")
    assert "hi" not in last


def test_a_fault_is_told_and_the_next_question_answered(server: ServerProcess) -> None:
    found = asked(server, "refused\nhi\n", "m")
    assert found.returncode == 1
    assert found.stdout.splitlines()[-1] == ANSWER


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Which model? There are: m, slow."),
        (("slo",), "No model 'slo' is served there. Did you mean slow?"),
        (("m", "--temperature", "3"), "--temperature is 3.0; expected is a number from 0 to 2."),
        (
            ("m", "--url", "http://127.0.0.1:1"),
            "Start a server there (trivium serve FOLDER), or give its --url.",
        ),
        (("m", "--url", "x://y"), "'x://y' is no address of a server"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_next_step(
    server: ServerProcess, arguments: tuple[str, ...], said: str
) -> None:
    found = asked(server, "", *arguments)
    assert found.returncode == 1
    assert said in " ".join(found.stderr.split())


class Terminal:
    """A command at a terminal that somebody types at."""

    def __init__(self, *arguments: str | Path, source: Path | None = None) -> None:
        self._ours, theirs = pty.openpty()
        given = {**environment(), "TERM": "dumb"}
        if source is not None:
            given["PYTHONPATH"] = str(source)
        self.process = subprocess.Popen(
            words(*arguments), stdin=theirs, stdout=theirs, stderr=theirs, env=given, start_new_session=True
        )
        os.close(theirs)
        os.set_blocking(self._ours, False)
        self._said = b""

    def said(self) -> str:
        """All that stands on it, what was typed as well."""
        try:
            while piece := os.read(self._ours, 65536):
                self._said += piece
        except (BlockingIOError, OSError):
            pass
        return self._said.decode("utf-8", "replace").replace("\r", "")

    def await_text(self, text: str, times: int = 1) -> None:
        """Wait until this stands there so often."""
        until(lambda: self.said().count(text) >= times, self.said)

    def type(self, text: str) -> None:
        """Type it."""
        os.write(self._ours, text.encode())

    def close(self) -> None:
        """Take the terminal away."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


def test_ctrl_c_ends_an_answer_and_not_the_conversation(server: ServerProcess) -> None:
    terminal = Terminal("chat", "slow", "--url", server.url)
    try:
        terminal.await_text(">>> ")
        terminal.type("hi\n")
        terminal.await_text("The ")
        terminal.process.send_signal(signal.SIGINT)
        terminal.await_text(">>> ", 2)
        assert ANSWER not in terminal.said()
        terminal.type("/set max_tokens 1\n")
        terminal.await_text("max_tokens is 1.")
        terminal.type("\x04")
        assert terminal.process.wait(SECONDS) == 0
    finally:
        terminal.close()


def test_run_serves_and_talks_and_leaves_nothing_behind(source: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "m")
    terminal = Terminal("run", model, "--http-port", "0", "--grpc-port", "0", source=source)
    try:
        terminal.await_text(">>> ")
        children = psutil.Process(terminal.process.pid).children(recursive=True)
        terminal.type("hi\n")
        terminal.await_text(">>> ", 2)
        assert ANSWER in terminal.said()
        for process in (terminal.process, *children):
            process.send_signal(signal.SIGINT)  # as a terminal does, to all that are in front
        terminal.await_text(">>> ", 3)
        terminal.type("/exit\n")
        assert terminal.process.wait(SECONDS) == 0, terminal.said()
        assert "Stopped: " in terminal.said()
        until(lambda: not any(map(_lives, children)), terminal.said)
    finally:
        terminal.close()


def _lives(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_run_of_what_cannot_be_served_says_why(source: Path, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    began = time.monotonic()
    terminal = Terminal("run", tmp_path / "m", source=source)
    try:
        assert terminal.process.wait(SECONDS) == 1, terminal.said()
        assert ">>> " not in terminal.said()
        assert time.monotonic() - began < SECONDS
    finally:
        terminal.close()
