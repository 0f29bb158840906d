"""A server tells of its work while it does it, for whoever keeps records of it in words of their own.

A report (`types/statistics`) says what has been counted up to a moment. A recorder hears of each request and of each
instance, so that it can write a line about it or count it otherwise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from trivium.types.errors import Code
from trivium.types.operations import Infer

WORKER_LINE = "worker_line"
"""The attribute under which a record of the log carries the `WorkerLine` that it is about."""


RECORD_FACTS = "facts"
"""The attribute under which a record of the log carries facts about its message, texts by names such as `model`."""


@dataclass(frozen=True, slots=True)
class InstanceName:
    """Names an instance: the version of a model that it belongs to, and its `number` as of `InstanceStatus`."""

    model: str
    version: str
    number: int


@dataclass(frozen=True, slots=True)
class RequestName:
    """Names a request: by the id that its client gave it, and by its trace's; either may be empty."""

    id: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """Holds a line that a worker has printed, as it is, to its `stream`: stdout or stderr; or has logged ("log").
    People know the instance by its `name`. The `requests` were in hand meanwhile, where that is asked for.
    """

    instance: InstanceName
    stream: str
    text: str
    name: str = ""
    requests: tuple[RequestName, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerVoice:
    """Says whose lines a worker's are, and takes each of them for whoever asks later what was printed. Where lines
    `follow` requests, `doing` tells those that user code has in hand.
    """

    instance: InstanceName
    say: Callable[[str], None]
    name: str = ""
    follows: bool = False
    doing: Callable[[], tuple[RequestName, ...]] = lambda: ()


class WorkerEnd(Enum):
    """Why a worker process has ended."""

    ASKED = "it was asked to"
    LATE = "it had not answered within its model's run deadline"
    DIED = "by itself, or by somebody else's doing"


class ServingRecorder(Protocol):
    """Hears what a server does. Used on the loop only, where everybody waits for it: it must not block, nor raise.

    Each request that a model got ends by `answered` or by `failed`, once; those that nobody could serve are neither.
    Times are seconds.
    """

    def answered(self, request: Infer, waited: float, spent: float) -> None:
        """A request has been answered, `spent` after it had come, well or by a handler that says that it failed. It had
        `waited` until it was run.
        """

    def failed(self, request: Infer, code: Code, spent: float) -> None:
        """A request has ended with an error."""

    def ran(self, lingered: float) -> None:
        """The outcomes of a run have been handed out, that long after it had ended."""

    def starting(self, instance: InstanceName) -> None:
        """An instance is being opened."""

    def opened(self, instance: InstanceName, seconds: float) -> None:
        """An instance is open, after so long; it serves from now on."""

    def ended(self, instance: InstanceName, why: WorkerEnd, post_mortem: str) -> None:
        """The worker process of an instance has ended; `post_mortem` is what is known of it, for people."""

    def replacing(self, instance: InstanceName, seconds: float) -> None:
        """Another instance is to be opened after so long, in place of one that died or did not open."""

    def measured(self, model: str, step: Mapping[str, object]) -> Mapping[str, object] | None:
        """Return the step of a custom metric that is to be counted for this one of a model; None for none. ValueError
        for one that cannot be.
        """
