"""Frames between server and worker: what a worker may send to the server, and what the server may send to a worker."""

import asyncio
import json
import logging
import random
from functools import cache

from tests.fuzz import mutations
from tests.fuzz.mutations import pieces
from tests.fuzz.target import Change, Target
from tests.harness.fake_core import FakeTicket

from trivium.core.observability.custom_metrics import CustomMetrics
from trivium.core.workers.connection import WorkerConnection
from trivium.core.workers.upcalls import Upcalls
from trivium.core.workers.wire import UNREADABLE, AnswerReader
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Sink
from trivium.types.operations import Infer, Operation, Readiness, Ready, ResponsePart
from trivium.types.payload import Raw, Tensors
from trivium.types.running import Event, ItemId
from trivium_worker.wire import frames, values
from trivium_worker.wire.frames import AnswerTexts

FP32 = values.Tensor("x", "FP32", (1,), b"1234")
TEXTS = values.Tensor.of_elements("t", [b"", b"abc"])
RAW = values.Raw(
    [values.Part(b"one", "text/plain", "f", "f.txt")], {"P": "1"}, [("q", "2"), ("q", "1")], 201, "Made"
)
OUTCOMES = ([FP32], [FP32, TEXTS], RAW, values.Failure("bad", "invalid", 418), values.END, [TEXTS])
SILENT = logging.getLogger("trivium.fuzz")
SILENT.setLevel(logging.CRITICAL + 1)


def answer(
    number: int, outcome: object, flags: int = 0, parameters: dict[str, object] | None = None
) -> bytes:
    written: list[bytes] = []
    AnswerTexts().write(written, number, outcome, flags, parameters)  # type: ignore[arg-type]
    return b"".join(map(bytes, written))


def about(number: int, text: dict[str, object], data: bytes = b"", name: bytes = b"id") -> bytes:
    """A request in a batch, or a call."""
    told = frames.text(text)
    fixed = frames.ITEM.pack(number, 1, len(name), len(told), frames.INLINE, 0, len(data))
    return fixed + name + told + data


CALL = {"model": "other", "version": "1", "outputs": ["y"], "parent": 1, "tensors": [["x", "FP32", [1], 4]]}
METRIC = {
    "kind": "histogram",
    "name": "n",
    "help": "h",
    "labels": {"a": "b"},
    "observe": 1.5,
    "buckets": [1, 2],
}
FROM_WORKER = (
    (frames.READY, frames.text({"checks": True})),
    (frames.REFUSED, frames.text({"message": "no", "code": "x"})),
    (frames.DONE, frames.DONE_HEAD.pack(1, 1, 0.0, 1.0, 0) + answer(1, [FP32])),
    (frames.DONE, frames.DONE_HEAD.pack(2, 2, 0.0, 1.0, 3) + answer(2, RAW) + answer(3, OUTCOMES[3])),
    (frames.PART, answer(1, [TEXTS], 0, {"a": 1})),
    (frames.PART, answer(1, values.END, frames.FINAL)),
    (frames.PONG, b""),
    (frames.CALL, about(5, CALL, b"1234")),
    (frames.CALL, about(6, {**CALL, "timeout": 1.5, "sequence": ["s", True, False], "one": True}, b"1234")),
    (frames.CALL, about(7, {"model": "m", "raw": frames.raw_text(RAW)[0]}, b"one")),
    (frames.ASK, frames.text({"call": 9, "verb": "load", "model": "m", "files": {"a": "AAAA"}})),
    (frames.LOG, frames.text({"level": "info", "message": "hello"})),
    (frames.MEASURE, frames.text(METRIC)),
    (frames.HANG_UP, frames.NUMBER.pack(5)),
    (frames.HEARD, frames.TAKEN_BODY.pack(6, 2)),
    (frames.KEPT, frames.KEPT_BODY.pack(1, 1)),
    (frames.FREED, frames.NUMBER.pack(1)),
    (frames.CHECKED, frames.text({"why": ""})),
)
RUN = {"tensors": [["x", "FP32", [1], 4]], "outputs": ["y"], "parameters": {"a": 1}}
TO_WORKER = (
    (frames.SETUP, frames.text({"handler": "x", "config": {}})),
    (frames.RUN, frames.RUN_HEAD.pack(1, 1) + about(1, RUN, b"1234")),
    (frames.RUN, frames.RUN_HEAD.pack(2, 2) + about(2, RUN, b"1234") + about(3, {"raw": frames.raw_text(RAW)[0]},
    b"one")),
    (frames.CANCEL, frames.NUMBER.pack(1)),
    (frames.REPLY, answer(5, [FP32, TEXTS], frames.FINAL, {"p": 1})),
    (frames.REPLY, answer(5, OUTCOMES[3])),
    (frames.TAKEN, frames.TAKEN_BODY.pack(1, 2)),
    (frames.STOP, b""),
)  # fmt: skip
TOKENS = (
    b'{"tensors":', b'{"raw":', b'"FP32"', b'"BYTES"', b'"BOOL"', b"[[", b"]]", frames.frame(frames.STOP),
    frames.frame(frames.PONG),
    frames.SIZE.pack(0), frames.SIZE.pack(2**31), frames.SIZE.pack(2**31 + 1), *mutations.JSON_VALUES,
)  # fmt: skip


