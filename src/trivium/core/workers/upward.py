"""What user code in a worker asks of the server: other models, loads, log lines, custom metrics.

A call becomes an operation with its parent's chain and what is left of its deadline, and goes in by the same
door as a client's. It ends with its final part, when the worker hangs up, or when its parent ends.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from trivium.core.workers.wire import Garbage, read_payload, write_reply
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
    Unload,
    WantedOutput,
)
from trivium.types.payload import PayloadKind
from trivium.types.running import ItemId
from trivium_child import frames

if TYPE_CHECKING:
    from trivium.core.workers.process import ProcessInstance

TENSORS = PayloadKind.TENSORS
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
        self._tickets: dict[int, Ticket] = {}
        self._children: dict[ItemId, set[int]] = {}

    def attach(self, worker: "ProcessInstance") -> None:
        """Whom the calls come from."""
        self._worker = worker

    def take(self, kind: int, body: memoryview) -> None:
        """A frame of the worker. Raises Garbage."""
        if kind == frames.CALL:
            self._call(body)
        elif kind == frames.ASK:
            self._ask(frames.read(body))
        elif kind == frames.HANG_UP:
            ticket = self._tickets.pop(frames.NUMBER.unpack(body)[0], None)
            if ticket is not None:
                ticket.cancel(LEFT)
        elif kind == frames.LOG:
            told = frames.read(body)
            self._log.log(_LEVELS.get(told["level"], logging.INFO), "%s", told["message"])
        elif kind == frames.MEASURE:
            self._note(frames.read(body))
        else:
            raise Garbage(f"a frame of unknown kind {kind}")

    def abandon(self, parent: ItemId) -> None:
        """That item has ended: nobody waits for what it called."""
        if self._children:
            for number in self._children.pop(parent, ()):
                ticket = self._tickets.pop(number, None)
                if ticket is not None:
                    ticket.cancel(LEFT)

    def close(self) -> None:
        """The worker is gone."""
        tickets, self._tickets = self._tickets, {}
        self._children.clear()
        for ticket in tickets.values():
            ticket.cancel(LEFT)

    def _call(self, body: memoryview) -> None:
        fixed = frames.ITEM.unpack_from(body, 0)
        number, _, id_size, text_size, _, _, size = fixed
        at = frames.ITEM.size
        name = str(body[at : at + id_size], "utf-8")
        at += id_size
        told = frames.read(body[at : at + text_size])
        at += text_size
        payload = read_payload(told, body[at : at + size])
        parent = int(told["parent"])
        operation = Infer(
            model=str(told["model"]),
            version=str(told["version"]),
            payload=payload,
            id=name,
            outputs=tuple(WantedOutput(output) for output in told["outputs"]),
            parameters=told.get("parameters", {}),
            deadline=told.get("timeout"),
            wants=TENSORS,
            parent=self._chain(parent),
        )
        self._submit(number, parent, operation)

    def _chain(self, parent: ItemId) -> CallRef:
        assert self._worker is not None
        caller = self._worker.operation(parent)
        above = caller.parent if caller is not None else None
        if above is None:
            return CallRef((parent,), (self._model,))
        return CallRef((*above.items, parent), (*above.chain, self._model))

    def _ask(self, told: dict[str, object]) -> None:
        number, verb = int(str(told["call"])), told["verb"]
        model, version = str(told.get("model", "")), str(told.get("version", ""))
        verbs: Mapping[object, Callable[[], Operation]] = {
            "ready": lambda: Ready(model, version),
            "load": lambda: Load(model),
            "unload": lambda: Unload(model),
        }
        if verb not in verbs:
            text = f"A worker asked for {verb!r}; it can ask for: {', '.join(map(str, verbs))}."
            self._reply(number, ResponsePart(error=ServeError(Code.UNSUPPORTED, text)))
            return
        self._submit(number, 0, verbs[verb]())

    def _submit(self, number: int, parent: ItemId, operation: Operation) -> None:
        if parent:
            self._children.setdefault(parent, set()).add(number)
        is_over = False

        def sink(part: ResponsePart) -> None:
            nonlocal is_over
            is_over = is_over or part.final
            self._reply(number, part)
            if part.final and self._tickets.pop(number, None) is not None and parent:
                self._children.get(parent, set()).discard(number)

        ticket = self._submits.submit(operation, sink)
        if not is_over:
            self._tickets[number] = ticket

    def _reply(self, number: int, part: ResponsePart) -> None:
        assert self._worker is not None
        parameters = dict(part.parameters)
        if isinstance(part.answer, Readiness):
            parameters = {"ready": part.answer.ready, "reason": part.answer.reason}
        self._worker.write(write_reply(number, part.payload, part.error, part.final, parameters))

    def _note(self, metric: dict[str, object]) -> None:
        try:
            self._measure(self._model, metric)
        except (ValueError, KeyError, TypeError) as error:
            self._log.warning("a custom metric was not taken: %s", error)
