"""What user code in a worker asks of the server: other models, loads, log lines, custom metrics.

A call becomes an operation with its parent's chain, and goes in by the same door as a client's. It ends with its
final part, when the worker hangs up, or when its parent ends, be it by its deadline.
"""

import logging
from collections.abc import Callable, Mapping
from math import isfinite
from struct import error as StructError
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec

from trivium.core.workers.wire import UNREADABLE, Garbage, read_payload, write_reply
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Submits, Ticket
from trivium.types.operations import (
    CallRef,
    Infer,
    Load,
    Operation,
    Readiness,
    Ready,
    ResponsePart,
    SequenceRef,
    Unload,
    WantedOutput,
)
from trivium.types.payload import Payload, PayloadKind, Scalar
from trivium.types.running import ItemId
from trivium_child import frames

if TYPE_CHECKING:
    from trivium.core.workers.process import ProcessInstance

TENSORS = PayloadKind.TENSORS
Text = TypeVar("Text")
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
LEFT = ServeError(Code.CANCELLED, "The request that made this call has ended, or its worker has.")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

Measure = Callable[[str, Mapping[str, object]], None]
"""Takes a model's name and one step of a custom metric; ValueError for one that is none."""


class Upward:
    """The calls of one worker, which serves `model`. Used on the loop only."""

    def __init__(self, model: str, submits: Submits, measure: Measure, log: logging.Logger) -> None:
        self._model = model
        self._submits = submits
        self._measure = measure
        self._log = log
        self._worker: ProcessInstance | None = None
        self._tickets: dict[int, tuple[ItemId, Ticket]] = {}
        self.calling: dict[ItemId, set[int]] = {}
        """The calls that have not ended, by the item that made them."""
        self._unheard: dict[int, int] = {}  # call -> parts of its answer that user code has not read

    def attach(self, worker: "ProcessInstance") -> None:
        """Whom the calls come from."""
        self._worker = worker

    def take(self, kind: int, body: memoryview) -> None:
        """A frame of the worker. Raises Garbage."""
        if kind == frames.CALL:
            number, call = _read_call(body)
            self._call(number, call)
        elif kind == frames.ASK:
            self._ask(_convert(_read(body), Question))
        elif kind == frames.HANG_UP:
            self._hang_up(_number(body))
        elif kind == frames.HEARD:
            self._heard(body)
        elif kind == frames.LOG:
            line = _convert(_read(body), Line)
            self._log.log(_LEVELS.get(line.level, logging.INFO), "%s", line.message)
        elif kind == frames.MEASURE:
            self._note(_read(body))
        else:
            raise Garbage(f"a frame of unknown kind {kind}")

    def abandon(self, parent: ItemId) -> None:
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

    def _call(self, number: int, call: "Called") -> None:
        assert self._worker is not None
        told = call.told
        caller = self._worker.operation(told.parent)
        parent = 0 if caller is None else told.parent  # one that has ended is nobody's parent any more
        above = caller.parent if caller is not None else None
        trace = told.trace if told.trace and self._worker.operation(told.trace) is not None else 0
        ref = CallRef((parent,), (self._model,), trace)
        if above is not None:
            ref = CallRef((*above.items, parent), (*above.chain, self._model), trace)
        operation = Infer(
            model=told.model,
            version=told.version,
            payload=call.payload,
            id=call.name,
            outputs=tuple(map(WantedOutput, told.outputs)),
            parameters=told.parameters,
            deadline=told.timeout,
            sequence=SequenceRef(*told.sequence) if told.sequence and told.sequence[0] else None,
            wants=TENSORS,
            parent=ref,
        )
        self._submit(number, parent, operation)

    def _ask(self, asked: "Question") -> None:
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

    def _submit(self, number: int, parent: ItemId, operation: Operation) -> None:
        is_over = False

        def sink(part: ResponsePart) -> None:
            nonlocal is_over
            is_over = is_over or part.final
            if part.final:
                self._forget(number, parent)
            else:
                self._count(number)
            self._reply(number, part)

        ticket = self._submits.submit(operation, sink)
        if not is_over:
            self._tickets[number] = parent, ticket
            if parent:
                self.calling.setdefault(parent, set()).add(number)

    def _count(self, number: int) -> None:
        """Whoever makes the parts is held while as many as a window of them have not been read."""
        count = self._unheard[number] = self._unheard.get(number, 0) + 1
        if count >= frames.WINDOW and number in self._tickets:
            self._tickets[number][1].hold()

    def _heard(self, body: memoryview) -> None:
        if len(body) != frames.TAKEN_BODY.size:
            raise Garbage(f"a receipt in {len(body)} bytes")
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

    def _note(self, metric: dict[str, object]) -> None:
        try:
            self._measure(self._model, metric)
        except ValueError as error:
            self._log.warning("a custom metric was not taken: %s", error)


class Told(msgspec.Struct, frozen=True):
    """What a call says of itself beside its payload; `timeout` in seconds, `parent` 0 without one, `trace` the
    item of whose trace it is a part, or 0.
    """

    model: str
    version: str = ""
    parent: Number = 0
    outputs: tuple[str, ...] = ()
    parameters: dict[str, Scalar] = {}
    timeout: float | None = None
    sequence: tuple[Annotated[int, msgspec.Meta(ge=0)] | str, bool, bool] | None = None
    trace: Number = 0


class Called(msgspec.Struct, frozen=True):
    """A call, read."""

    name: str
    told: Told
    payload: Payload


class Question(msgspec.Struct, frozen=True):
    """What is asked besides calls; files come in base64, by paths within the model's folder."""

    call: Number
    verb: str
    model: str = ""
    version: str = ""
    config: str = ""
    files: dict[str, bytes] = {}
    with_dependents: bool = False


class Line(msgspec.Struct, frozen=True):
    """Of a log."""

    level: str
    message: str


def _read_call(body: memoryview) -> tuple[int, Called]:
    """Number and call. Raises Garbage."""
    try:
        number, _, id_size, text_size, _, _, size = frames.ITEM.unpack_from(body, 0)
        at = frames.ITEM.size
        name = str(body[at : at + id_size], "utf-8")
        at += id_size
        text = frames.read(body[at : at + text_size])
        at += text_size
        payload = read_payload(text, body[at : at + size])
    except (StructError, *UNREADABLE) as error:
        raise Garbage(f"a call that cannot be read: {error!r}") from error
    told = _convert(text, Told)
    if told.timeout is not None and not isfinite(told.timeout):
        raise Garbage(f"a call with a timeout of {told.timeout} s")
    return number, Called(name, told, payload)


def _number(body: memoryview) -> int:
    if len(body) != frames.NUMBER.size:
        raise Garbage(f"a number in {len(body)} bytes")
    number: int = frames.NUMBER.unpack(body)[0]
    return number


def _read(body: memoryview) -> dict[str, object]:
    try:
        return frames.read(body)
    except UNREADABLE as error:
        raise Garbage(f"a text that cannot be read: {error!r}") from error


def _convert(told: dict[str, object], kind: type[Text]) -> Text:
    try:
        return msgspec.convert(told, kind)
    except msgspec.ValidationError as error:
        raise Garbage(f"a {kind.__name__} that is none: {error}") from error
