"""Takes in the body of one request in the pieces that an ASGI server hands over, whatever their sizes.

Decides whether as much came as the head says: nobody has counted before, and what stands in between may have changed
it. A large body is copied to where the core wants it.
"""

from trivium.frontends.http.request import SPARE, Request
from trivium.frontends.refusals import malformed


class BodyFill:
    """Fills the body of a request."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._left = request.head.content_length  # None: nobody knows
        self._window: memoryview | None = None
        self._is_begun = False

    def add(self, piece: bytes) -> None:
        """Take in a piece. ServeError for more than the head says, or than there is room for."""
        if self._left is not None:
            self._left -= len(piece)
            if self._left < 0:
                raise malformed("the request has more bytes than its Content-Length says.")
        if not piece:
            return
        if not self._is_begun:
            self._is_begun = True
            self._window = self._request.borrow()
        if self._window is None:
            self._request.add(piece)
        else:
            self._fill(memoryview(piece))

    def end(self) -> None:
        """All has come. ServeError where that is less than the head says."""
        if self._left:
            raise malformed("the request was cut short: its end did not come.")

    def _fill(self, piece: memoryview) -> None:
        intake, window = self._request.intake, self._window
        assert intake is not None
        while piece and window is not None:
            size = min(len(piece), len(window) - SPARE)
            window[:size] = piece[:size]
            piece, left = piece[size:], len(window) - size
            if left > SPARE:
                window = window[size:]
                if not intake.is_booked:
                    intake.book()
            else:
                window = intake.next_window(left)
        self._window = window
