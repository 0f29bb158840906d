"""How a worker ended, in sentences, by a table."""

import signal

import pytest

from trivium.core.workers.child_process import cause_of_death, describe
from trivium.types.observing import DeathCause, last_words
from trivium.types.running import Dead

UNKNOWN = (None, None)
BY_HAND = " Nobody here sent that; the kernel does when memory runs out, or somebody did by hand."

CASES = {
    "by itself": (3, "", UNKNOWN, [], "ended by itself with status 3."),
    "well, but unasked": (0, "", UNKNOWN, [], "ended by itself with status 0."),
    "by a signal": (-signal.SIGSEGV, "", UNKNOWN, [], "was killed by SIGSEGV."),
    "by a signal without a name": (-40, "", UNKNOWN, [], "was killed by signal 40."),
    "killed, nobody knows why": (-signal.SIGKILL, "", UNKNOWN, [], "was killed by SIGKILL." + BY_HAND),
    "killed, and memory sufficed": (-signal.SIGKILL, "", (2, 2), [], "was killed by SIGKILL." + BY_HAND),
    "killed for want of memory": (
        -signal.SIGKILL, "", (2, 3), [],
        "was killed by SIGKILL. The kernel has killed for want of memory meanwhile: there was less than it needed.",
    ),
    "killed by us": (-signal.SIGKILL, "it hung", (2, 3), [], "was killed: it hung."),
    "still there": (None, "", UNKNOWN, [], "closed its connection and was killed."),
    "its connection failed": (
        70, "", UNKNOWN, [],
        "ended: its connection to the server had failed, perhaps because user code had closed it.",
    ),
    "it could not write": (
        72, "", UNKNOWN, [],
        "ended: it could not write to the server any more, perhaps because user code had closed its connection.",
    ),
    "with last words": (
        1, "", UNKNOWN, ["Traceback", "ValueError: x"],
        "ended by itself with status 1. Its last words: Traceback / ValueError: x",
    ),
}  # fmt: skip


def test_last_words_are_not_endless():
    lines = [f"{number}".rjust(4096, "x") for number in range(50)]
    text = Dead(describe("m_0", 77, 1, "", UNKNOWN), last_lines=tuple(lines)).post_mortem
    assert len(text) < 9000
    assert text.endswith("x49")
    assert " Its last words: ... " in text
    assert last_words([]) == ""


@pytest.mark.parametrize("name", CASES)
def test_sentences(name):
    status, why, memory, last, text = CASES[name]
    fate = Dead(describe("m_0", 77, status, why, memory), last_lines=tuple(last))
    assert fate.post_mortem == f"Worker m_0 (process 77) {text}"


@pytest.mark.parametrize(
    ("status", "memory", "cause"),
    [
        (3, UNKNOWN, DeathCause.EXIT),
        (0, (2, 3), DeathCause.EXIT),
        (-signal.SIGSEGV, (2, 3), DeathCause.SIGNAL),
        (-signal.SIGKILL, UNKNOWN, DeathCause.SIGNAL),
        (-signal.SIGKILL, (2, 2), DeathCause.SIGNAL),
        (-signal.SIGKILL, (2, 3), DeathCause.OUT_OF_MEMORY),
        (None, UNKNOWN, DeathCause.CONNECTION),
        (70, UNKNOWN, DeathCause.CONNECTION),
    ],
)
def test_causes_that_deaths_are_counted_by(status, memory, cause):
    assert cause_of_death(status, memory) is cause
