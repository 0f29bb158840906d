"""The interfaces of the five axes and of the core's edges - one contract suite each, in `tests/contract`."""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from trivium.types.access import AccessScope
from trivium.types.buffers import Lease
from trivium.types.errors import ServeError
from trivium.types.fetching import FetchBounds
from trivium.types.findings import Finding
from trivium.types.generation import Generated
from trivium.types.operations import Infer, Load, Operation, ResponsePart
from trivium.types.payload import Payload, PayloadKind, Raw, Tensors
from trivium.types.running import (
    Batch,
    Event,
    ItemId,
    Outcome,
    Placement,
    Prepared,
    Ran,
    Translated,
    WorkerCommand,
)
from trivium.types.sources import ModelSource
from trivium.types.spec import Defaults, Isolation, ModelFacts, ModelSpec, ReadResult
from trivium.types.wire import Body, Head, HttpAnswer, RpcAnswer, RpcCall, RpcKind, Target


class Timer(Protocol):
    """A call that waits for its time."""

    def cancel(self) -> None:
        """It will not be made; no effect once it has been."""
        ...


class Clock(Protocol):
    """Time and later calls, so that the same core runs live and in simulation. Used on the loop only."""

    def now(self) -> float:
        """Monotonic seconds."""
        ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call once, not before `when`; at the next turn if that has passed."""
        ...

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call once, after what runs now."""
        ...


# -- the five axes -----------------------------------------------------------------------------------------


