"""Logs why a request failed where its answer does not say so: where another server is stood in for, the client hears
that server's text, and the operator our own sentence.

Decides which failures get a line, and how many lines there may be. Knows no protocol.
"""

import json
import logging
import time
from collections.abc import Callable

from trivium.codecs.error_texts import LONGEST, wire_text
from trivium.codecs.header_text import without_controls
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Readiness, ResponsePart
from trivium.types.recording import RECORD_FACTS
from trivium.types.wire import HttpAnswer, RpcAnswer, Target

_log = logging.getLogger(__name__)

LINES = 60
"""At most so many in `SECONDS`, whatever clients send. A sentence about a model comes once in that time."""
SECONDS = 60.0

_SHOWN = 200
"""Characters of a sentence by which it is found in an answer: the middle of a long one is left out there."""

_OURS = frozenset(
    {
        Code.NOT_READY,
        Code.LOAD_FAILED,
        Code.MODEL_FAILED,
        Code.WORKER_DIED,
        Code.OUT_OF_MEMORY,
        Code.UNKNOWN,
        Code.INTERNAL,
        Code.EXPIRED,
        Code.QUEUE_FULL,
        Code.TOO_LARGE,
    }
)
"""Failures of the server, its models and its limits, whoever asked."""
_MANAGERS = frozenset({Code.INVALID, Code.NOT_FOUND, Code.CONFLICT, Code.UNSUPPORTED})
"""What whoever manages models may have done wrong; of others it is their own matter."""


class CauseLog:
    """Writes the lines of one front end."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until = 0.0
        self._said: set[tuple[str, str]] = set()
        self._left_out = 0

    def refused(self, error: ServeError, target: Target, answer: HttpAnswer) -> None:
        """A request is refused."""
        cause = cause_of(error)
        if _is_worth_a_line(cause, bool(target.verb) and target.scope is AccessScope.MANAGE):
            self._note(cause, target.model, answer.status, _told(answer))

    def answered(self, part: ResponsePart, target: Target, answer: HttpAnswer) -> None:
        """A request is answered with an error."""
        if part.error is not None:
            self.refused(part.error, target, answer)
        elif isinstance(part.answer, Readiness) and not part.answer.is_passing and part.answer.reason:
            self._note(ServeError(Code.NOT_READY, part.answer.reason), target.model, answer.status, b"")

    def ended(self, error: ServeError, scope: AccessScope, answer: RpcAnswer) -> None:
        """A call, or one request of a stream, has failed."""
        cause = cause_of(error)
        if _is_worth_a_line(cause, scope is AccessScope.MANAGE):
            self._note(cause, "", answer.code, answer.details.encode() + (answer.message or b""))

    def _note(self, cause: ServeError, model: str, status: int, told: bytes) -> None:
        now = self._clock()
        if now >= self._until:
            left, self._left_out = self._left_out, 0
            self._until = now + SECONDS
            self._said.clear()
            if left:
                _log.warning(
                    "%d more causes of failed requests are not in this log: they came too fast.", left
                )
        model = model or str(cause.metadata.get("model", ""))
        key = (model[:_SHOWN], cause.message[:LONGEST])
        if key in self._said or says(told, cause.message):
            return
        if len(self._said) >= LINES:
            self._left_out += 1
            return
        self._said.add(key)
        about = f" to model '{without_controls(wire_text(model[:_SHOWN]))}'" if model else ""
        sentence = without_controls(wire_text(cause.message))
        words = "A request%s is answered with %d, without its cause: %s"
        _log.warning(words, about, status, sentence, extra={RECORD_FACTS: {"model": model}})


def cause_of(error: ServeError) -> ServeError:
    """Return the error that says why in our own words: one of another server's words comes from it."""
    seen = 0
    while isinstance(error.__cause__, ServeError) and error.is_reworded and seen < 10:
        error, seen = error.__cause__, seen + 1
    return error


def says(told: bytes, sentence: str) -> bool:
    """Tell whether an answer holds this sentence, however it is written there: in JSON, in a message or as it is."""
    if not sentence:
        return True
    text = wire_text(sentence)[:_SHOWN]
    if text.encode() in told:
        return True
    forms = (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], " ".join(text.split()))
    return any(form.encode() in told for form in forms)


def _told(answer: HttpAnswer) -> bytes:
    return (answer.reason or b"") + b" " + b"".join(answer.buffers)


def _is_worth_a_line(cause: ServeError, manages: bool) -> bool:
    return not cause.is_logged and (cause.code in _OURS or (manages and cause.code in _MANAGERS))
