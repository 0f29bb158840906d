"""`is_ready` of a Triton model: what it returns, what it raises, on which loop it waits."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from tests.harness.triton_child import ECHO, TritonChildHarness, stage

from trivium_worker.runtime.adapter import Adapter
from trivium_worker.runtime.checks import Checks

__all__ = ["stage"]

NO = "Model 'm_0_0' is not ready (user-defined check failed)."


def test_a_model_without_it_has_no_say(stage: TritonChildHarness) -> None:
    assert not stage.load(ECHO).has_check


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("    def is_ready(self):\n        return True\n", ""),
        ("    def is_ready(self):\n        return False\n", NO),
        ("    async def is_ready(self):\n        return True\n", ""),
        ("    async def is_ready(self):\n        return False\n", NO),
        (
            "    def is_ready(self):\n        return 1\n",
            "is_ready() must return a boolean value, found type '<class 'int'>'.",
        ),
        ("    is_ready = None\n", "TypeError: 'NoneType' object is not callable"),
    ],
)
def test_what_it_says(stage: TritonChildHarness, body: str, why: str) -> None:
    adapter = stage.load(ECHO + body)
    assert adapter.has_check
    assert adapter.check() == why
    assert adapter.check() == why  # the loop of coroutines serves again


@pytest.mark.parametrize("kind", ["", "async "])
@pytest.mark.parametrize("error", ["OSError('no database')", "SystemExit('no database')"])
def test_what_it_raises_means_no_and_is_told(
    stage: TritonChildHarness, kind: str, error: str, capfd: pytest.CaptureFixture[str]
) -> None:
    adapter = stage.load(ECHO + f"    {kind}def is_ready(self):\n        raise {error}\n")
    told = adapter.check()
    assert told.startswith(error.partition("(")[0] + ": no database\n\nAt:\n")
    assert ": is_ready\n" in told
    assert "no database" in capfd.readouterr().err


def test_a_model_without_execute_may_say_it_all_the_same(stage: TritonChildHarness) -> None:
    adapter = stage.load("class TritonPythonModel:\n    def is_ready(self):\n        return False\n")
    assert (adapter.has_check, adapter.check()) == (True, NO)


def test_whatever_an_adapter_raises_there_is_an_answer(capfd: pytest.CaptureFixture[str]) -> None:
    class Broken(Adapter):
        def __init__(self) -> None: ...

        def check(self) -> str:
            raise KeyboardInterrupt("now")

    sent: list[bytes] = []
    Checks(Broken(), writer(sent)).begin()
    for thread in threading.enumerate():
        if thread.name == "trivium-check":
            thread.join(60)
    (frame,) = sent
    assert b"KeyboardInterrupt: now" in frame
    assert "KeyboardInterrupt" in capfd.readouterr().err


def test_where_no_thread_can_be_started_there_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    sent: list[bytes] = []
    unasked: Any = None
    Checks(unasked, writer(sent)).begin()
    (frame,) = sent
    assert b"No thread could be started to ask the model: can't start new thread" in frame


def writer(sent: list[bytes]) -> Any:
    return SimpleNamespace(send=sent.append)
