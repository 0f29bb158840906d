"""Errors of calls of other models (BLS) and of loads, as the Python backend words them for a handler.

Source: spec sheet `triton`, section 8.6, and what `tests/e2e/side_by_side/calls.py` observes beside the original. What
is refused at the door is an INTERNAL error with the refusal in it; what a model answers is told as it is.
"""

from trivium.servers.triton.words.texts import error_text
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, Load, Operation
from trivium.wires.v2 import request_reasons

_UNREADY = frozenset({reasons.UNKNOWN_MODEL, reasons.UNKNOWN_VERSION, reasons.NOT_SERVING})


def translate_error(error: ServeError, asked: Operation, is_refused: bool) -> ServeError:
    """Return the error as user code gets it. Where the original's text does not say why, our own reason follows."""
    if isinstance(asked, Load):
        return ServeError(error.code, _of_load(error, asked.model))
    if not isinstance(asked, Infer):
        return error
    if is_refused:
        told = f"Model {asked.model} - Error when running inference: {_of_door(error, asked)}"
        return ServeError(Code.INTERNAL, told)
    text = _told(error, asked)
    return error if text == error.message else ServeError(error.code, text, error.retry_after, error.status)


def _of_load(error: ServeError, model: str) -> str:
    reason = error.reason
    if error.code is Code.NOT_FOUND or reason == request_reasons.UNREADABLE:
        return f"failed to load '{model}', failed to poll from model repository. {error.message}"
    return error_text(error, {"model": model}).text or error.message


def _of_door(error: ServeError, call: Infer) -> str:
    reason = error.reason
    if reason in _UNREADY:
        return f"Failed for execute the inference request. Model '{call.model}' is not ready. {error.message}"
    if reason == reasons.SEVERAL_PARTS:
        return (
            f"Model {call.model} is using the decoupled. The current BLS request call doesn't support models using "
            "the decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' "
            "calls for decoupled models.'"
        )
    return _told(error, call)


def _told(error: ServeError, call: Infer) -> str:
    """Return the text of an ensemble's step as it is, be it that a queue is full or that it never ends."""
    if isinstance(error.__cause__, ServeError):
        return error.message
    return error_text(error, {"model": call.model, "id": call.id}).text or error.message