class Format(Protocol):
    """A kind of model folder or file. `expects` says in half a sentence what it recognises."""

    name: str
    expects: str

    def claims(self, path: Path) -> bool:
        """Is this path of this format? Looks at names, not at contents; must not raise."""

    def read(self, path: Path, defaults: Defaults) -> ReadResult:
        """Every version that the path holds. What cannot be read is in `unreadable`, with all its faults."""

    def finish(self, spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
        """Complete the spec from what the model file says, by the format's own rules; ConfigError where the
        two contradict each other.
        """


@runtime_checkable
class SupportsSource(Protocol):
    """Extends a format whose models can be asked for with an engine, devices and settings in its own words."""

    def read_source(self, path: Path, source: ModelSource, defaults: Defaults) -> ReadResult:
        """Read like `read`, under the settings that lie over and under the files', and with the source's engine and
        devices. What cannot be taken is a finding of the model. Its name and version are the core's to give, but for
        those that the files write down: see `core.models.source_policy`.
        """


@runtime_checkable
class SupportsMembers(Protocol):
    """Extends a format that has graphs whose models lie elsewhere."""

    def members(self, spec: ModelSpec) -> Sequence[ModelSource]:
        """Return what a model of the format brings with it: a source for each model that is read, and served, because
        this one is, under the name that its steps have for it. Nothing for most models. Never raises.
        """
        ...


@runtime_checkable
class SupportsHint(Protocol):
    """Extends a format that can say what a path needs to be one of its models."""

    def hint(self, path: Path) -> str:
        """Say in a sentence what would make this path a model; empty where nothing near is there. Never raises."""


@runtime_checkable
class SupportsOverride(Protocol):
    """Extends a format whose models can be loaded with another configuration, or from sent files."""

    def override(self, load: Load, source: Path, into: Path) -> Path:
        """Lay out the model that `load` describes in the empty folder `into`, with what it does not replace from
        `source`, and return the path that `read` takes. Raises INVALID for a configuration that cannot be read.
        """


@runtime_checkable
class SupportsPolling(Protocol):
    """Extends a format that knows a place of its own for each model: who looks for changes then sees which model they
    concern.
    """

    def places(self, path: Path) -> Mapping[str, Path]:
        """Model -> the folder or file that it consists of. Raises OSError where `path` cannot be looked into."""


class Fetcher(Protocol):
    """Gets models from elsewhere. Importing it imports no heavy library."""

    @property
    def schemes(self) -> Sequence[str]:
        """Return the schemes of the URIs that it takes, in lower case."""
        ...

    def fetch(self, uri: str, into: Path, bounds: FetchBounds) -> Path:
        """Bring what lies at a URI of one of the schemes into the empty folder `into`, and return the file or folder
        there that a format can read, named as the URI names it. Blocking. Raises FORBIDDEN for what the bounds do not
        let it reach, itself or by a detour; TOO_LARGE, NOT_FOUND, LOAD_FAILED, and UNSUPPORTED with the install command
        where a library lacks. What it leaves behind then, the caller removes.
        """
        ...


class Runner(Protocol):
    """An opened model that runs one batch at a time, blocking, always called by one thread at a time."""

    def run(self, batch: Batch) -> Ran:
        """An outcome per item, in order. A fault of one item is that item's ServeError; what is raised fails
        the whole batch. The batch's arrays may be views of request bodies: read, never write, never keep.
        """

    def close(self) -> None:
        """Free everything. No call follows."""


@runtime_checkable
class SupportsInterrupt(Protocol):
    """Extends a runner whose run can be ended early from outside."""

    def interrupt(self) -> None:
        """Have the run in hand raise soon; no effect where there is none. Called from any thread; returns at once."""


@runtime_checkable
class StreamsAnswers(Protocol):
    """Extends a runner whose answers may leave in parts while they are computed. `streams`: do they, for this model?"""

    streams: bool

    def stream(self, infer: Infer, send: Callable[[Payload], bool]) -> Outcome:
        """Compute one item and `send` its parts, which waits for room and is false once nobody waits for more. Returns
        the outcome of one that was not answered in parts, or that failed; None behind the last part.
        """


class Engine(Protocol):
    """A descriptor; importing it imports no heavy library. It implements `OpensRunner` or `WorkerEngine` as well.

    `isolation`: what it supports, default first; which one a model runs in, `ChoosesIsolation` may say. `has_facts`:
    whether `facts` can tell anything, and so whether a probe process is worth starting.
    """

    name: str
    takes: frozenset[PayloadKind]
    isolation: tuple[Isolation, ...]
    has_facts: bool

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Return what the model file says. Runs in a probe process, never in the server: a hostile file may crash it.
        Raises ServeError with LOAD_FAILED, or UNSUPPORTED with the install command where a library lacks.
        """


@runtime_checkable
class RunsFolderCode(Protocol):
    """An engine whose `facts` may run code of a model's own folder."""

    def runs_folder_code(self, spec: ModelSpec) -> bool:
        """Does it, for this model? Then the probe that is asked answers for no other."""


@runtime_checkable
class OpensRunner(Protocol):
    """An engine whose instances run in this process, or in a process that hosts the engine."""

    def open(self, spec: ModelSpec, placement: Placement) -> Runner:
        """Open one instance. Blocking: called off the loop. Raises like `Engine.facts`."""


@runtime_checkable
class TellsCompute(Protocol):
    """An engine that can tell which parts of its library compute a model."""

    def compute(self, spec: ModelSpec, placement: Placement) -> str:
        """Open the model as an instance would that goes there, and return a sentence. Blocking. Raises like
        `Engine.facts`.
        """


class StepOutlet(Protocol):
    """Takes what an instance that steps makes. None of its calls waits; `wake` may come from any thread."""

    def offer(self, item: ItemId, part: Generated) -> None:
        """Send a part that is not the last; what its reader has no room for is kept, and joined with what follows."""
        ...

    def end(self, item: ItemId, part: Generated | ServeError) -> None:
        """Send the last part, or why there is none: the item has ended."""
        ...

    def wake(self) -> None:
        """Have `step` called again, after one that had nothing to compute."""
        ...


@dataclass(frozen=True, slots=True)
class StepReport:
    """Counts what one step did: see `Stepped`."""

    rows: int
    prompt_tokens: int = 0
    new_tokens: int = 0
    share: float = 0.0
    wasted_tokens: int = 0
    room: int = 0
    queried_tokens: int = 0
    cached_tokens: int = 0


class StepRunner(Protocol):
    """An opened model that works on many items at once, a step at a time; `slots` of them at most. Blocking, and always
    called by one thread.
    """

    @property
    def slots(self) -> int:
        """See above. It does not change."""
        ...

    def add(self, item: ItemId, infer: Infer) -> None:
        """Take an item, whose payload is `Generate`; its answer goes to the outlet. Raises ServeError for one that is
        refused, which has then ended.
        """
        ...

    def step(self) -> StepReport | None:
        """Compute one step for the items that were added; None where none of them had anything to compute: then it is
        called again when the outlet was woken, or an item was added. A fault of one item ends that one; what is raised
        ends all that have begun, and `reset` follows.
        """
        ...

    def abort(self, item: ItemId) -> int:
        """Forget an item, since nobody waits for it, and return the tokens that had been computed for it; nothing more
        is sent. No effect on one that has ended.
        """
        ...

    def reset(self) -> None:
        """Forget all items, after a step that raised."""
        ...

    def close(self) -> None:
        """Free everything. No call follows."""
        ...


@runtime_checkable
class CallsFunctions(Protocol):
    """Extends a step runner whose functions may be called by name: those that its spec names."""

    def call(self, function: str, payload: Raw) -> Raw:
        """Do it, between two steps, and return its answer. Raises ServeError."""
        ...


@runtime_checkable
class OpensStepRunner(Protocol):
    """An engine whose instances step, each in a process that hosts the engine."""

    def open_steps(self, spec: ModelSpec, placement: Placement, outlet: StepOutlet) -> StepRunner:
        """Open one instance. Blocking. Raises like `Engine.facts`."""
        ...


@runtime_checkable
class WorkerEngine(Protocol):
    """An engine whose models are user code in a worker process."""

    def program(self, spec: ModelSpec, placement: Placement) -> WorkerCommand:
        """Return what to start for one instance. Raises LOAD_FAILED where the interpreter cannot be found."""


FindEngine = Callable[[ModelSpec], Engine]
"""Finds the engine of a model. Raises UNSUPPORTED where there is none."""


@runtime_checkable
class SupportsCheck(Protocol):
    """Extends an engine that can judge a spec by more than the model file says, once that is in it."""

    def check(self, spec: ModelSpec) -> Sequence[Finding]:
        """Return the faults of the spec, and what there is to know. Reads no more than small files of the model, blocks
        for that alone, and is called off the loop. Raises ServeError where it cannot tell.
        """
        ...


class Translator(Protocol):
    """Turns requests in the form that clients have into tensors of a model, and its outputs into answers. It belongs to
    one instance and is called where that runs, blocking, by one thread at a time.
    """

    def before(self, requests: Sequence[Infer]) -> Sequence[Translated | ServeError]:
        """Return for each request, whose payload is `Raw`, what the model takes, or its fault. What is raised fails
        them all.
        """
        ...

    def after(self, translated: Translated, outputs: Sequence[Tensors]) -> Payload:
        """Return the answer to what `before` made, from the outputs of each of its rows. Raises ServeError."""
        ...

    def close(self) -> None:
        """Free everything. No call follows."""
        ...


class TranslatorKind(Protocol):
    """A descriptor of translators of one kind; importing it imports no heavy library. `isolation`: where one may run,
    the default first. `example`: a body in JSON that it takes; empty for one that takes files.
    """

    @property
    def name(self) -> str:
        """Return the name that specs have for it."""
        ...

    @property
    def isolation(self) -> tuple[Isolation, ...]:
        """See above."""
        ...

    @property
    def example(self) -> str:
        """See above."""
        ...

    def check(self, spec: ModelSpec) -> Sequence[Finding]:
        """See `SupportsCheck`: judge the arguments, and whether they go with the model's inputs and outputs."""
        ...

    def open(self, spec: ModelSpec) -> Translator:
        """Return one for an instance of the model. Blocking. Raises LOAD_FAILED, and UNSUPPORTED with the install
        command where a library lacks.
        """


@runtime_checkable
class ChoosesIsolation(Protocol):
    """Extends an engine whose default isolation depends on the model."""

    def default_isolation(self, spec: ModelSpec) -> Isolation:
        """Return where instances of this complete spec run whose group does not say it: one of `Engine.isolation`."""
        ...


def default_isolation(engine: Engine, spec: ModelSpec) -> Isolation:
    """Return where instances run whose group does not say it."""
    return engine.default_isolation(spec) if isinstance(engine, ChoosesIsolation) else engine.isolation[0]


class Preparation(Protocol):
    """Does what one load of a model needs once, before its instances are opened, and undoes it when they are gone. All
    of it is blocking and called off the loop, in threads of its own.
    """

    def run(self) -> Prepared:
        """Prepare, and return the spec that the instances are opened with. Raises LOAD_FAILED, with nothing left."""
        ...

    def stop(self) -> None:
        """Have `run` end soon, with what there is by then or by raising; from any thread, returns at once."""
        ...

    def undo(self) -> None:
        """Free all that was prepared, once `run` has ended; one that is in hand is stopped. Further calls have no
        effect, nor has a `run` that follows: it raises.
        """
        ...


@runtime_checkable
class SupportsPreparation(Protocol):
    """Extends an engine that prepares some of its models."""

    def preparation(self, spec: ModelSpec, scratch: Path | None, guard: "ProcessGuard") -> Preparation | None:
        """Return how this load is prepared, None if there is nothing to do. `scratch` is the server's folder for what
        lies on disk; processes are in the care of `guard`. Returns at once.
        """
        ...


class WireProtocol(Protocol):
    """A wire format over HTTP, sans-IO and pure. All three refuse by raising ServeError."""

    def head(self, head: Head) -> Target:
        """Return what a request is about, from its head alone, before the body is read. Asked once of a head that a
        client repeats.
        """
        ...

    def is_costly(self, head: Head, data: bytes | memoryview) -> bool:
        """Would decoding this body keep the loop from others? Then it is done in a thread, by calls that are short
        each. Not asked of a body that came with its head.
        """
        ...

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, "Encoder"]:
        """The operation, and the encoder for its answer. Tensors view the body."""
        ...

    def refuse(self, error: ServeError) -> HttpAnswer:
        """The protocol's own form of an error that precedes or replaces an operation."""
        ...


