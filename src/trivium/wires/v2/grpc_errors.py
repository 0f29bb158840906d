"""Errors of the v2 protocol over gRPC: how they end a call.

Source: spec sheet `triton`, section 5.3. Texts come with the errors and are only made short enough for a trailer.
"""

from trivium.codecs.error_table import Refusal
from trivium.codecs.grpc_status import number_of, writable
from trivium.types.errors import ServeError
from trivium.types.wire import RpcAnswer


def status_of(error: ServeError) -> int:
    """Its number: that of another server's words, or of a handler, goes before that of its code."""
    return error.wording.status if isinstance(error, Refusal) else number_of(error)


def refuse(error: ServeError) -> RpcAnswer:
    """The end of the call."""
    return RpcAnswer(code=status_of(error), details=writable(error.message))
