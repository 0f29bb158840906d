"""Preflights of browsers (the Fetch standard, 3.2.2): a question about a request that a page wants to send.

The listener answers them, on every path and before any key is asked for, since a browser sends none with them. Who is
not allowed hears what is, and its browser lets the request be. Pure.
"""

from trivium.types.access import AccessScope
from trivium.types.errors import ServeError
from trivium.types.operations import Live, Operation, ResponsePart
from trivium.types.wire import Body, Head, HttpAnswer, Target

_ASKS = (b"origin", b"access-control-request-method")
_PRIVATE = b"access-control-request-private-network"
_ALLOW_PRIVATE = b"Access-Control-Allow-Private-Network: true\r\n"
_AGE = b"Access-Control-Max-Age: 600\r\n"


def is_preflight(head: Head) -> bool:
    """Tell a preflight from any other OPTIONS, which a protocol may answer."""
    return head.method == "OPTIONS" and all(name in head.headers for name in _ASKS)


class Preflights:
    """Implements `WireProtocol` and `Encoder` for preflights alone. What is allowed the front end adds to every answer;
    pages of the `origin` may ask a server in a private network, too.
    """

    def __init__(self, origin: str) -> None:
        self._origin = origin

    def head(self, head: Head) -> Target:
        """Open to everybody."""
        return Target("preflight", head.headers[_ASKS[0]].decode("latin-1"), scope=AccessScope.OPEN)

    def is_costly(self, head: Head, data: bytes | memoryview) -> bool:
        """Never."""
        return False

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, "PreflightEncoder"]:
        """Nothing is done."""
        is_allowed = self._origin in ("*", target.model)
        return Live(), PreflightEncoder(is_allowed and _PRIVATE in head.headers)

    def refuse(self, error: ServeError) -> HttpAnswer:
        """One that has a body that is too large, say."""
        return HttpAnswer(error.status or 400, b"", (), 0, closes=True)


class PreflightEncoder:
    """Writes the answer to one."""

    __slots__ = ("_is_private",)

    def __init__(self, is_private: bool) -> None:
        self._is_private = is_private

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """Allow it, whatever became of the operation: the server need not be ready."""
        return HttpAnswer(204, _AGE + (_ALLOW_PRIVATE if self._is_private else b""), (), 0)