def several(kinds: tuple[tuple[int, bytes], ...]) -> tuple[bytes, ...]:
    """Each frame alone, and a few of them together."""
    alone = tuple(frames.frame(kind, body) for kind, body in kinds)
    return (*alone, b"".join(alone), b"".join(alone[:4]), alone[7] + alone[7] + alone[-1])


def rebuilt(entry: bytes, change: Change, chance: random.Random) -> bytes:
    """Frames of the right size, with another body, or a text inside that is changed as JSON and of the right length."""
    out = []
    for kind, at, end in frames.frames(entry)[0]:
        body = entry[at:end]
        match chance.randrange(6):
            case 0:
                body = change(body)
            case 1 | 2:
                body = _with_other_text(kind, body, chance)
            case 3:
                kind = chance.choice((kind, chance.randrange(32)))
        out += [frames.frame(kind, body)] * chance.choice((1, 1, 1, 1, 2))
    return b"".join(out)


def _with_other_text(kind: int, body: bytes, chance: random.Random) -> bytes:
    start, end = body.find(b"{"), _end_of_object(body)
    if start < 0 or end < 0:
        return body
    text = mutations.json_changed(body[start:end], chance)
    in_done, in_run = (
        frames.DONE_HEAD.size * (kind == frames.DONE),
        frames.RUN_HEAD.size * (kind == frames.RUN),
    )
    for form, at, index in ((frames.ANSWER, in_done, 2), (frames.ITEM, in_run, 3)):
        if len(body) < at + form.size:
            continue
        fixed = list(form.unpack_from(body, at))
        if fixed[index] == end - start:
            fixed[index] = len(text)
            return body[:at] + form.pack(*fixed) + body[at + form.size : start] + text + body[end:]
    return body[:start] + text + body[end:]


def _end_of_object(body: bytes) -> int:
    start = body.find(b"{")
    try:
        _, size = json.JSONDecoder().raw_decode(body[start:].decode("latin-1"))
    except ValueError:
        return -1
    return start + size


# -- the server's side -------------------------------------------------------------------------------------


