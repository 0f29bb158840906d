"""Encoders with a fault, over HTTP and over gRPC: a good one, and a function that changes what it says.

Such a function gets the answer, the part that it is the answer to, and the number of that part.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from trivium.types.errors import Code
from trivium.types.operations import ResponsePart
from trivium.types.wire import HttpAnswer, RpcAnswer

A = TypeVar("A", HttpAnswer, RpcAnswer)
Change = Callable[[A, ResponsePart, int], A]
Where = Callable[[ResponsePart, int], bool]


class AlteredEncoder:
    """An encoder whose answers another function changes."""

    def __init__(self, encoder, change: Change) -> None:
        self._encoder = encoder
        self._change = change
        self._count = 0

    def encode(self, part: ResponsePart):
        """What it makes of the good encoder's answer."""
        answer = self._change(self._encoder.encode(part), part, self._count)
        self._count += 1
        return answer


def changed(answer: A, **fields: object) -> A:
    """The answer with other fields."""
    return msgspec.structs.replace(answer, **fields)


def raising_where(is_bad: Where) -> Change:
    """An encoder that raises at some parts."""

    def encode(answer, part, number):
        if is_bad(part, number):
            raise ValueError("cannot be written")
        return answer

    return encode


def changing_where(is_bad: Where, **fields: object) -> Change:
    """An encoder whose answers to some parts have these fields."""
    return lambda answer, part, number: changed(answer, **fields) if is_bad(part, number) else answer


def ending_all() -> Change:
    """An encoder that ends every answer once one has been cancelled."""
    cancelled = []

    def encode(answer, part, number):
        cancelled.extend([part] if is_cancelled(part, number) else [])
        return changed(answer, final=True) if cancelled else answer

    return encode


def always(part: ResponsePart, number: int) -> bool:
    """At every part."""
    return True


def is_error(part: ResponsePart, number: int) -> bool:
    """At errors."""
    return part.error is not None


def is_late_error(part: ResponsePart, number: int) -> bool:
    """At errors behind the first part."""
    return part.error is not None and number > 0


def is_cancelled(part: ResponsePart, number: int) -> bool:
    """At the end of what was cancelled."""
    return part.error is not None and part.error.code is Code.CANCELLED
