"""Decides where the texts of a request become tokens: in the worker's thread, or in a process that can be ended.

What is small and known to be cheap stays in the thread. A chat template is a program of the model's folder; so are, for
what they cost, patterns of a tokenizer; and a long text takes seconds of which nobody may want the end.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

from trivium.codecs.text_bounds import LONG, byte_size
from trivium.types.generation import Generate

MOST_LONG = 4
"""Requests with long texts that may wait at once, where there are slots: each keeps one from the others meanwhile."""


class TextRoad(Enum):
    """Says where a request's texts are read. Long texts have a process of their own, so that no chat waits for them."""

    THREAD = "thread"
    BRIEF = "brief"
    LONG = "long"


def road(generate: Generate, is_cheap: bool) -> TextRoad:
    """Return where a request is read; `is_cheap`: is the tokenizer known to need little for a short text?"""
    size = text_size(generate)
    if size > LONG:
        return TextRoad.LONG
    is_program = generate.messages is not None or (generate.prompts is not None and not is_cheap)
    return TextRoad.BRIEF if is_program else TextRoad.THREAD


def most_long(slots: int) -> int:
    """Return how many requests with long texts may be there at once: at most half of the slots, and one."""
    return max(1, min(MOST_LONG, slots // 2))


def text_size(generate: Generate) -> int:
    """Return how many bytes of text are to be read, about. Ids are text where they are to be echoed."""
    if generate.prompts is not None:
        return sum(map(byte_size, generate.prompts))
    if generate.messages is not None:
        return _size((generate.messages, generate.tools, generate.template_arguments))
    return sum(map(len, generate.ids or ())) * 4 if generate.echoes else 0


def _size(value: object) -> int:
    if isinstance(value, str):
        return byte_size(value)
    if isinstance(value, Mapping):
        return sum(_size(key) + _size(inner) for key, inner in value.items())
    if isinstance(value, Sequence):
        return sum(map(_size, value))
    return 1