class Encoder(Protocol):
    """Turns the parts of one operation's answer into bytes."""

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """Never raises: what cannot be written becomes the protocol's error. What takes long is a `CostlyAnswer`."""
        ...


class Authorizer(Protocol):
    """Decides who may ask for what; a front end asks it about each request as soon as its route is known, before room
    is made for a body or a message is read.
    """

    def authorize(self, scope: AccessScope, request: Head | RpcCall) -> None:
        """Return for who has the right of that scope. Raises ServeError: UNAUTHENTICATED for who has not said who it
        is, FORBIDDEN for who may not do this. Reads no file and waits for nothing.
        """
        ...


class LetAllIn:
    """Lets everybody in."""

    def authorize(self, scope: AccessScope, request: Head | RpcCall) -> None:
        """See `Authorizer`."""


ALLOW_ALL = LetAllIn()


class RegionViews(Protocol):
    """The shared memory that clients have registered, as a wire uses it."""

    def view(self, name: str, offset: int, size: int) -> memoryview:
        """That part of a region, writable. NOT_FOUND, or INVALID for a part that is not in it; UNSUPPORTED where
        clients may not do this at all. Called from any thread.
        """
        ...


class RpcProtocol(Protocol):
    """A wire format over gRPC, sans-IO and pure: whole messages in and out, as bytes."""

    def kind(self, method: str) -> RpcKind:
        """Return how the method of this whole path is called. Raises UNSUPPORTED for one that is not served."""
        ...

    def scope(self, method: str) -> AccessScope:
        """Return the right that the method needs: that of a manager, where the protocol's table does not say. What
        changes something needs that right in any case.
        """
        ...

    def admit(self, call: RpcCall) -> None:
        """Raise ServeError for a stream that its metadata do not allow; asked once, before its first message. `refuse`
        makes a status of that error, with which the stream ends.
        """
        ...

    def is_costly(self, call: RpcCall, message: bytes) -> bool:
        """Would decoding this message keep the loop from others? Then it is done in a thread, by calls that are short
        each. Not asked of small messages.
        """
        ...

    def decode(self, call: RpcCall, message: bytes) -> tuple[Operation, "RpcEncoder"]:
        """The operation of one request message, and the encoder for its answer. Raises ServeError."""
        ...

    def refuse(self, call: RpcCall, error: ServeError) -> RpcAnswer:
        """The protocol's own form of an error that precedes or replaces an operation; always final."""
        ...


