"""Asks user code whether it is ready, in a thread of its own: neither batches nor the reader of frames wait for it."""

import threading

from trivium_worker.runtime.adapter import Adapter
from trivium_worker.runtime.traces import print_trace
from trivium_worker.wire import frames
from trivium_worker.wire.writer import Writer


class Checks:
    """The server asks one at a time."""

    def __init__(self, adapter: Adapter, writer: Writer) -> None:
        self._adapter = adapter
        self._writer = writer

    def begin(self) -> None:
        """The answer is sent when user code has given it."""
        try:
            threading.Thread(target=self._check, name="trivium-check", daemon=True).start()
        except RuntimeError as error:
            self._answer(f"No thread could be started to ask the model: {error}")

    def _check(self) -> None:
        try:
            why = self._adapter.check()
        except BaseException as error:
            print_trace(error)
            why = f"{type(error).__name__}: {error}"
        self._answer(why)

    def _answer(self, why: str) -> None:
        self._writer.send(frames.frame(frames.CHECKED, frames.text({"why": why})))
