"""Turns whatever an adapter's `run` raises into outcomes, and words for them.

An exception fails the batch that it came out of; only what shall end the process does.
"""

from typing import Any

from trivium_worker.runtime.adapter import Adapter
from trivium_worker.runtime.traces import place_of, print_trace
from trivium_worker.wire.values import Failure, Item, frameless

ENDS_PROCESS = (SystemExit, KeyboardInterrupt)
"""What user code may raise to end its process, as it would anywhere else: the server hears of that, and starts another.
All else that it raises, no Exception as it may be (a panic of Rust, a cancellation), is the end of its requests alone.
"""


def outcomes_of(adapter: Adapter, items: list[Item]) -> list[Any]:
    """One for each item, in order. What ends the process passes."""
    try:
        outcomes = adapter.run(items)
        if len(outcomes) != len(items):
            raise Failure(f"The adapter made {len(outcomes)} outcomes of {len(items)} requests; report this.")
        return outcomes
    except ENDS_PROCESS:
        raise
    except BaseException as error:  # what asyncio raises for a cancellation is no Exception
        return [failure_of(error)] * len(items)


def failure_of(error: BaseException) -> Failure:
    """Return what the requests get whose run raised this: a fault of user code's is printed with its traceback."""
    if isinstance(error, Failure):
        return frameless(error)
    if isinstance(error, MemoryError):
        return Failure(f"The model ran out of memory. {words_of(error)}", "out of memory")
    return fault(error)


def fault(error: BaseException) -> Failure:
    """Return the error for an exception, which is printed with its traceback."""
    print_trace(error)
    return Failure(
        f"The model raised {type(error).__name__}: {words_of(error)}{in_brackets(place_of(error))}"
    )


def words_of(error: BaseException) -> str:
    """Return what the exception says of itself, if it can."""
    try:
        return str(error)
    except Exception:
        return "(it cannot say what)"


def in_brackets(place: str) -> str:
    """Return a place behind what happened there; nothing where none is known."""
    return f" ({place})" if place else ""
