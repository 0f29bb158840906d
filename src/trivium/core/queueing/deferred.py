"""Keeps answers that nobody waits for, until they are fetched in pages by a token.

Decides what is dropped: whatever is too old, the oldest where there are too many, and of those that are whole the
oldest where they take too much memory; both first of the client that has more than its share, so that nobody's are
pushed out by another's. One that grows beyond that holds its producer until it is fetched. Each of these is looked up,
however many are kept.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import msgspec

from trivium.core.queueing.kept_payload import PER_PART, detached, kept_bytes
from trivium.types import reasons
from trivium.types.core_config import DeferredLimits
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, anew
from trivium.types.generation import Generated
from trivium.types.interfaces import Sink, Ticket
from trivium.types.operations import Defer, Deferred, Fetch, Fetched, Infer, ResponsePart
from trivium.types.payload import RequestPayload
from trivium.types.shares import share_of
from trivium.types.spoken import spoken

Submit = Callable[[Infer, Sink], Ticket]
Write = Callable[[ResponsePart], ResponsePart | None]
Offload = Callable[[Callable[[], ResponsePart | None], Callable[[ResponsePart | None], None]], None]
"""Has something done in a thread, and calls back on the loop with what came of it."""


@dataclass(slots=True, eq=False)
class DeferredAnswer:
    """One answer: its parts from the number `first` on, and whether the last one has come. `held`: its producer waits
    for somebody to fetch. `asked`: bytes of its request, until that has ended.
    """

    token: str
    made_at: float
    owner: "ClientAnswers"
    parts: list[ResponsePart] = field(default_factory=list)
    first: int = 0
    size: int = 0
    asked: int = 0
    is_whole: bool = False
    ticket: Ticket | None = None
    held: bool = False


@dataclass(slots=True, eq=False)
class ClientAnswers:
    """Those of one client, `size` bytes: all of them, the oldest first, and those that are whole, as they became so."""

    name: str
    answers: OrderedDict[str, DeferredAnswer] = field(default_factory=OrderedDict)
    whole: OrderedDict[str, DeferredAnswer] = field(default_factory=OrderedDict)
    size: int = 0


class DeferredAnswers:
    """Holds all of them. Used on the loop only."""

    def __init__(
        self,
        limits: DeferredLimits,
        now: Callable[[], float],
        make_token: Callable[[], str],
        submit: Submit,
        offload: Offload,
    ) -> None:
        self._limits = limits
        self._now = now
        self._make_token = make_token
        self._submit = submit
        self._offload = offload
        # Ordered: the first of a plain dict is looked for behind all that have been taken out in front of it.
        self._answers: OrderedDict[str, DeferredAnswer] = OrderedDict()  # oldest first
        self._whole: OrderedDict[str, DeferredAnswer] = OrderedDict()  # of these, as they became so
        self._clients: dict[str, ClientAnswers] = {}
        self._over: dict[str, ClientAnswers] = {}  # those that have more than a share, of number or of bytes
        self._size = 0

    def begin(self, operation: Defer) -> Deferred:
        """Run it, and return the token by which its answer is fetched. Raises what is refused at once."""
        self._drop_old()
        while len(self._answers) >= self._limits.count:
            self._drop(self._one_too_many(operation.client))
        owner = self._clients.setdefault(operation.client, ClientAnswers(operation.client))
        answer = DeferredAnswer(self._make_token(), self._now(), owner)
        self._answers[answer.token] = owner.answers[answer.token] = answer
        self._weigh(owner)
        self._admit(answer, operation.infer.payload)
        take = partial(self._take, answer)
        sink = take if operation.write is None else partial(self._write, operation.write, take)
        ticket = self._submit(operation.infer, sink)
        if not answer.is_whole:
            answer.ticket = ticket
        if answer.parts and (error := answer.parts[0].error) is not None:
            self._drop(answer.token)
            raise anew(error)
        return Deferred(answer.token)

    def _admit(self, answer: DeferredAnswer, payload: RequestPayload) -> None:
        """Count what a request holds until it ends. A lease has books of its own. Raises QUEUE_FULL where there is no
        room.
        """
        if payload.lease is None:
            answer.asked = kept_bytes(payload) - PER_PART
            self._count(answer.owner, answer.asked)
            self._drop_whole(answer)
            if self._size > self._limits.size:
                self._drop(answer.token)
                raise ServeError(
                    Code.QUEUE_FULL,
                    spoken(
                        f"Requests whose answers are fetched later, and those answers, have {self._limits.size} bytes, "
                        "the bound (--deferred-bytes). Try again later."
                    ),
                    retry_after=1.0,
                )

    def fetch(self, operation: Fetch) -> Fetched:
        """Return the parts from a number on, as many as there are or are wanted. Those in front of it are forgotten.
        Raises NOT_FOUND for a token that nobody was given, or whose answer is there no more.
        """
        self._drop_old()
        answer = self._answers.get(operation.token)
        if answer is None or not answer.first <= operation.first <= answer.first + len(answer.parts):
            raise ServeError(
                Code.NOT_FOUND,
                "No answer is kept for this token: it was never given, was continued behind this page already, or its "
                "answer was dropped, for its age or for others. Send the request again.",
                info=ErrorInfo.of(reasons.UNKNOWN_TOKEN, token=operation.token),
            )
        self._forget(answer, operation.first)
        count = len(answer.parts) if operation.most <= 0 else operation.most
        parts = tuple(answer.parts[:count])
        is_last = answer.is_whole and len(parts) == len(answer.parts)
        return Fetched(parts, operation.first + len(parts), is_last, answer.is_whole)

    def close(self) -> None:
        """Drop all, and end what still runs for them."""
        for token in tuple(self._answers):
            self._drop(token)

    @property
    def size(self) -> int:
        """Bytes of all that is kept."""
        return self._size

    def __len__(self) -> int:
        return len(self._answers)

    def _write(self, write: Write, take: Callable[[ResponsePart | None], None], part: ResponsePart) -> None:
        """Take what is kept of a part. The last one of a text may be all of it, and long: nobody waits for that."""
        if part.final and isinstance(part.payload, Generated):
            self._offload(lambda: write(part), take)
        else:
            take(write(part))

    def _take(self, answer: DeferredAnswer, part: ResponsePart | None) -> None:
        if part is None or answer.is_whole or answer.token not in self._answers:
            return
        kept = msgspec.structs.replace(part, payload=None if part.payload is None else detached(part.payload))
        size = kept_bytes(kept.payload)
        answer.parts.append(kept)
        if part.final:
            answer.is_whole, answer.ticket = True, None  # the two hold one another
            self._count(answer.owner, -answer.asked)
            answer.asked = 0
        self._book(answer, size)
        self._make_room(answer)
        if answer.is_whole:
            self._whole[answer.token] = answer.owner.whole[answer.token] = answer

    def _one_too_many(self, client: str) -> str:
        """Return which answer makes room for another one of a client: its own oldest if it has its share, else the
        oldest of who has most beyond one, else the oldest of all.
        """
        share, own = share_of(self._limits.count), self._clients.get(client)
        if own is not None and len(own.answers) >= share:
            return next(iter(own.answers))
        most = max(self._over.values(), key=lambda each: len(each.answers), default=None)
        beyond = most is not None and len(most.answers) > share
        return next(iter(most.answers if most is not None and beyond else self._answers))

    def _one_too_large(self, client: ClientAnswers) -> str:
        """Return, in the same order, which of the answers that are whole makes room for the bytes of a client; empty
        for none: one that has more than its share makes room by its own alone.
        """
        share = share_of(self._limits.size)
        if client.size > share:
            return next(iter(client.whole), "")
        most = max(
            (each for each in self._over.values() if each.whole), key=lambda each: each.size, default=None
        )
        beyond = most is not None and most.size > share
        return next(iter(most.whole if most is not None and beyond else self._whole), "")

    def _book(self, answer: DeferredAnswer, size: int) -> None:
        """Count so many bytes more of an answer, or less."""
        answer.size += size
        self._count(answer.owner, size)

    def _count(self, client: ClientAnswers, size: int) -> None:
        client.size += size
        self._size += size
        self._weigh(client)

    def _weigh(self, client: ClientAnswers) -> None:
        if len(client.answers) > share_of(self._limits.count) or client.size > share_of(self._limits.size):
            self._over[client.name] = client
        else:
            self._over.pop(client.name, None)

    def _make_room(self, growing: DeferredAnswer) -> None:
        self._drop_whole(growing)
        if self._size <= self._limits.size:
            return
        if growing.is_whole:
            self._replace(growing)
        elif growing.ticket is not None:
            growing.held = True
            growing.ticket.hold()

    def _drop_whole(self, growing: DeferredAnswer) -> None:
        """Drop those that are whole for as long as all take too much."""
        while self._size > self._limits.size and (token := self._one_too_large(growing.owner)):
            self._drop(token)

    def _replace(self, answer: DeferredAnswer) -> None:
        """Keep a sentence in place of an answer for which there is no room."""
        words = (
            f"The answer has {answer.size} bytes, and of all that are fetched later {self._limits.size} at most are "
            "kept (--deferred-bytes). Send the request without asking for that, or fetch others first."
        )
        part = ResponsePart(error=ServeError(Code.TOO_LARGE, words))
        self._book(answer, kept_bytes(None) - answer.size)
        answer.parts = [part]
        self._drop_whole(answer)  # the sentence, too, takes room

    def _forget(self, answer: DeferredAnswer, first: int) -> None:
        """Free the parts in front of `first`, which the client has; a producer that waited for that goes on."""
        count = first - answer.first
        freed = sum(kept_bytes(part.payload) for part in answer.parts[:count])
        del answer.parts[:count]
        answer.first = first
        self._book(answer, -freed)
        if answer.held and self._size <= self._limits.size and answer.ticket is not None:
            answer.held = False
            answer.ticket.resume()

    def _drop_old(self) -> None:
        oldest = self._now() - self._limits.age
        while self._answers:
            answer = next(iter(self._answers.values()))
            if answer.made_at >= oldest:
                return
            self._drop(answer.token)

    def _drop(self, token: str) -> None:
        answer = self._answers.pop(token)
        owner = answer.owner
        del owner.answers[token]
        self._whole.pop(token, None)
        owner.whole.pop(token, None)
        self._count(owner, -answer.size - answer.asked)
        if not owner.answers:
            self._clients.pop(owner.name, None)
        ticket, answer.ticket = answer.ticket, None
        if ticket is not None:
            ticket.cancel(
                ServeError(Code.CANCELLED, "Its answer is kept no longer, and nobody has fetched it.")
            )
