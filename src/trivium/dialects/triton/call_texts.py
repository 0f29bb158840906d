"""What a handler is told of a call of another model (BLS) that went wrong, in the words of the Python backend.

Source: spec sheet `triton`, section 8.6, and what `tests/e2e/side_by_side/calls.py` observes beside the original. What
is refused at the door is an INTERNAL error with the refusal in it; what a model answers is told as it is.
"""

from trivium.dialects.triton.texts import said
from trivium.types.errors import Code, ServeError
from trivium.types.faults import Kind
from trivium.types.operations import Infer

_UNREADY = frozenset({Kind.UNKNOWN_MODEL, Kind.UNKNOWN_VERSION, Kind.NOT_SERVING})


def worded(error: ServeError, call: Infer, is_refused: bool) -> ServeError:
    """The same error, as user code gets it. Of a model that is not there, or not ready, our own reason follows."""
    if is_refused:
        return ServeError(
            Code.INTERNAL, f"Model {call.model} - Error when running inference: {_text(error, call)}"
        )
    told = said(error, False, {"model": call.model, "id": call.id})
    return error if told is None else ServeError(error.code, told.text, error.retry_after, error.status)


def _text(error: ServeError, call: Infer) -> str:
    kind = None if error.fault is None else error.fault.kind
    if kind in _UNREADY:
        return f"Failed for execute the inference request. Model '{call.model}' is not ready. {error.message}"
    if kind is Kind.DECOUPLED:
        return (
            f"Model {call.model} is using the decoupled. The current BLS request call doesn't support models using "
            "the decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' "
            "calls for decoupled models.'"
        )
    told = said(error, False, {"model": call.model, "id": call.id})
    return error.message if told is None else told.text
