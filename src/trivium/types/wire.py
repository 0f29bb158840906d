"""Operations as they look on a wire, without the wire: values between a front end and a sans-IO protocol."""

from collections.abc import Callable, Mapping
from enum import Enum

import msgspec

from trivium.types.access import AccessScope
from trivium.types.buffers import Lease


class Head(msgspec.Struct, frozen=True, gc=False):
    """A request line and headers. `path` is percent-decoded by segment where it matters, not here; header
    names are lower-case bytes, and `names` those that came, as they were spelt; of a field that came more than once
    `headers` has all values, joined, and `last` the last one. `content_length` is None for a chunked body.
    """

    method: str
    path: str
    query: str
    headers: dict[bytes, bytes]
    content_length: int | None = None
    names: tuple[bytes, ...] = ()
    last: dict[bytes, bytes] = {}

    def spelt(self) -> dict[str, str]:
        """Return the headers under the names that the client gave them; of a field that came more than once the last
        spelling and the last value.
        """
        headers, names = self.headers, self.names
        if not self.last and len(names) == len(headers):  # what follows, for the most frequent case
            spelt_headers = {
                name.decode("latin-1"): headers[lower].decode("latin-1")
                for name in names
                if (lower := name.lower()) in headers
            }
            if len(spelt_headers) == len(headers):
                return spelt_headers
        spelt = {name.lower(): name for name in names}
        return {
            spelt.get(name, name).decode("latin-1"): self.last.get(name, value).decode("latin-1")
            for name, value in self.headers.items()
        }


class Target(msgspec.Struct, frozen=True, gc=False):
    """Says what a head is about. `verb` is the protocol's own word; `model` is empty for the server itself.

    `takes_body` False lets the front end refuse or discard a body unread. `lead` bytes of the body come before its
    data, which a large one's buffer should hold aligned. `scope` is the right that it needs: that of a manager, where
    a route does not say. `is_served` False: the model need not be there yet.
    """

    verb: str
    model: str = ""
    version: str = ""
    takes_body: bool = False
    lead: int = 0
    scope: AccessScope = AccessScope.MANAGE
    is_served: bool = True


class Body(msgspec.Struct, frozen=True, gc=False):
    """A whole request body; `lease` owns `data` where it was received into a lent buffer."""

    data: bytes | memoryview
    lease: Lease | None = None


class HttpAnswer(msgspec.Struct, frozen=True, gc=False):
    """An answer, or one part of a streamed one. `fields` are whole header lines, each with its CRLF, without
    Content-Length, Transfer-Encoding and Connection, which belong to the front end. The buffers are not
    copied: whoever owns them leaves them alone until they have been written. `reason` is the phrase of the
    status line (None: the standard one); `closes` ends the connection behind the answer.
    """

    status: int
    fields: bytes
    buffers: tuple[bytes | memoryview, ...]
    size: int
    final: bool = True
    reason: bytes | None = None
    closes: bool = False


class RpcKind(Enum):
    """Says how a method of a gRPC service is called."""

    UNARY = "unary"  # one request message, one response message
    SERVER_STREAM = "server stream"  # one request message, any number of response messages
    STREAM = "stream"  # messages both ways, several requests in work at once


class RpcCall(msgspec.Struct, frozen=True, gc=False):
    """A gRPC call without its messages. `method` is the whole path, "/package.Service/Method"; names in
    `metadata` are lower-case, values that are not text are left out. `timeout`: seconds that the client still
    waits, None for ever.
    """

    method: str
    metadata: Mapping[str, str] = {}
    timeout: float | None = None


class RpcAnswer(msgspec.Struct, frozen=True, gc=False):
    """One step of the answer to one request message. `code` is a gRPC status; other than 0 it ends the call, a
    stream too, with `details`. Without a `message` nothing is written.
    """

    message: bytes | None = None
    final: bool = True
    code: int = 0
    details: str = ""


class CostlyAnswer(HttpAnswer, frozen=True, gc=False, kw_only=True):
    """An answer that takes long to write: whoever is given it calls `write` where nobody else waits. Status 0."""

    write: Callable[[], HttpAnswer]


def costly(write: Callable[[], HttpAnswer]) -> CostlyAnswer:
    """Return the answer that `write` makes, from any thread; it never raises."""
    return CostlyAnswer(0, b"", (), 0, final=False, write=write)


class CostlyRpcAnswer(RpcAnswer, frozen=True, gc=False, kw_only=True):
    """A step that takes long to write: whoever is given it calls `write` where nobody else waits, and gives its encoder
    no further part until that has returned. It says nothing itself.
    """

    write: Callable[[], RpcAnswer]


def costly_rpc(write: Callable[[], RpcAnswer]) -> CostlyRpcAnswer:
    """Return the step that `write` makes, from any thread; it never raises."""
    return CostlyRpcAnswer(final=False, write=write)


NOTHING_YET = HttpAnswer(0, b"", (), 0, final=False)
"""What an encoder returns for a part that it keeps, to write it with a later one."""
