"""Names what a server needs from outside: what reads models, what runs engines, and who hears of what goes on."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trivium.core.models.completion import Facts
from trivium.core.models.repository import no_fetch
from trivium.core.models.trials import Try
from trivium.core.workers.process_launcher import MakeProgram
from trivium.types.errors import Code, ServeError
from trivium.types.fetching import FetchModel
from trivium.types.interfaces import NO_GUARD, NO_OBSERVER, ProcessGuard, RunObserver
from trivium.types.recording import ServingRecorder
from trivium.types.running import Placement, WorkerCommand
from trivium.types.spec import ModelSpec
from trivium.types.tracing import TraceExporter


def _no_host(spec: ModelSpec, placement: Placement) -> WorkerCommand:
    raise ServeError(Code.UNSUPPORTED, "This server was built without a way to run its engines in processes.")


async def _nothing_to_close() -> None:
    pass


@dataclass(frozen=True, slots=True)
class CoreServices:
    """Holds what a server needs from outside: `facts` asks the inspector what a model file says, `host` makes the
    command that runs an engine in a process, `observer` is told of runs, `exporter` takes finished traces away, `guard`
    cleans up if the server dies, `fetch` gets models from elsewhere, `recorder` hears of requests and instances,
    `close_facts` ends what the inspector has started, `try_model` has it run a model once, in a process of its own.
    """

    facts: Facts
    host: MakeProgram = _no_host
    observer: RunObserver = NO_OBSERVER
    exporter: TraceExporter | None = None
    guard: ProcessGuard = NO_GUARD
    fetch: FetchModel = no_fetch
    recorder: ServingRecorder | None = None
    close_facts: Callable[[], Awaitable[None]] = _nothing_to_close
    try_model: Try | None = None
