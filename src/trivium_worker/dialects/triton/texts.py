"""Words an exception of user code: its name and text, and where it came from, innermost first.

The form is the original's (sheet "triton", section 8.2), so that clients that look for it find it.
"""

import sys
from typing import Any

from trivium_worker.runtime.traces import is_ours, notes_of, print_trace
from trivium_worker.wire.values import Failure

_OUT_OF_MEMORY = ("MemoryError", "OutOfMemoryError")


class Reported(Failure):
    """An error of user code that already stands in the model's log."""


def reported(error: BaseException) -> Reported:
    """Print what user code raised with all that Python knows of it, for the model's log, and return it in words; what
    we say ourselves is printed without frames, and nothing twice.
    """
    if isinstance(error, Failure):
        if not isinstance(error, Reported):
            sys.stderr.write(error.message + "\n")
    else:
        print_trace(error)
    return Reported(_text(error), _code(error))


def _text(error: BaseException) -> str:
    """The text. A Failure speaks for itself."""
    if isinstance(error, Failure):
        return error.message
    text = " ".join((f"{type(error).__name__}: {error}", *notes_of(error)))
    frames = []
    trace: Any = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not is_ours(code.co_filename):
            frames.append(f"  {code.co_filename}({trace.tb_lineno}): {code.co_name}\n")
        trace = trace.tb_next
    return text + "\n\nAt:\n" + "".join(reversed(frames)) if frames else text


def _code(error: BaseException) -> str:
    """The server's code: whether memory was lacking, torch's included."""
    if isinstance(error, Failure):
        return error.code
    return "out of memory" if type(error).__name__ in _OUT_OF_MEMORY else "model failed"
