"""Adds header lines to an answer that another encoder writes."""

from collections.abc import Callable

import msgspec

from trivium.types.interfaces import Encoder
from trivium.types.operations import ResponsePart
from trivium.types.wire import NOTHING_YET, HttpAnswer


class HeadLineEncoder:
    """Writes what another encoder writes, with lines in the header of the first piece that goes out. `lines` makes them
    then, and not before: empty for none.
    """

    def __init__(self, plain: Encoder, lines: Callable[[], bytes]) -> None:
        self._plain = plain
        self._lines = lines
        self._has_begun = False

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """The answer as it is, but for the header of its first piece."""
        answer = self._plain.encode(part)
        if self._has_begun or answer is NOTHING_YET:
            return answer
        self._has_begun = True
        lines = self._lines()
        return msgspec.structs.replace(answer, fields=answer.fields + lines) if lines else answer
