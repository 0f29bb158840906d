"""Serves what user code in a worker asks of the server: other models, loads, log lines, custom metrics.

Its frames are read into values first; ProtocolError for those that cannot be read. A call becomes an operation with its
parent's chain, and goes in by the same door as a client's, once the called model says that it is ready. It ends with
its final part, when the worker hangs up, or when its parent ends, be it by its deadline.
"""

import logging
from collections.abc import Callable, Mapping
from math import isfinite
from struct import error as StructError
from typing import Annotated, Protocol, TypeVar

import msgspec

from trivium.core.workers.wire import UNREADABLE, ProtocolError, read_payload, write_reply
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Generated
from trivium.types.interfaces import InferenceCore, Sink, Ticket
from trivium.types.operations import (
    CallRef,
    Describe,
    Infer,
    Load,
    ModelDescription,
    Operation,
    Readiness,
    Ready,
    ResponsePart,
    SequenceRef,
    Unload,
    WantedOutput,
)
from trivium.types.payload import PayloadKind, RequestPayload, Scalar
from trivium.types.running import CallForm, ItemId, ReadMetric, TranslateError, unchanged
from trivium_worker.wire import frames

Text = TypeVar("Text")
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class UpcallOptions(msgspec.Struct, frozen=True):
    """Holds what a call says of itself apart from its payload; `timeout` in seconds, `parent` 0 without one, `trace`
    the item of whose trace it is a part, or 0; `one`: a model that may answer in several parts is not to be called;
    `form`: the body is read, and the answer written, in the form of the worker's dialect for models that generate.
    """

    model: str
    version: str = ""
    parent: Number = 0
    outputs: tuple[str, ...] = ()
    parameters: dict[str, Scalar] = {}
    timeout: float | None = None
    sequence: tuple[Annotated[int, msgspec.Meta(ge=0)] | str, bool, bool] | None = None
    trace: Number = 0
    one: bool = False
    form: bool = False


class Upcall(msgspec.Struct, frozen=True):
    """A call, read."""

    name: str
    told: UpcallOptions
    payload: RequestPayload


class ServerRequest(msgspec.Struct, frozen=True):
    """Holds what is asked besides calls; files come in base64, by paths within the model's folder."""

    call: Number
    verb: str
    model: str = ""
    version: str = ""
    config: str = ""
    files: dict[str, bytes] = {}
    with_dependents: bool = False


class LogLine(msgspec.Struct, frozen=True):
    """Holds a line of a log."""

    level: str
    message: str


def read_call(body: memoryview) -> tuple[int, Upcall]:
    """Number and call. Raises ProtocolError."""
    try:
        number, _, id_size, text_size, _, _, size = frames.ITEM.unpack_from(body, 0)
        at = frames.ITEM.size
        name = str(body[at : at + id_size], "utf-8")
        at += id_size
        text = frames.read(body[at : at + text_size])
        at += text_size
        payload = read_payload(text, body[at : at + size])
        if isinstance(payload, Generated):
            raise ProtocolError("a call with parts of an answer")
    except (StructError, *UNREADABLE) as error:
        raise ProtocolError(f"a call that cannot be read: {error!r}") from error
    told = convert(text, UpcallOptions)
    if told.timeout is not None and not isfinite(told.timeout):
        raise ProtocolError(f"a call with a timeout of {told.timeout} s")
    return number, Upcall(name, told, payload)


def number_of(body: memoryview) -> int:
    """Read what describes a call. Raises ProtocolError."""
    if len(body) != frames.NUMBER.size:
        raise ProtocolError(f"a number in {len(body)} bytes")
    number: int = frames.NUMBER.unpack(body)[0]
    return number


def read(body: memoryview) -> dict[str, object]:
    """The text that is the whole frame. Raises ProtocolError."""
    try:
        return frames.read(body)
    except UNREADABLE as error:
        raise ProtocolError(f"a text that cannot be read: {error!r}") from error


def convert(told: dict[str, object], kind: type[Text]) -> Text:
    """A text as what it should be. Raises ProtocolError."""
    try:
        return msgspec.convert(told, kind)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"a {kind.__name__} that is none: {error}") from error


TENSORS = PayloadKind.TENSORS
LEFT = ServeError(Code.CANCELLED, "The request that made this call has ended, or its worker has.")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

Measure = Callable[[str, Mapping[str, object]], None]
"""Takes a model's name and one step of a custom metric; ValueError for one that is none."""


LONGEST = 4096
"""Characters of a line that are kept."""


def _unheard(line: str) -> None:
    """Keep nothing."""


class CallingWorker(Protocol):
    """The worker that the calls come from."""

    def operation(self, item: ItemId) -> Infer | None:
        """Return the request that the worker has in hand under that number, or None."""

    def about(self, text: str) -> Mapping[str, object] | None:
        """Return what a record of the log says of a line apart from its text; None for nothing."""

    def write(self, pieces: list[bytes | memoryview]) -> None:
        """Send frames to the worker."""


