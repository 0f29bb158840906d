"""Words for those who watch a server: how requests went, what workers print, how instances come and go.

Times that people read are seconds of the Unix epoch, durations are seconds. Who counts, and who has listened since
when, is the core's business; how it looks, a protocol's.
"""

from collections.abc import Sequence
from enum import Enum

import msgspec


class Timeline(msgspec.Struct, frozen=True, gc=False):
    """Tells how one request went that has ended: when it was `received`, for how long it was `queued`, its input was
    made ready (`reading`), it was `computing` and its output was written (`writing`), and how long it took in `total`.
    It was executed with `together` requests, itself among them (0: it was not), some of which had the ids `beside`.
    Without an `error` it ended well; else `code` says of which kind that is.
    """

    id: str
    model: str
    version: str
    received: float
    total: float
    queued: float = 0.0
    reading: float = 0.0
    computing: float = 0.0
    writing: float = 0.0
    together: int = 0
    beside: tuple[str, ...] = ()
    code: str = ""
    error: str = ""


class RequestFacts(msgspec.Struct, gc=False):
    """Collects what a log says of one request, while it is served: its id, the model and version that it came to, and
    the id of its trace, if it has one. It was executed with `together` requests, itself among them (0: it was not), for
    which it was `queued`, and which took so long to `compute`. With a `code` it failed. While it `waits`, its execution
    has not ended though it is answered.
    """

    id: str = ""
    model: str = ""
    version: str = ""
    trace: str = ""
    together: int = 0
    queued: float = 0.0
    compute: float = 0.0
    code: str = ""
    waits: bool = False


class WorkerSaid(msgspec.Struct, frozen=True, gc=False):
    """Holds a line that an instance of a model has printed, or logged, and when."""

    when: float
    model: str
    version: str
    instance: str
    text: str


class DeathCause(Enum):
    """Says by what a worker process was lost, in the words of metrics."""

    SIGNAL = "signal"  # that nobody here has sent
    EXIT = "exit"  # it ended by itself
    OUT_OF_MEMORY = "out_of_memory"  # the kernel killed it
    MEMORY_LIMIT = "memory_limit"  # it had more memory than it may have
    RUN_DEADLINE = "run_deadline"
    STARTUP_TIMEOUT = "startup_timeout"
    SILENCE = "silence"  # it gave no sign of life
    CONNECTION = "connection"  # it closed its connection, or sent what cannot be understood
    STOP_TIMEOUT = "stop_timeout"  # it was told to end, and did not


class InstanceDeath(msgspec.Struct, frozen=True, gc=False):
    """Tells when an instance of a model was lost, why, in sentences for people, and what it had printed last."""

    when: float
    model: str
    version: str
    instance: str
    cause: str
    last_lines: tuple[str, ...] = ()

    @property
    def post_mortem(self) -> str:
        """All of it but the time, in sentences: what clients of lost requests hear."""
        return self.cause + last_words(self.last_lines)


class InstanceOpened(msgspec.Struct, frozen=True, gc=False):
    """Tells that an instance of a model serves from now on."""

    when: float
    model: str
    version: str
    instance: str


class LostNews(msgspec.Struct, frozen=True, gc=False):
    """Counts what a listener has missed because it reads too slowly, since it heard so last."""

    count: int


class VersionLoad(msgspec.Struct, frozen=True, gc=False):
    """Counts the instances of a version that serves, of an `engine`: `open` ones, `busy` ones among them, those that
    are `opening`, those that `lack` though they should be there; and the items that instances have in work (`running`).
    They have `places` for so many executions at once, of which so many are `used`.
    """

    model: str
    version: str
    engine: str
    open: int
    opening: int
    lack: int
    running: int
    busy: int = 0
    places: int = 0
    used: int = 0


class Timelines(msgspec.Struct, frozen=True, gc=False):
    """Holds timelines of requests that ended while somebody listened (`since`, None: nobody has), of each kind the last
    ones first: those that took longest, those that failed, some of all.
    """

    slowest: tuple[Timeline, ...] = ()
    failed: tuple[Timeline, ...] = ()
    sample: tuple[Timeline, ...] = ()
    since: float | None = None


MOST_WORDS = 8192
"""Characters of last words."""


def last_words(lines: Sequence[str]) -> str:
    """A sentence of the last lines on standard error, empty where there are none. It goes to clients, and so has a
    length: of more than that the end is told.
    """
    if not lines:
        return ""
    words = " / ".join(lines)
    if len(words) > MOST_WORDS:
        words = "... " + words[-MOST_WORDS:]
    return f" Its last words: {words}"
