"""Whether one worker can serve: once, when user code has been loaded, and whenever somebody asks, if it has a say.

Sans-IO; on the loop only. At most one question is on its way to a worker: whoever asks meanwhile gets its answer, too.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from trivium.core.workers.wire import ProtocolError
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Check
from trivium_child import frames

KINDS = frames.READY, frames.REFUSED, frames.CHECKED

Told = Callable[[str], None]


class ReadinessProbe:
    """`opened` is done when the worker can take batches, or fails with LOAD_FAILED, or WORKER_DIED."""

    def __init__(self, write: Callable[[list[bytes | memoryview]], None]) -> None:
        self._write = write
        self._waiting: list[Told] = []
        self._is_asked = False
        self.check: Check | None = None
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(self, kind: int, body: memoryview) -> None:
        """A frame of the worker. ProtocolError, or what `UNREADABLE` lists, for what is none of these."""
        told = frames.read(body)
        if kind == frames.CHECKED:
            if not self._is_asked:
                raise ProtocolError("an answer to what nobody has asked")
            self._is_asked = False
            self._tell(str(told["why"]))
        elif kind == frames.READY:
            self.check = self._ask if told["checks"] is True else None
            if not self.opened.done():
                self.opened.set_result(None)
        else:
            self._fail(Code.LOAD_FAILED, str(told["message"]))

    def close(self, code: Code, why: str) -> None:
        """The worker is gone, or was never there."""
        self._fail(code, why)
        self.check = None
        self._tell(why)

    def _ask(self, told: Told) -> Callable[[], None]:
        if not self._is_asked:
            self._is_asked = True
            self._write([frames.frame(frames.CHECK)])
        self._waiting.append(told)
        return partial(self._leave, told)

    def _leave(self, told: Told) -> None:
        if told in self._waiting:
            self._waiting.remove(told)

    def _tell(self, why: str) -> None:
        waiting, self._waiting = self._waiting, []
        for told in waiting:
            told(why)

    def _fail(self, code: Code, why: str) -> None:
        if not self.opened.done():
            self.opened.set_exception(ServeError(code, why))
