"""Makes the contract of an instance from a runner's one function: every item of a batch ends exactly once.

What a runner raises, or a wrong number of outcomes, fails that batch and nothing else.
"""

import logging
from collections.abc import Set
from time import monotonic

from trivium.core.request import CANCELLED
from trivium.types.errors import Code, ServeError, frameless, named
from trivium.types.interfaces import Runner
from trivium.types.running import Batch, Executed, ItemId, Outcome, Part, Ran

log = logging.getLogger(__name__)


def execute(runner: Runner, batch: Batch) -> Executed:
    """Run a batch. Whatever the runner raises, be it SystemExit, ends the batch and not the thread."""
    began = monotonic()
    try:
        ran = runner.run(batch)
        if len(ran.outcomes) != len(batch.items):
            ran = Ran(_failed(batch, _wrong_count(len(ran.outcomes), len(batch.items))))
    except BaseException as error:
        ran = Ran(_failed(batch, frameless(_fault(error))))
    ended = monotonic()
    if ran.input_ready is None or ran.output_began is None:
        return Executed(batch.items, ran.outcomes, began, began, ended, ended)
    return Executed(batch.items, ran.outcomes, began, ran.input_ready, ran.output_began, ended)


def without(batch: Batch, cancelled: Set[ItemId]) -> tuple[Batch, list[Part]]:
    """The batch less the items that nobody waits for any more, and their ends."""
    gone = {item for item in batch.items if item in cancelled}  # asked once: the loop adds to it meanwhile
    kept = [i for i, item in enumerate(batch.items) if item not in gone]
    ends = [Part(item, None, CANCELLED) for item in gone]
    smaller = Batch(
        [batch.items[i] for i in kept], [batch.operations[i] for i in kept], [batch.rows[i] for i in kept]
    )
    return smaller, ends


def unrun(batch: Batch, error: Exception, now: float) -> Executed:
    """The end of a batch that could not be handed over."""
    return Executed(batch.items, _failed(batch, not_written(error)), now, now, now, now)


def not_written(error: Exception) -> ServeError:
    """Return what is said of items that could not be handed over. What is no ServeError is our own fault."""
    if isinstance(error, ServeError):
        return error
    log.error("a batch could not be written", exc_info=error)
    return ServeError(
        Code.INTERNAL,
        f"The request could not be handed to a worker: {named(error)}.",
    )


def _failed(batch: Batch, error: ServeError) -> list[Outcome]:
    return [error] * len(batch.items)


def _fault(error: BaseException) -> ServeError:
    if isinstance(error, ServeError):
        return error
    fault = ServeError(Code.MODEL_FAILED, f"The model raised {named(error)}")
    fault.__cause__ = error
    return fault


def _wrong_count(found: int, expected: int) -> ServeError:
    return ServeError(
        Code.MODEL_FAILED,
        f"The model returned {found} results for {expected} requests; it must return one for each, in order.",
    )
