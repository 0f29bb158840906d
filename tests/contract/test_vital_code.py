"""Code that others wait for, in a process of its own: what cannot be ended ends the process, and says why."""

import subprocess
import sys

import pytest

from trivium.engines.hf import call_guard
from trivium_worker.wire import vital

STUBBORN = """
import time
from trivium.engines.hf.call_guard import CallGuard

def stubborn():
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

CallGuard(0.2, 0.4).call("own.py:stubborn", stubborn)
"""
DYING = """
import threading
from trivium_worker.wire.vital import VitalThread

def run():
    raise {}

VitalThread(run, "texts").join()
threading.Event().wait()
"""
ENDING = """
from trivium_worker.wire.vital import VitalThread

VitalThread(lambda: None, "texts").join()
print("it goes on")
"""


def ended(code: str) -> tuple[int, str]:
    made = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    return made.returncode, made.stdout + made.stderr


def test_a_processor_that_does_not_let_itself_be_ended_ends_the_worker_and_is_named():
    status, said = ended(STUBBORN)
    assert status == call_guard.STATUS
    assert "The logits processor 'own.py:stubborn' has not returned" in said


@pytest.mark.parametrize("raised", ["ValueError('a fault')", "SystemExit(0)", "KeyboardInterrupt('x')"])
def test_a_thread_that_all_wait_for_takes_its_process_along(raised):
    status, said = ended(DYING.format(raised))
    assert status == vital.STATUS
    assert raised.partition("(")[0] in said


def test_one_that_comes_to_its_end_takes_nothing_along():
    assert ended(ENDING) == (0, "it goes on\n")
