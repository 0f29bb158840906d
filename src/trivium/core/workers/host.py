"""Our own engines in a worker process: the server's setup for it, and the adapter that runs it there.

It speaks the frames of `trivium_worker`, under the server's own interpreter: where a model file may crash its
engine, or an engine holds the interpreter's lock.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from trivium.codecs import binary
from trivium.codecs.spec_codec import decode, encode
from trivium.core.execution import execute
from trivium.core.workers.generation_wire import read_request, write_part
from trivium.machine.quiet_libraries import quieted
from trivium.types.datatype import BY_NAME
from trivium.types.errors import ServeError, frameless
from trivium.types.generation import Generated
from trivium.types.interfaces import (
    CallsFunctions,
    FindEngine,
    OpensRunner,
    OpensStepRunner,
    StreamsAnswers,
)
from trivium.types.operations import Infer
from trivium.types.payload import Payload, Raw, RawForm, RawPart, RequestPayload, Tensors
from trivium.types.running import Batch, ItemId, Outcome, Placement, WorkerCommand
from trivium.types.spec import ModelSpec
from trivium_worker.runtime.adapter import Adapter, Host, Setup, Step
from trivium_worker.runtime.life import serve
from trivium_worker.wire import values


def program(
    command: Sequence[str], environment: Mapping[str, str], spec: ModelSpec, placement: Placement
) -> WorkerCommand:
    """The worker of one instance; `command` ends up in `run`."""
    setup: dict[str, object] = {
        "dialect": "engine",
        "model": spec.name,
        "version": spec.version,
        "instance": placement.name,
        "device": placement.device.value,
        "device_id": placement.device_id,
        "root": str(spec.root.absolute()),
        "entry": spec.entry,
        "function": "",
        "max_rows": spec.batching.max_rows,
        "path": [],
        "settings": {"spec": encode(spec), "placement": msgspec.to_builtins(placement)},
        "parameters": dict(spec.parameters),
    }
    return WorkerCommand(tuple(command), Path.cwd(), quieted(environment), setup)


def run(arguments: Sequence[str], find_engine: FindEngine) -> None:
    """Do what the worker process does."""

    def make(setup: Setup, host: Host) -> Adapter:
        spec = decode(msgspec.convert(setup.settings["spec"], dict[str, object]))
        placement = msgspec.convert(setup.settings["placement"], Placement)
        engine = find_engine(spec)
        if isinstance(engine, OpensStepRunner):
            return StepAdapter(engine, spec, placement, host)
        assert isinstance(engine, OpensRunner), "one that launches programs of its own is not hosted"
        return EngineAdapter(engine, spec, placement)

    serve(list(arguments), lambda told: make)


class EngineAdapter(Adapter):
    """Runs an engine's runner as a handler."""

    def __init__(self, engine: OpensRunner, spec: ModelSpec, placement: Placement) -> None:
        try:
            self._runner = engine.open(spec, placement)
        except ServeError as error:
            raise values.Failure(error.message, error.code.value) from error
        self._model = spec.name
        runner = self._runner  # asked once: isinstance of a protocol takes 8 µs
        self._streaming = runner if isinstance(runner, StreamsAnswers) and runner.streams else None

    def run(self, items: list[values.Item]) -> list[values.Outcome]:
        """An outcome per item."""
        if self._streaming is not None:
            return [self._streamed(self._streaming, item) for item in items]
        batch = Batch([], [], [])
        for item in items:
            batch.items.append(item.number)
            batch.operations.append(Infer(self._model, _payload(item.payload), id=item.request_id))
            batch.rows.append(item.rows)
        return [_outcome(outcome) for outcome in execute(self._runner, batch).outcomes]

    def _streamed(self, runner: StreamsAnswers, item: values.Item) -> values.Outcome:
        """Send the parts of one answer as they come."""

        def send(part: Payload) -> bool:
            if not item.is_cancelled:
                item.send(_outcome(part))
            return not item.is_cancelled

        outcome = runner.stream(Infer(self._model, _payload(item.payload), id=item.request_id), send)
        return values.END if outcome is None else _outcome(outcome)

    def close(self) -> None:
        """Free the model."""
        self._runner.close()


