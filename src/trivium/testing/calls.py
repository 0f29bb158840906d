"""Answers what a handler asks of its server in a test: other models are functions, metrics and log lines are noted."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trivium.testing.exchange import payload_for, payload_of
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Raw, RawPart, Tensors
from trivium.types.running import TranslateError
from trivium_worker.runtime.adapter import Answer, Call, Host
from trivium_worker.wire.values import Failure, Item

CallableModels = Mapping[str, Callable[[Any], Any]]
"""Model -> what it answers: a function of arrays by name, or of a body, that returns either, or yields several."""

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class TestHost(Host):
    """The server as a handler in a test sees it. `models` answer its calls, whose errors it hears in `words`."""

    __test__ = False

    def __init__(self, model: str, models: CallableModels, words: TranslateError) -> None:
        self._log = logging.getLogger(f"trivium.worker.{model}")
        self._models = models
        self._words = words
        self.woken = threading.Event()
        self.metrics: list[dict[str, Any]] = []
        """Each step of a custom metric: see `Host.measure`."""

    def call(self, parent: Item | None, call: Call) -> Iterator[Answer]:
        """See `Host.call`."""
        payload = payload_of(call.payload)
        assert isinstance(payload, Tensors | Raw), "a handler calls with tensors or a body"
        asked = Infer(call.model, payload, call.version, call.request_id)
        if call.model not in self._models:
            there = ", ".join(self._models) or "none"
            words = f"No model '{call.model}'. Name it in handler(..., models={{...}}), which has: {there}."
            info = ErrorInfo.of(reasons.UNKNOWN_MODEL, model=call.model)
            raise self._failure(ServeError(Code.NOT_FOUND, words, info=info), asked)
        return self._answers(self._models[call.model], payload, asked)

    def _answers(self, function: Callable[[Any], Any], payload: Any, asked: Infer) -> Iterator[Answer]:
        try:
            made = function(_shown(payload))
            pieces = [made] if isinstance(made, (Mapping, bytes, str)) else list(made)
        except ServeError as error:
            raise self._failure(error, asked, is_refused=False) from error
        for at, piece in enumerate(pieces):
            yield Answer(payload_for(_payload(piece)), at + 1 == len(pieces), {})
        if not pieces:
            yield Answer(None, True, {})

    def _failure(self, error: ServeError, asked: Infer, is_refused: bool = True) -> Failure:
        said = self._words(error, asked, is_refused)
        return Failure(said.message, said.code.value, said.status)

    def ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        """See `Host.ask`: those models are ready that the test answers for. Loading has no effect."""
        return {"ready": fields.get("model", "") in self._models} if verb == "ready" else {}

    def log(self, level: str, message: str) -> None:
        """See `Host.log`."""
        self._log.log(_LEVELS.get(level, logging.INFO), "%s", message)

    def measure(self, metric: dict[str, Any]) -> None:
        """See `Host.measure`."""
        self.metrics.append(metric)

    def wake(self) -> None:
        """See `Host.wake`."""
        self.woken.set()


def _shown(payload: Any) -> Any:
    if isinstance(payload, Tensors):
        return {one.name: one.array for one in payload.items}
    assert isinstance(payload, Raw), "a handler calls with tensors or a body"
    return bytes(payload.parts[0].data) if payload.parts else b""


def _payload(made: Any) -> Any:
    if isinstance(made, Mapping):
        return Tensors.of(made)
    if isinstance(made, str):
        made = made.encode()
    if isinstance(made, bytes):
        return Raw((RawPart(made),))
    raise TypeError(f"a model of a test answers arrays by name, bytes or text, and not {type(made).__name__}")
