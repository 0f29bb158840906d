"""What a worker asks of the server, as its frames say it: calls, questions, lines of a log.

Frames in, values out; Garbage for those that cannot be read. Does nothing with them.
"""

from math import isfinite
from struct import error as StructError
from typing import Annotated, TypeVar

import msgspec

from trivium.core.workers.wire import UNREADABLE, Garbage, read_payload
from trivium.types.payload import Payload, Scalar
from trivium_child import frames

Text = TypeVar("Text")
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Told(msgspec.Struct, frozen=True):
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


class Called(msgspec.Struct, frozen=True):
    """A call, read."""

    name: str
    told: Told
    payload: Payload


class Question(msgspec.Struct, frozen=True):
    """What is asked besides calls; files come in base64, by paths within the model's folder."""

    call: Number
    verb: str
    model: str = ""
    version: str = ""
    config: str = ""
    files: dict[str, bytes] = {}
    with_dependents: bool = False


class Line(msgspec.Struct, frozen=True):
    """Of a log."""

    level: str
    message: str


def read_call(body: memoryview) -> tuple[int, Called]:
    """Number and call. Raises Garbage."""
    try:
        number, _, id_size, text_size, _, _, size = frames.ITEM.unpack_from(body, 0)
        at = frames.ITEM.size
        name = str(body[at : at + id_size], "utf-8")
        at += id_size
        text = frames.read(body[at : at + text_size])
        at += text_size
        payload = read_payload(text, body[at : at + size])
    except (StructError, *UNREADABLE) as error:
        raise Garbage(f"a call that cannot be read: {error!r}") from error
    told = convert(text, Told)
    if told.timeout is not None and not isfinite(told.timeout):
        raise Garbage(f"a call with a timeout of {told.timeout} s")
    return number, Called(name, told, payload)


def number_of(body: memoryview) -> int:
    """Of a call. Raises Garbage."""
    if len(body) != frames.NUMBER.size:
        raise Garbage(f"a number in {len(body)} bytes")
    number: int = frames.NUMBER.unpack(body)[0]
    return number


def read(body: memoryview) -> dict[str, object]:
    """The text that is the whole frame. Raises Garbage."""
    try:
        return frames.read(body)
    except UNREADABLE as error:
        raise Garbage(f"a text that cannot be read: {error!r}") from error


def convert(told: dict[str, object], kind: type[Text]) -> Text:
    """A text as what it should be. Raises Garbage."""
    try:
        return msgspec.convert(told, kind)
    except msgspec.ValidationError as error:
        raise Garbage(f"a {kind.__name__} that is none: {error}") from error
