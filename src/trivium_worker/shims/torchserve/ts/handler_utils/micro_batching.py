"""`MicroBatching`: a handler's three steps run side by side on small pieces of a batch.

Source: `micro_batching.py` of TorchServe 0.12, by what its page promises. What a step raises is raised to who waits for
the batch; in the original its thread dies, and nobody is answered.
"""

import queue
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, wait
from typing import Any

STEPS = ("preprocess", "inference", "postprocess")


class _Piece:
    """A piece of a batch on its way: its place in the batch, what it is by now, and what becomes of it."""

    def __init__(self, index: int, value: Any) -> None:
        self.index = index
        self.value = value
        self.answer: Future[list[Any]] = Future()


class MicroBatching:
    """Stands in for a handler's `handle`: `self.handle = MicroBatching(self, micro_batch_size=4)`. `parallelism` has
    the number of threads of each step, by its name; one, where it says nothing.
    """

    def __init__(
        self, parent_handler: Any, micro_batch_size: int = 1, parallelism: "Mapping[str, int] | None" = None
    ) -> None:
        self.handler = parent_handler
        self.micro_batch_size = micro_batch_size
        self._local = threading.local()
        self._queues: dict[str, queue.SimpleQueue[_Piece | None]] = {
            step: queue.SimpleQueue() for step in STEPS
        }
        self._threads: dict[str, int] = dict.fromkeys(STEPS, 0)
        self._parallelism: dict[str, int] = dict.fromkeys(STEPS, 1)
        self.parallelism = dict(parallelism or {})

    @property
    def parallelism(self) -> "dict[str, int]":
        """Return the number of threads of each step."""
        return dict(self._parallelism)

    @parallelism.setter
    def parallelism(self, parallelism: "Mapping[str, Any]") -> None:
        """Change it. ValueError for a step that there is not, and for a number below 1."""
        for step, count in parallelism.items():
            if step not in STEPS or isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise ValueError(
                    f"MicroBatching: parallelism has {step!r}: {count!r}; expected a number of threads, at least 1, "
                    f"for one of {', '.join(STEPS)}"
                )
        self._parallelism.update(parallelism)
        for step, count in self._parallelism.items():
            for _ in range(count - self._threads[step]):
                threading.Thread(target=self._work, args=(step,), name=f"micro-{step}", daemon=True).start()
            for _ in range(self._threads[step] - count):
                self._queues[step].put(None)
            self._threads[step] = count

    def shutdown(self) -> None:
        """End all threads; what is in work is finished."""
        for step in STEPS:
            for _ in range(self._threads[step]):
                self._queues[step].put(None)
            self._threads[step] = 0

    def __del__(self) -> None:
        if hasattr(self, "_threads"):
            self.shutdown()

    def _work(self, step: str) -> None:
        """Take pieces through one step, until there is none in its turn."""
        following = STEPS[STEPS.index(step) + 1 :][:1]
        while (piece := self._queues[step].get()) is not None:
            self._local.index = piece.index
            try:
                piece.value = getattr(self.handler, step)(piece.value)
            except BaseException as error:
                piece.answer.set_exception(error)
                continue
            if following:
                self._queues[following[0]].put(piece)
            else:
                piece.answer.set_result(piece.value)

    def handle(self, data: "list[Any]") -> "list[Any]":
        """Return the answers of a batch, in its order. Raises what the first piece that failed has raised."""
        size = self.micro_batch_size
        pieces = [
            _Piece(index, data[start : start + size]) for index, start in enumerate(range(0, len(data), size))
        ]
        for piece in pieces:
            self._queues[STEPS[0]].put(piece)
        wait([piece.answer for piece in pieces])
        return [answer for piece in pieces for answer in piece.answer.result()]

    def get_micro_batch_idx(self) -> "int | None":
        """Return the place in its batch of the piece that this thread has in hand."""
        return getattr(self._local, "index", None)

    def __call__(self, data: Any, context: Any) -> Any:
        """Answer a batch as the handler's own `handle` would."""
        began = time.perf_counter()
        handler = self.handler
        handler.context = context
        if handler._is_describe():
            output = [handler.describe_handle()]
        elif handler._is_explain():
            output = handler.explain_handle(handler.preprocess(data), data)
        else:
            output = self.handle(data)
        spent = (time.perf_counter() - began) * 1000
        context.metrics.add_time("HandlerTime", round(spent, 2), None, "ms")
        return output