class _Asking:
    """The ticket of a call whose model is still being asked whether it is ready."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.is_over = False

    def cancel(self, why: ServeError) -> None:
        """See `Ticket.cancel`. What the model says is not heard any more."""
        if not self.is_over:
            self.is_over = True
            self._sink(ResponsePart(error=why))

    def hold(self) -> None:
        """There are no parts yet."""

    def resume(self) -> None:
        """It was not held."""


class Upcalls:
    """The calls of one worker, which serves `model` and hears in `words` what went wrong with them. Used on the loop
    only.
    """

    def __init__(  # noqa: PLR0913 - the last three are the dialect's
        self,
        model: str,
        submits: InferenceCore,
        measure: Measure,
        log: logging.Logger,
        words: TranslateError = unchanged,
        read_metric: ReadMetric | None = None,
        open_form: Callable[[], CallForm] | None = None,
    ) -> None:
        self._model = model
        self._open_form = open_form
        self._submits = submits
        self._measure = measure
        self._log = log
        self._words = words
        self._read_metric = read_metric
        self._last_fault = ""
        self.hears = None if read_metric is None else self._hear
        """Takes a line of the worker's output; None where no line means anything."""
        self.says: Callable[[str], None] = _unheard
        """Takes each line that user code logs by a call."""
        self._worker: CallingWorker | None = None
        self._tickets: dict[int, tuple[ItemId, Ticket]] = {}
        self.calling: dict[ItemId, set[int]] = {}
        """The calls that have not ended, by the item that made them."""
        self._unheard: dict[int, int] = {}  # call -> parts of its answer that user code has not read

    def attach(self, worker: CallingWorker) -> None:
        """Whom the calls come from."""
        self._worker = worker

    def open_calls(self) -> tuple[int, ...]:
        """List the calls that have not ended, by number."""
        return tuple(sorted({*self._tickets, *(call for calls in self.calling.values() for call in calls)}))

    def take(self, kind: int, body: memoryview) -> None:
        """A frame of the worker. Raises ProtocolError."""
        if kind == frames.CALL:
            number, call = read_call(body)
            self._check_new(number)
            self._call(number, call)
        elif kind == frames.ASK:
            asked = convert(read(body), ServerRequest)
            self._check_new(asked.call)
            self._ask(asked)
        elif kind == frames.HANG_UP:
            self._hang_up(number_of(body))
        elif kind == frames.HEARD:
            self._heard(body)
        elif kind == frames.LOG:
            line = convert(read(body), LogLine)
            about = None if self._worker is None else self._worker.about(line.message)
            self._log.log(_LEVELS.get(line.level, logging.INFO), "%s", line.message, extra=about)
            self.says(line.message[:LONGEST])
        elif kind == frames.MEASURE:
            self._note(read(body))
        else:
            raise ProtocolError(f"a frame of unknown kind {kind}")

    def cancel_calls(self, parent: ItemId) -> None:
        """That item has ended: nobody waits for what it called."""
        if self.calling:
            for number in self.calling.pop(parent, ()):
                _, ticket = self._tickets.pop(number)
                self._unheard.pop(number, None)
                ticket.cancel(LEFT)

    def close(self) -> None:
        """The worker is gone."""
        tickets, self._tickets = self._tickets, {}
        self.calling.clear()
        self._unheard.clear()
        for _, ticket in tickets.values():
            ticket.cancel(LEFT)

    def _check_new(self, number: int) -> None:
        if number in self._tickets:
            raise ProtocolError(f"a call under the number {number}, which one that has not ended has")

    def _call(self, number: int, call: Upcall) -> None:
        form = self._open_form() if call.told.form and self._open_form is not None else None
        parent, operation = self._operation(call, form)

        def refuse(why: ServeError) -> None:
            self._reply(number, ResponsePart(error=self._words(why, operation, True)))

        def told(part: ResponsePart) -> None:
            if asking.is_over:
                return
            asking.is_over = True
            if number not in self._tickets:
                return  # at once: what the server knows without asking a model, it says to the call itself
            self._forget(number, parent)
            assert isinstance(part.answer, Readiness)
            if part.answer.ready:
                self._submit(number, parent, operation, form)
            else:
                why = ErrorInfo.of(reasons.NOT_SERVING, model=operation.model, version=operation.version)
                refuse(ServeError(Code.NOT_READY, part.answer.reason, info=why))

        if call.told.one and self._streams(operation):
            refuse(_several(operation.model))
            return
        asking = _Asking(lambda part: refuse(LEFT))
        self._submits.submit(Ready(operation.model, operation.version), told)
        if asking.is_over:
            self._submit(number, parent, operation, form)
        else:
            self._keep(number, parent, asking)

    def _operation(self, call: Upcall, form: CallForm | None) -> tuple[ItemId, Infer]:
        """Return whose call it is, 0 where nobody waits for it, and what is called."""
        assert self._worker is not None
        told = call.told
        caller = self._worker.operation(told.parent)
        parent = 0 if caller is None else told.parent  # one that has ended is nobody's parent any more
        above = caller.parent if caller is not None else None
        trace = told.trace if told.trace and self._worker.operation(told.trace) is not None else 0
        ref = CallRef((parent,), (self._model,), trace)
        if above is not None:
            ref = CallRef((*above.items, parent), (*above.chain, self._model), trace)
        return parent, Infer(
            model=told.model,
            version=told.version,
            payload=call.payload,
            id=call.name,
            outputs=tuple(map(WantedOutput, told.outputs)),
            parameters=told.parameters,
            deadline=told.timeout,
            sequence=SequenceRef(*told.sequence) if told.sequence and told.sequence[0] else None,
            wants=TENSORS if form is None else None,
            parent=ref,
            as_generate=None if form is None else form.read,
        )

    def _streams(self, operation: Infer) -> bool:
        """May the called model answer in several parts, or in none?"""
        is_so = False

        def sink(part: ResponsePart) -> None:
            nonlocal is_so
            is_so = isinstance(part.answer, ModelDescription) and part.answer.spec.streams

        self._submits.submit(Describe(operation.model, operation.version), sink)
        return is_so

    def _ask(self, asked: "ServerRequest") -> None:
        if asked.verb == "ready":
            operation: Operation = Ready(asked.model, asked.version)
        elif asked.verb == "load":
            operation = Load(asked.model, asked.config or None, asked.files)
        elif asked.verb == "unload":
            operation = Unload(asked.model, asked.with_dependents)
        else:
            text = f"A worker asked for {asked.verb[:100]!r}; it can ask for: ready, load, unload."
            self._reply(asked.call, ResponsePart(error=ServeError(Code.UNSUPPORTED, text)))
            return
        self._submit(asked.call, 0, operation)

    def _submit(
        self, number: int, parent: ItemId, operation: Operation, form: CallForm | None = None
    ) -> None:
        is_over = is_begun = False

        def sink(part: ResponsePart) -> None:
            nonlocal is_over
            shown = part if form is None else form.written(part)
            if shown is None:
                return
            part = shown
            is_over = is_over or part.final
            if part.final:
                self._forget(number, parent)
            else:
                self._count(number)
            if part.error is not None:
                part = msgspec.structs.replace(part, error=self._words(part.error, operation, not is_begun))
            self._reply(number, part)

        ticket = self._submits.submit(operation, sink)
        is_begun = True
        if not is_over:
            self._keep(number, parent, ticket)

    def _keep(self, number: int, parent: ItemId, ticket: Ticket) -> None:
        self._tickets[number] = parent, ticket
        if parent:
            self.calling.setdefault(parent, set()).add(number)

    def _count(self, number: int) -> None:
        """Hold whoever makes the parts while as many as a window of them have not been read."""
        count = self._unheard[number] = self._unheard.get(number, 0) + 1
        if count >= frames.WINDOW and number in self._tickets:
            self._tickets[number][1].hold()

    def _heard(self, body: memoryview) -> None:
        if len(body) != frames.TAKEN_BODY.size:
            raise ProtocolError(f"a receipt in {len(body)} bytes")
        number, count = frames.TAKEN_BODY.unpack(body)
        if number not in self._tickets:
            return  # its answer has ended meanwhile
        left = self._unheard[number] = max(self._unheard.get(number, 0) - count, 0)
        if left < frames.WINDOW:
            self._tickets[number][1].resume()

    def _hang_up(self, number: int) -> None:
        parent, ticket = self._tickets.get(number, (0, None))
        if ticket is not None:
            self._forget(number, parent)
            ticket.cancel(LEFT)

    def _forget(self, number: int, parent: ItemId) -> None:
        self._tickets.pop(number, None)
        self._unheard.pop(number, None)
        children = self.calling.get(parent)
        if children is not None:
            children.discard(number)
            if not children:
                del self.calling[parent]

    def _reply(self, number: int, part: ResponsePart) -> None:
        assert self._worker is not None
        parameters = dict(part.parameters)
        if isinstance(part.answer, Readiness):
            parameters = {"ready": part.answer.ready, "reason": part.answer.reason}
        self._worker.write(write_reply(number, part.payload, part.error, part.final, parameters))

    def _note(self, metric: Mapping[str, object]) -> None:
        try:
            self._measure(self._model, metric)
        except ValueError as error:
            if str(error) != self._last_fault:
                self._log.warning("a custom metric was not taken: %s", error)
            self._last_fault = str(error)

    def _hear(self, line: str) -> None:
        assert self._read_metric is not None
        metric = self._read_metric(line)
        if metric is not None:
            self._note(metric)


def _several(model: str) -> ServeError:
    return ServeError(
        Code.UNSUPPORTED,
        f"Model '{model}' may answer a request in several parts, or in none, and this call waits for one answer. Call "
        "it in the way that reads several.",
        info=ErrorInfo.of(reasons.SEVERAL_PARTS, model=model),
    )
