"""Values that pass between the core and an instance: batches down, events up.

An item ends exactly once: with its final part, or with its outcome in an execution. Credits come back apart
from results: a plain instance gives one back when it can take another batch, one that has many items in work gives
one back per item.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, final

import msgspec

from trivium.types.errors import ServeError
from trivium.types.generation import Generate
from trivium.types.observing import last_words
from trivium.types.operations import Infer, Operation, ResponsePart
from trivium.types.payload import Payload, Raw, Scalar, Tensors
from trivium.types.resources import ResourceRequest
from trivium.types.spec import Device, Isolation, ModelSpec

MOST_IN_FLIGHT = 2**16
"""Items that one instance may have in work at once at most."""

ItemId = int
InstanceId = int
Outcome = Payload | ServeError | None
"""What a plain engine makes of one item; None ends one whose parts have all been pushed."""


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Items that run together: `items[i]` asks for `operations[i]` and has `rows[i]` rows."""

    items: list[ItemId]
    operations: list[Infer]
    rows: list[int]


# What holds an error is tracked by the garbage collector: the error's frames may lead back to it.


class Ran(msgspec.Struct, frozen=True):
    """Holds what a runner returns: an outcome per item, in order, and when its input was ready and its output began
    (`time.monotonic` seconds; None where a runner does not tell them apart).
    """

    outcomes: list[Outcome]
    input_ready: float | None = None
    output_began: float | None = None


class Translated(msgspec.Struct, frozen=True):
    """Holds what a translator makes of one request: the model's inputs for each of its `rows`, without a batch
    dimension where the model has one, and a `state` that it wants back with the outputs.
    """

    rows: list[Tensors]
    state: object = None


class Begun(msgspec.Struct, frozen=True, gc=False):
    """User code has these items: they are never run again."""

    items: tuple[ItemId, ...]


class Part(msgspec.Struct, frozen=True):
    """One part of an item's answer; an item that failed alone ends with `error`."""

    item: ItemId
    payload: Payload | None
    error: ServeError | None = None
    final: bool = True
    parameters: Mapping[str, Scalar] = {}


@final
class Executed(msgspec.Struct, frozen=True):
    """One execution of a plain engine is over: `outcomes[i]` ends `items[i]`. `time.monotonic` seconds. `rows` and
    items (`batch`) of the whole execution, where some of its items end otherwise, by parts of their own; else nothing.
    `is_one_of_many`: the instance had other items in work meanwhile, each an execution of its own; unless it was
    `in_steps`, which are the executions then.
    """

    items: list[ItemId]
    outcomes: list[Outcome]
    began: float
    input_ready: float
    output_began: float
    ended: float
    rows: int = 0
    batch: Sequence[ItemId] = ()
    is_one_of_many: bool = False
    in_steps: bool = False

    def only(self, numbers: Sequence[int], rows: int) -> "Executed":
        """Return the same execution, of `rows` rows in all, as one that ends these of its items alone, by their
        numbers in it.
        """
        return Executed(
            [self.items[number] for number in numbers],
            [self.outcomes[number] for number in numbers],
            self.began,
            self.input_ready,
            self.output_began,
            self.ended,
            self.rows or rows,
            self.batch,
            self.is_one_of_many,
            self.in_steps,
        )


@final
class Credit(msgspec.Struct, frozen=True, gc=False):
    """The instance can take `count` more batches (one that has many items in work: items)."""

    count: int


class RecycleRequested(msgspec.Struct, frozen=True, gc=False):
    """The instance should be replaced, and works on until it is. `reason` is for people."""

    reason: str


class Dead(msgspec.Struct, frozen=True, gc=False):
    """The instance is lost; `cause` says how, for people, and `last_lines` are what it has printed last. `was_killed`:
    by a signal that leaves no choice, which the server has not sent. Nothing is pushed after it.
    """

    cause: str
    was_killed: bool = False
    last_lines: tuple[str, ...] = ()

    @property
    def post_mortem(self) -> str:
        """All of it, in sentences."""
        return self.cause + last_words(self.last_lines)


@final
class Stepped(msgspec.Struct, frozen=True, gc=False):
    """One step of an instance that steps is over: it computed a token for each of `rows` sequences and read
    `prompt_tokens` of prompts, of which `new_tokens` came; `wasted_tokens` of it and earlier ones are nobody's.
    `share` of the `room` for keys and values is taken, in bytes; 0 where nobody tells. Times: `time.monotonic` seconds.
    Of `queried_tokens` of prompts that were looked for among what is kept, `cached_tokens` were there, and not read.
    """

    rows: int
    prompt_tokens: int
    new_tokens: int
    wasted_tokens: int
    share: float
    began: float
    ended: float
    room: int = 0
    queried_tokens: int = 0
    cached_tokens: int = 0


Event = Begun | Part | Executed | Credit | Stepped | RecycleRequested | Dead


@dataclass(frozen=True, slots=True)
class Rank:
    """Says which process of a gang one is: `index` of `count`, which meet at a `port` of this machine."""

    index: int
    count: int
    port: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Says where one instance goes. `name` is for people: `model_0`; `index` counts within its group, `number` all
    instances of the version that there ever were; `claim` is what it needs while it runs. `device_ids` are all
    devices that it has, where those are several.

    A gang has `ranks` processes, each of which is placed with its `rank`; but the first `are_passive`, or get requests.
    """

    name: str
    isolation: Isolation
    device: Device = Device.CPU
    device_id: int = 0
    index: int = 0
    claim: ResourceRequest = field(default_factory=ResourceRequest)
    device_ids: tuple[int, ...] = ()
    ranks: int = 1
    are_passive: bool = False
    rank: Rank | None = None
    number: int = 0


TranslateError = Callable[[ServeError, Operation, bool], ServeError]
"""How user code is told of an operation of its own that went wrong, and was it refused at the door?"""


def unchanged(error: ServeError, asked: Operation, is_refused: bool) -> ServeError:
    """Return the error in the server's own words."""
    return error


ReadMetric = Callable[[str], Mapping[str, object] | None]
"""Reads a step of a custom metric from a line of a worker's output; None where it tells of none."""


class CallForm(Protocol):
    """Stands between user code that calls a model that generates and that model: one for each call."""

    def read(self, raw: Raw, parameters: Mapping[str, str]) -> Generate:
        """Read a call's body as a request to generate, of a model that has these parameters. Raises ServeError."""

    def written(self, part: ResponsePart) -> ResponsePart | None:
        """Return a part of the answer as a body; None where nothing of it is said yet."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Holds what preparing a load made of its spec. `warning` is one or more sentences on what did not succeed: the
    load goes on, and if it fails they are part of its reason.
    """

    spec: ModelSpec
    warning: str = ""


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """Says what to start as a worker process: it speaks the frames of `trivium_worker` on the descriptor that its last
    argument names. `setup` is JSON: the first thing it is told. What its calls end with it is told in `words`. Lines of
    its output that tell of metrics are read by `read_metric`; None where there are none such. Calls of models that
    generate may have the form that `open_form` makes; None: they have tensors alone.
    """

    command: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    setup: Mapping[str, object]
    words: TranslateError = unchanged
    read_metric: ReadMetric | None = None
    open_form: Callable[[], CallForm] | None = None