class RpcEncoder(Protocol):
    """Turns the parts of one operation's answer into messages."""

    def encode(self, part: ResponsePart) -> RpcAnswer:
        """Never raises. Final for a final part, and where an error ends the answer before it. What takes long is a
        `CostlyRpcAnswer`, which `write` makes so.
        """
        ...


# -- the core's edges --------------------------------------------------------------------------------------


class Port(Protocol):
    """Given to an instance when it opens."""

    def push(self, events: Sequence[Event]) -> None:
        """Put an event in, from any thread. One deque; the loop is woken once per drained set."""
        ...

    def deliver(self, events: Sequence[Event]) -> None:
        """Put an event in on the loop: at once, and not from within `start`, `cancel` or `close`."""
        ...


Check = Callable[[Callable[[str], None]], Callable[[], None]]
"""Ask user code whether it can serve now. The callback gets nothing or why not, once, on the loop; never, where user
code never says it. Returns how to ask no longer.
"""


class Instance(Protocol):
    """Something that runs items. Called on the loop only. One that can die reports what it has begun: the
    rest of what it holds is run elsewhere. `threads` are the system's numbers of those that run its items, if they are
    its own and the server may say where they run.
    """

    @property
    def threads(self) -> Collection[int]:
        """See above."""
        ...

    @property
    def in_flight(self) -> int:
        """Return how many items it may have in work at once, each an execution of its own whose end gives back a
        credit; 0 for an instance that runs one batch at a time. It does not change once the instance is open.
        """
        ...

    @property
    def check(self) -> Check | None:
        """None where user code has no say in whether it is ready: it is from the moment it is open."""
        ...

    def attach(self, port: Port) -> None:
        """Push events to this port from now on. Called between two batches only. Raises LOAD_FAILED where the instance
        is gone already.
        """
        ...

    def start(self, batch: Batch) -> None:
        """Take the items and return at once. Costs the caller one credit, or one per item where it may have many in
        work.
        """
        ...

    def cancel(self, item: ItemId) -> None:
        """Nobody waits for it any more; it still ends with one final part."""
        ...

    def hold(self, item: ItemId) -> None:
        """Its receiver is full: push what is on its way and no more parts than a window of them, until `resume`. Has
        no effect on what answers once, nor the second time.
        """
        ...

    def resume(self, item: ItemId) -> None:
        """The receiver has room again; no effect on one that is not held."""
        ...

    @property
    def running_since(self) -> float | None:
        """Return since when the model has had the batch in hand, or of many items the one that has gone without a sign
        for longest, in monotonic seconds. None where it has none, where its receiver is full, or where what runs are
        other models.
        """
        ...

    def interrupt(self, why: str) -> Collection[ItemId]:
        """Have the run in hand end early, and return those of its items that nobody else will end soon. One that ends
        by dying says so by itself, with `why` in its post-mortem. No effect where nothing runs.
        """
        ...

    def abandon(self, why: str) -> None:
        """Report its death: its run has not ended in spite of `interrupt`. Nothing is pushed afterwards."""
        ...

    def close(self) -> None:
        """End, when what was started has ended; returns at once. Nothing is pushed afterwards."""
        ...