class StepAdapter(Adapter):
    """Runs an engine's instance that works in steps. It is the outlet of that instance as well."""

    def __init__(self, engine: OpensStepRunner, spec: ModelSpec, placement: Placement, host: Host) -> None:
        self._model = spec.name
        self.wake = host.wake
        self._items: dict[ItemId, values.Item] = {}
        try:
            self._runner = engine.open_steps(spec, placement, self)
        except ServeError as error:
            raise values.Failure(error.message, error.code.value) from error
        self.slots = self._runner.slots

    def add(self, item: values.Item) -> None:
        """See `Adapter`. A call of a function by its name is answered at once."""
        if isinstance(item.payload, values.Raw):
            item.send(self._called(item), final=True)
            return
        assert isinstance(item.payload, values.Generate), "the door has seen to it"
        infer = Infer(self._model, read_request(item.payload), id=item.request_id, deadline=item.timeout)
        self._items[item.number] = item
        try:
            self._runner.add(item.number, infer)
        except ServeError as error:
            del self._items[item.number]
            raise _failure(error) from error

    def _called(self, item: values.Item) -> values.Outcome:
        payload = _payload(item.payload)
        assert isinstance(payload, Raw), "it is one"
        if not isinstance(self._runner, CallsFunctions):
            return values.Failure(f"Model '{self._model}' has no function {item.method[:200]!r}.")
        try:
            return _outcome(self._runner.call(item.method, payload))
        except ServeError as error:
            return _failure(frameless(error))

    def step(self) -> Step | None:
        """See `Adapter`."""
        report = self._runner.step()
        if report is None:
            return None
        tokens = report.prompt_tokens, report.new_tokens
        kept = report.queried_tokens, report.cached_tokens
        return Step(report.rows, *tokens, report.share, report.wasted_tokens, report.room, *kept)

    def abort(self, item: values.Item) -> int:
        """See `Adapter`."""
        return self._runner.abort(item.number) if self._items.pop(item.number, None) is not None else 0

    def reset(self) -> None:
        """See `Adapter`."""
        self._items.clear()
        self._runner.reset()

    def close(self) -> None:
        """Free the model."""
        self._runner.close()

    def offer(self, item: ItemId, part: Generated) -> None:
        """See `StepOutlet`."""
        self._items[item].offer(write_part(part))

    def end(self, item: ItemId, part: Generated | ServeError) -> None:
        """See `StepOutlet`."""
        outcome = _failure(part) if isinstance(part, ServeError) else write_part(part)
        self._items.pop(item).send(outcome, final=True)


def _payload(payload: values.Payload) -> RequestPayload:
    if isinstance(payload, values.Raw):
        parts = tuple(RawPart(memoryview(p.data), p.content_type, p.name, p.filename) for p in payload.parts)
        form = RawForm(payload.form or RawForm.BODY)
        return Raw(parts, payload.properties, tuple(payload.query), path=payload.path, form=form)
    return Tensors(
        tuple(binary.decode(t.name, BY_NAME[t.datatype], t.shape, memoryview(t.data)) for t in payload)
    )


def _failure(error: ServeError) -> values.Failure:
    metadata = {key: str(value) for key, value in error.metadata.items()}
    return values.Failure(error.message, error.code.value, error.status, error.reason, metadata)


def _outcome(outcome: Outcome) -> values.Outcome:
    if isinstance(outcome, ServeError):
        return _failure(outcome)
    if isinstance(outcome, Raw):
        parts = [values.Part(p.data, p.content_type, p.name, p.filename) for p in outcome.parts]
        return values.Raw(parts, dict(outcome.properties), outcome.query, outcome.status, outcome.reason)
    assert isinstance(outcome, Tensors), "runners answer with tensors or bodies"
    return [values.Tensor(t.name, t.datatype.wire, t.shape, binary.encode(t)) for t in outcome.items]
