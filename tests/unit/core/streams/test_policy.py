"""What becomes of an answer whose receiver is full, case by case."""

import pytest

from trivium.core.streams.policy import StreamBounds, StreamVerdict, StreamView, judge_stream

BOUNDS = StreamBounds(memory=100, total=1000)
FLOW, HOLD, END = StreamVerdict.FLOW, StreamVerdict.HOLD, StreamVerdict.END


@pytest.mark.parametrize(
    ("waited_for", "memory", "filed", "writing", "files", "verdict"),
    [
        (False, 0, 0, False, True, HOLD),
        (False, 5000, 5000, False, True, HOLD),  # it costs nobody else anything
        (True, 0, 0, False, True, FLOW),
        (True, 100, 900, False, True, FLOW),
        (True, 100, 901, False, True, END),
        (True, 1001, 0, False, True, END),
        (True, 200, 500, True, True, FLOW),
        (True, 201, 500, True, True, HOLD),  # the disk is slower than the sender
        (True, 201, 500, False, True, FLOW),  # one part is larger than that
        (True, 100, 0, False, False, FLOW),
        (True, 101, 0, False, False, END),  # nothing can be written
    ],
)
def test_verdicts(waited_for, memory, filed, writing, files, verdict):
    assert judge_stream(StreamView(waited_for, memory, filed, writing, files), BOUNDS) is verdict
