"""Errors of the v2 protocol over gRPC: those that know more than a code, and how they end a call.

Source: spec sheet `triton`, section 5.3. Texts come with the errors and are only made short enough for a trailer.
"""

from trivium.codecs.grpc_status import number_of, writable
from trivium.types.errors import Code, ServeError
from trivium.types.wire import RpcAnswer


class StreamRefusal(ServeError):
    """A refusal of one request of a stream that could be read far enough to know its `request_id`."""

    def __init__(self, error: ServeError, request_id: str, model: str = "") -> None:
        super().__init__(error.code, error.message, error.retry_after, error.status, error.info)
        self.request_id = request_id
        self.model = model


class TranslatedRpcError(ServeError):
    """An error in another server's words, which is sent as it is, with that status number."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(Code.INTERNAL, message)
        self.number = number


def status_of(error: ServeError) -> int:
    """Its number; what a handler asked for goes first."""
    if isinstance(error, TranslatedRpcError):
        return error.number
    return number_of(error)


def refuse(error: ServeError) -> RpcAnswer:
    """The end of the call."""
    return RpcAnswer(code=status_of(error), details=writable(error.message))
