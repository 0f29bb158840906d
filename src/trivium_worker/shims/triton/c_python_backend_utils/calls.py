"""Calls to other models (BLS): a request up to the server, its responses back. Sheet "triton", section 8.6.

What goes wrong in the other model is an error in the response, never an exception.
"""

import contextlib
from collections.abc import Generator, Iterator
from typing import Any, cast

from c_python_backend_utils.backend import BACKEND
from c_python_backend_utils.errors import ErrorCode, TritonError
from c_python_backend_utils.response import InferenceResponse
from c_python_backend_utils.tensor import ReceivedTensor
from trivium_worker.runtime.adapter import Answer, Call
from trivium_worker.wire.values import Failure, Item, Raw, anew, frameless
from trivium_worker.wire.values import Tensor as WireTensor


class ResponseIterator:
    """The responses of a decoupled model, as they come. Another loop over it gives the same ones again."""

    __slots__ = ("_answers", "_at", "_is_cancelled", "_is_over", "_seen")

    def __init__(self, answers: "Iterator[Answer]") -> None:
        self._answers = answers
        self._seen: list[InferenceResponse] = []
        self._at = 0
        self._is_over = False
        self._is_cancelled = False

    def __iter__(self) -> "ResponseIterator":
        if self._is_over and self._at >= len(self._seen):
            self._at = 0
        return self

    def __next__(self) -> InferenceResponse:
        if self._at >= len(self._seen):
            if self._is_over:
                raise StopIteration
            self._seen.append(self._take())
        self._at += 1
        return self._seen[self._at - 1]

    def cancel(self) -> None:
        """The other model shall end: the last response is then an error that says so. While another thread waits
        for a response it takes effect with that one.
        """
        self._is_cancelled = True
        if not self._is_over:
            _close(self._answers)

    def _take(self) -> InferenceResponse:
        try:
            answer = None if self._is_cancelled else next(self._answers, None)
        except Failure as failure:
            self._is_over = True
            return _failed(frameless(failure))
        if self._is_cancelled or answer is None:
            self._is_over = True
            _close(self._answers)
            return InferenceResponse(error=TritonError("The request was cancelled.", ErrorCode.CANCELLED))
        self._is_over = answer.final
        return _response(answer)


def run(call: Call, parents: list[Item], decoupled: bool) -> Any:
    """The response, or an iterator over them. `parents` are the items on whose behalf the call may be made: where
    the first one ends meanwhile, the call is made for the next one, so that its neighbours do not suffer.
    """
    failure = Failure("The requests that this call was made for were cancelled.", "cancelled")
    call = call._replace(one=not decoupled)
    for parent in cast("list[Item | None]", parents) or [None]:
        try:
            answers = BACKEND.host.call(parent, call)
            return ResponseIterator(answers) if decoupled else _single(call, answers)
        except Failure as error:
            failure = frameless(error)
            if parent is None or not BACKEND.has_left(parent):
                break
    return ResponseIterator(_raising(failure)) if decoupled else _failed(failure)


def _single(call: Call, answers: "Iterator[Answer]") -> InferenceResponse:
    try:
        first = next(answers, None)
        if first is None or first.payload is None:
            return _wrong(f"Model '{call.model}' ended its answer without a response.")
        second = None if first.final else next(answers, None)
        if second is not None and second.payload is not None:
            return _wrong(
                f"Model '{call.model}' is decoupled and sent more than one response. Call it with "
                "decoupled=True, and loop over the responses."
            )
        return _response(first)
    finally:
        _close(answers)


def _response(answer: Answer) -> InferenceResponse:
    payload = answer.payload or []
    if isinstance(payload, Raw):  # as for other clients: a body is one BYTES tensor
        body = bytes(payload.parts[0].data) if payload.parts else b""
        payload = [WireTensor.of_elements("output", [body])]
    return InferenceResponse([ReceivedTensor(tensor) for tensor in payload], None, answer.parameters)


def _raising(failure: Failure) -> "Iterator[Answer]":
    raise anew(failure)
    yield  # a generator: raises when it is asked


def _wrong(message: str) -> InferenceResponse:
    return InferenceResponse(error=TritonError(message))


def _failed(failure: Failure) -> InferenceResponse:
    return InferenceResponse(error=TritonError.of_failure(failure))


def _close(answers: "Iterator[Answer]") -> None:
    with contextlib.suppress(ValueError):  # another thread waits in it
        cast("Generator[Answer, None, None]", answers).close()
