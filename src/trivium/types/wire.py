"""How an operation looks on a wire, without the wire: values between a front end and a sans-IO protocol."""

import msgspec

from trivium.types.buffers import Lease


class Head(msgspec.Struct, frozen=True, gc=False):
    """A request line and headers. `path` is percent-decoded by segment where it matters, not here; header
    names are lower-case bytes. `content_length` is None for a chunked body.
    """

    method: str
    path: str
    query: str
    headers: dict[bytes, bytes]
    content_length: int | None = None


class Target(msgspec.Struct, frozen=True, gc=False):
    """What a head is about. `verb` is the protocol's own word; `model` is empty for the server itself.

    `takes_body` False lets the front end refuse or discard a body unread.
    """

    verb: str
    model: str = ""
    version: str = ""
    takes_body: bool = False


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