class AnyCore:
    """Answers at once, later or never."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.tickets: list[FakeTicket] = []

    def lend(self, model: str, version: str, size: int, lead: int = 0) -> None:
        return None

    def submit(self, operation: Operation, sink: Sink) -> FakeTicket:
        if isinstance(operation, Ready):
            sink(ResponsePart(answer=Readiness(self._chance.random() < 0.8, "")))
        elif not isinstance(operation, Infer):
            sink(ResponsePart(error=ServeError(Code.NOT_FOUND, "there is none")))
        ticket = FakeTicket(operation, sink)  # type: ignore[arg-type]
        if isinstance(operation, Infer):
            self.tickets.append(ticket)
            if self._chance.random() < 0.5:
                ticket.echo()
        else:
            ticket.is_over = True
        return ticket


class Owner:
    """The instance that a connection belongs to, with two items in hand."""

    def __init__(self, chance: random.Random) -> None:
        self.items = {number: Infer("m", Raw(())) for number in (1, 2, 3)}
        self.killed: list[str] = []
        self.core = AnyCore(chance)
        self.upward = Upcalls("m", self.core, CustomMetrics().take, SILENT)  # type: ignore[arg-type]
        self.upward.attach(self)
        self.reader = AnswerReader()
        self.written: list[bytes] = []

    def operation(self, item: ItemId) -> Infer | None:
        return self.items.get(item)

    def write(self, written: list[bytes | memoryview]) -> None:
        self.written += map(bytes, written)

    def done(self, came: bytes, at: int, end: int, events: list[Event]) -> None:
        _, _, outcomes, *_ = self.reader.done(came, at, end)
        for outcome in outcomes:
            if isinstance(outcome, Tensors):
                for tensor in outcome.items:
                    assert tensor.name is not None

    def part(self, came: bytes, at: int, end: int, events: list[Event]) -> None:
        self.reader.part(came, at, end)

    def upcall(self, kind: int, body: memoryview) -> None:
        self.upward.take(kind, body)

    def received(self, events: list[Event]) -> bool:
        return True

    def about(self, text: str) -> None:
        return None

    def kill(self, why: str, cause: object = None) -> None:
        self.killed.append(why)

    def disconnected(self) -> None:
        pass


@cache
def loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


class Garbage(Exception):
    """The worker was killed for what it sent."""


def read_at_server(data: bytes, chance: random.Random) -> None:
    """Nothing is raised into the loop: what cannot be understood ends the worker."""

    async def play() -> list[str]:
        owner = Owner(chance)
        connection = WorkerConnection(owner, owner.items, {}, asyncio.get_running_loop().call_soon)
        for piece in pieces(data, chance):
            connection.data_received(piece)
            if owner.killed:
                break
        for ticket in owner.core.tickets:
            if not ticket.is_over and chance.random() < 0.5:
                ticket.echo()
        for item in owner.items:
            owner.upward.cancel_calls(item)
        owner.upward.close()
        connection.leases.close()
        connection.probe.close(Code.WORKER_DIED, "the end")
        connection.probe.opened.exception()
        await asyncio.sleep(0)
        return owner.killed

    if killed := loop().run_until_complete(play()):
        raise Garbage(killed[0])


# -- the worker's side -------------------------------------------------------------------------------------


def read_at_worker(data: bytes, chance: random.Random) -> None:
    """What the parts of a worker's intake make of it; whatever exception they raise ends the worker."""
    texts = frames.Texts()
    found, used = frames.frames(data)
    assert 0 <= used <= len(data)
    assert frames.wanted(data, used) <= frames.MOST + 4
    for kind, at, end in found:
        body = memoryview(data)[at:end]
        if kind == frames.REPLY:
            _, what, text_size, _ = frames.ANSWER.unpack_from(body, 0)
            at = frames.ANSWER.size
            told = texts.read(bytes(body[at : at + text_size])) if text_size else {}
            if what & 3 == frames.PAYLOAD:
                use(frames.read_payload(told, body[at + text_size :]))
        elif kind == frames.SETUP:
            frames.read(body)
        elif kind == frames.RUN:
            _, count = frames.RUN_HEAD.unpack_from(body, 0)
            at = frames.RUN_HEAD.size
            for _ in range(count):
                _, _, id_size, text_size, _, _, size = frames.ITEM.unpack_from(body, at)
                at += frames.ITEM.size + id_size
                told = texts.read(bytes(body[at : at + text_size]))
                at += text_size + size
                use(frames.read_payload(told, body[at - size : at]))


def use(payload: values.Payload) -> None:
    if isinstance(payload, list):
        for tensor in payload:
            tensor.array()


TWICE = b"".join(
    frames.frame(frames.CALL, about(5, {**CALL, "parent": parent}, b"1234")) for parent in (1, 2)
)
"""One number for two calls, of different requests."""

TARGETS = (
    Target(
        "worker_to_server",
        (*several(FROM_WORKER), TWICE),
        read_at_server,
        (Garbage,),
        TOKENS,
        rebuild=rebuilt,
    ),
    Target("server_to_worker", several(TO_WORKER), read_at_worker, UNREADABLE, TOKENS, rebuild=rebuilt),
)
