"""What a worker asks of the server, as its frames say it: calls, questions, lines of a log.

Frames in, values out; ProtocolError for those that cannot be read. Does nothing with them.
"""

from math import isfinite
from struct import error as StructError
from typing import Annotated, TypeVar

import msgspec

from trivium.core.workers.wire import UNREADABLE, ProtocolError, read_payload
from trivium.types.payload import Payload, Scalar
from trivium_child import frames

Text = TypeVar("Text")
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class UpcallOptions(msgspec.Struct, frozen=True):
    """What a call says of itself beside its payload; `timeout` in seconds, `parent` 0 without one, `trace` the
    item of whose trace it is a part, or 0; `one`: a model that may answer in several parts is not to be called.
    """

    model: str
    version: str = ""
    parent: Number = 0
    outputs: tuple[str, ...] = ()
    parameters: dict[str, Scalar] = {}
    timeout: float | None = None
    sequence: tuple[Annotated[int, msgspec.Meta(ge=0)] | str, bool, bool] | None = None
    trace: Number = 0
    one: bool = False


class Upcall(msgspec.Struct, frozen=True):
    """A call, read."""

    name: str
    told: UpcallOptions
    payload: Payload


class ServerRequest(msgspec.Struct, frozen=True):
    """What is asked besides calls; files come in base64, by paths within the model's folder."""

    call: Number
    verb: str
    model: str = ""
    version: str = ""
    config: str = ""
    files: dict[str, bytes] = {}
    with_dependents: bool = False


class LogLine(msgspec.Struct, frozen=True):
    """Of a log."""

    level: str
    message: str


def read_call(body: memoryview) -> tuple[int, Upcall]:
    """Number and call. Raises ProtocolError."""
    try:
        number, _, id_size, text_size, _, _, size = frames.ITEM.unpack_from(body, 0)
        at = frames.ITEM.size
        name = str(body[at : at + id_size], "utf-8")
        at += id_size
        text = frames.read(body[at : at + text_size])
        at += text_size
        payload = read_payload(text, body[at : at + size])
    except (StructError, *UNREADABLE) as error:
        raise ProtocolError(f"a call that cannot be read: {error!r}") from error
    told = convert(text, UpcallOptions)
    if told.timeout is not None and not isfinite(told.timeout):
        raise ProtocolError(f"a call with a timeout of {told.timeout} s")
    return number, Upcall(name, told, payload)


def number_of(body: memoryview) -> int:
    """Of a call. Raises ProtocolError."""
    if len(body) != frames.NUMBER.size:
        raise ProtocolError(f"a number in {len(body)} bytes")
    number: int = frames.NUMBER.unpack(body)[0]
    return number


def read(body: memoryview) -> dict[str, object]:
    """The text that is the whole frame. Raises ProtocolError."""
    try:
        return frames.read(body)
    except UNREADABLE as error:
        raise ProtocolError(f"a text that cannot be read: {error!r}") from error


def convert(told: dict[str, object], kind: type[Text]) -> Text:
    """A text as what it should be. Raises ProtocolError."""
    try:
        return msgspec.convert(told, kind)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"a {kind.__name__} that is none: {error}") from error
