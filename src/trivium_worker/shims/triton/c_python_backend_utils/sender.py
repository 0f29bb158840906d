"""The sender of the responses to one request: the rules of sheet "triton", sections 8.3 and 8.5.

A request that is left without its last response, because its sender is gone, fails: nobody waits for ever.
"""

import queue
import threading
from typing import Any

from c_python_backend_utils.backend import BACKEND
from c_python_backend_utils.errors import TritonModelException
from c_python_backend_utils.response import InferenceResponse
from trivium_worker.wire.values import END, Failure, Item

FINAL = 1
"""TRITONSERVER_RESPONSE_COMPLETE_FINAL"""

_UNSENT = "Unable to send response. "
LEFT = (
    "the request was left without its last response: execute returned None for it, and its response sender was "
    "dropped. Return a list of InferenceResponse objects, or send one with "
    "flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL."
)


class InferenceResponseSender:
    """Sends from any thread. `send` waits while too much is unsent."""

    __slots__ = ("_count", "_has_ended", "_is_closed", "_item", "_lock")

    def __init__(self, item: Item | None, is_answered: bool = False) -> None:
        self._item = item
        self._lock = threading.Lock()
        self._count = 1 if is_answered else 0
        self._is_closed = is_answered
        self._has_ended = is_answered or item is None
        if item is not None and not is_answered:
            BACKEND.open[item.number] = item
            LEFT_OVER.watch()

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """A response, the mark that it was the last one, or both. TritonModelException where that may not be sent."""
        if flags not in (0, FINAL):
            raise TritonModelException(_UNSENT + "Unsupported flag provided.")
        if response is None and flags == 0:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        if response is not None and not isinstance(response, InferenceResponse):
            raise TypeError(f"send: response is a {type(response).__name__}; expected an InferenceResponse")
        item = self._item
        if item is None:
            raise TritonModelException(
                _UNSENT + "The request was made in this model: it has nobody to answer to."
            )
        outcome: Any = END if response is None else response.outcome(item.outputs or BACKEND.declared)
        is_last = flags == FINAL or isinstance(outcome, Failure) or not BACKEND.is_decoupled
        if self.admit(response is not None, flags == FINAL, is_last):
            item.send(outcome, is_last, None if response is None else response._parameters)

    def is_cancelled(self) -> bool:
        """Has the client left, or asked for an end?"""
        return self._item is not None and self._item.is_cancelled

    def admit(self, has_response: bool, is_final: bool, is_last: bool) -> bool:
        """Count a response in. `is_final`: user code said so; `is_last`: the answer ends with it, as with an error.
        False where the answer has ended before. TritonModelException where it may not be sent.
        """
        with self._lock:
            if not BACKEND.is_decoupled:
                if has_response and self._count:
                    raise TritonModelException(
                        _UNSENT + "Non-decoupled model cannot send more than one response."
                    )
                if not has_response and not self._count:
                    raise TritonModelException(
                        _UNSENT + "Non-decoupled model cannot send complete final before sending a response."
                    )
            if self._is_closed:
                raise TritonModelException(_UNSENT + "Response sender has been closed.")
            self._is_closed = is_final
            self._count += 1
            was_open = not self._has_ended
            if is_last:
                self._end()
            return was_open

    def close(self) -> bool:
        """End it from outside: nothing more may be sent. False where its request was answered already."""
        with self._lock:
            self._is_closed = True
            was_open = not self._has_ended
            self._end()
            return was_open

    def _end(self) -> None:
        self._has_ended = True
        if self._item is not None:
            BACKEND.open.pop(self._item.number, None)

    def __del__(self) -> None:
        if not self._has_ended and self._item is not None:
            LEFT_OVER.add(self._item)


class _LeftOver:
    """Ends the items whose senders are gone, in a thread of its own: a destructor may run wherever memory is
    collected, where nothing may be locked.
    """

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._watches = False

    def watch(self) -> None:
        """Start, unless it has."""
        if not self._watches:
            with self._lock:
                if not self._watches:
                    threading.Thread(target=self._run, name="trivium-left-over", daemon=True).start()
                    self._watches = True

    def add(self, item: Item) -> None:
        """Safe from a destructor."""
        self._items.put(item)

    def stop(self) -> None:
        """Nobody is answered any more."""
        if self._watches:
            self._items.put(None)

    def _run(self) -> None:
        while True:
            item = self._items.get()
            if item is None:
                return
            BACKEND.open.pop(item.number, None)
            item.send(failed(LEFT), True)
            del item


def failed(message: str, code: str = "model failed") -> Failure:
    """A failure of requests in the words of sheet "triton", section 8.2."""
    return Failure(
        f"Failed to process the request(s) for model '{BACKEND.instance}', message: {message}", code
    )


LEFT_OVER = _LeftOver()