class RunSource(Protocol):
    """A group of instances whose runs are observed."""

    def threads(self) -> Set[int]:
        """Return the system's numbers of the threads that run items, as far as they may be moved."""


class RunObserver(Protocol):
    """Observes when instances run and when they are opened, and has no say in either. Used on the loop only."""

    def ran(self, source: RunSource, mean_run: float) -> None:
        """Runs of these instances have ended, which take `mean_run` seconds in the mean."""

    def opening(self) -> AbstractContextManager[None]:
        """Return a context within which threads or processes for instances are started."""

    def close(self) -> None:
        """The server is closing; nothing that follows has an effect."""


class NoObserver:
    """Implements `RunObserver`, and does nothing."""

    def ran(self, source: RunSource, mean_run: float) -> None:
        pass

    def opening(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        pass


NO_OBSERVER: RunObserver = NoObserver()


class ProcessGuard(Protocol):
    """Cleans up behind a server that dies and processes that end. All but `close` may be called in any thread."""

    def marked(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the environment for one new process, by which whatever that process starts can be found."""

    def watch(self, group: int, environment: Mapping[str, str]) -> None:
        """Have a process group killed when the server dies; its leader was started in this `marked` environment."""

    def release(self, group: int) -> None:
        """Leave a process group alone from now on: it has ended. What has left it is killed."""

    def close(self) -> None:
        """Remove the server's scratch folder: it ends as it should. Blocking."""


class NoGuard:
    """Implements `ProcessGuard`, and does nothing."""

    def marked(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        return environment

    def watch(self, group: int, environment: Mapping[str, str]) -> None:
        pass

    def release(self, group: int) -> None:
        pass

    def close(self) -> None:
        pass


NO_GUARD: ProcessGuard = NoGuard()


Sink = Callable[[ResponsePart], None]
"""Gets the parts of an answer, on the loop, exactly one of them final; possibly before `submit` returns."""


class Ticket(Protocol):
    """A submitted operation."""

    def cancel(self, why: ServeError) -> None:
        """The only way to cancel: the sink gets `why` as its final part at once, unless it had one."""
        ...

    def hold(self) -> None:
        """The sink's owner is full: it gets nothing until `resume`, not even the last part, unless it cancels. Whoever
        makes the parts makes no more than its window, or more of them are kept where others wait for it. No effect once
        it has ended, nor the second time; cancelling needs no `resume`.
        """
        ...

    def resume(self) -> None:
        """There is room again; no effect on one that is not held."""
        ...


class InferenceCore(Protocol):
    """The face of the core towards a front end."""

    def submit(self, operation: Operation, sink: Sink) -> Ticket:
        """Begin; never raises for what a client got wrong, but answers through the sink. On the loop only."""
        ...


class Core(InferenceCore, Protocol):
    """Gives what a front end for HTTP needs of the core: to submit, and memory to receive large bodies into."""

    def lend(self, model: str, version: str, size: int, lead: int = 0) -> Lease:
        """Memory of at least `size` bytes for a request's body, aligned behind its first `lead` bytes where it can be
        handed to the model in place. ServeError where a named model does not serve: its body is not worth reading.
        """
        ...
