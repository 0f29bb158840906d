"""`MicroBatching`: a handler's three steps run side by side on small pieces of a batch.

Source: `micro_batching.py` of TorchServe 0.12, by what its page promises. What a step raises is raised to who waits for
the batch; in the original its thread dies, and nobody is answered.
"""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

STEPS = ("preprocess", "inference", "postprocess")


class MicroBatching:
    """Stands in for a handler's `handle`: `self.handle = MicroBatching(self, micro_batch_size=4)`. `parallelism` says
    how many pieces are in each step at once, by its name; one, where it says nothing.
    """

    def __init__(
        self, parent_handler: Any, micro_batch_size: int = 1, parallelism: "Mapping[str, int] | None" = None
    ) -> None:
        self.handler = parent_handler
        self.micro_batch_size = micro_batch_size
        self._local = threading.local()
        self._parallelism: dict[str, int] = dict.fromkeys(STEPS, 1)
        self._pool: ThreadPoolExecutor | None = None
        self.parallelism = dict(parallelism or {})

    @property
    def parallelism(self) -> "dict[str, int]":
        """Return how many pieces are in each step at once."""
        return dict(self._parallelism)

    @parallelism.setter
    def parallelism(self, parallelism: "Mapping[str, Any]") -> None:
        """Change it, from the next batch on. ValueError for a step that there is not, and for a number below 1."""
        for step, count in parallelism.items():
            if step not in STEPS or isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise ValueError(
                    f"MicroBatching: parallelism has {step!r}: {count!r}; expected a number of threads, at least 1, "
                    f"for one of {', '.join(STEPS)}"
                )
        self._parallelism.update(parallelism)
        self.shutdown()
        self._slots = {step: threading.Semaphore(count) for step, count in self._parallelism.items()}
        self._pool = ThreadPoolExecutor(sum(self._parallelism.values()), "micro-batch")

    def shutdown(self) -> None:
        """End all threads, once what they have in hand is done."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def handle(self, data: "list[Any]") -> "list[Any]":
        """Return the answers of a batch, in its order. Raises what the first piece that failed has raised, and
        RuntimeError after `shutdown`.
        """
        if self._pool is None:
            raise RuntimeError("MicroBatching: it was shut down")
        size = self.micro_batch_size
        starts = range(0, len(data), size)
        pieces = [
            self._pool.submit(self._through, index, data[start : start + size])
            for index, start in enumerate(starts)
        ]
        return [answer for piece in pieces for answer in piece.result()]

    def _through(self, index: int, value: Any) -> Any:
        """Take one piece of a batch through the steps. Where a step has room for one alone, others are in others."""
        self._local.index = index
        for step, slots in self._slots.items():
            with slots:
                value = getattr(self.handler, step)(value)
        return value

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
