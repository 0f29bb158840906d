"""The formatters of generated text that LMI knows by name: content type, whether an answer streams, and its shape.

Source: spec sheet `djl`, section 11.5. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Shape(Enum):
    """Says whose form an answer has."""

    LMI = "LMI's own"
    CHAT = "a chat's"
    VENDOR = "another vendor's: body and metering"
    TEXT = "the text alone"


@dataclass(frozen=True, slots=True)
class Formatter:
    """Writes an answer whole, or in pieces if it `streams`."""

    name: str
    kind: str
    streams: bool
    shape: Shape

    @property
    def is_event(self) -> bool:
        """Is each piece an event of its own?"""
        return self.kind == "text/event-stream"


_JSON, _LINES, _EVENTS = "application/json", "application/jsonlines", "text/event-stream"

FORMATTERS: Mapping[str, Formatter] = {
    row.name: row
    for row in (
        Formatter("json", _JSON, False, Shape.LMI),
        Formatter("jsonlines", _LINES, True, Shape.LMI),
        Formatter("sse", _EVENTS, True, Shape.LMI),
        Formatter("json_chat", _JSON, False, Shape.CHAT),
        Formatter("jsonlines_chat", _LINES, True, Shape.CHAT),
        Formatter("sse_chat", _EVENTS, True, Shape.CHAT),
        Formatter("3p", _JSON, False, Shape.VENDOR),
        Formatter("3p_stream", _LINES, True, Shape.VENDOR),
        Formatter("none", "text/plain", True, Shape.TEXT),
    )
}
"""Values of `option.output_formatter`, and of the field of a request by that name."""

OF_CHATS: Mapping[str, str] = {"json": "json_chat", "jsonlines": "jsonlines_chat", "sse": "sse_chat"}
"""What stands in a chat for a formatter of LMI's own shape."""
