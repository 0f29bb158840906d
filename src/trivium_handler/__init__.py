"""Marks for typed handlers: batches, concurrency, tensors; and their context, and how they refuse a request.

Standard library alone, Python 3.10: the same file is imported in a worker, under whichever interpreter, in the user's
own tests and in an editor. Nothing here does anything by itself; the worker reads the marks.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

__all__ = ["Context", "Refusal", "batched", "concurrent", "tensor", "traceparent"]

_F = TypeVar("_F", bound=Callable[..., Any])

BATCHED = "__trivium_batched__"
CONCURRENT = "__trivium_concurrent__"
"""Attributes of a function that has been marked."""

TRACEPARENT: "ContextVar[str]" = ContextVar("trivium_traceparent", default="")
"""Has the context of the request that is in work; the worker sets it."""


class BatchMark(NamedTuple):
    """The arguments of `batched`: rows in one call at most, and seconds that the first of them may wait for others."""

    max_rows: int
    max_delay: float


class TensorMark(NamedTuple):
    """The arguments of `tensor`: a datatype of the v2 protocol, and dims, -1 for any size."""

    datatype: str
    dims: tuple[int, ...]


def tensor(datatype: str, dims: "list[int] | tuple[int, ...]") -> TensorMark:
    """Say of an array what it holds: `Annotated[np.ndarray, tensor("FP32", [-1, 3])]`.

    `datatype` is one of BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP16, FP32, FP64, BF16 (its
    bits, in uint16) and BYTES; `dims` has a size for each dimension, -1 for any. Under `batched` the first dimension is
    the batch, and has to be -1. Raises TypeError and ValueError for what is none of that.
    """
    given: tuple[object, object] = (datatype, dims)  # whatever the hint says
    if not isinstance(given[0], str):
        raise TypeError(f"a tensor's datatype is a text like 'FP32', and not {datatype!r}")
    if not isinstance(given[1], (list, tuple)) or any(type(dim) is not int for dim in dims):
        raise TypeError(f"a tensor's dims are a list of whole numbers like [-1, 3], and not {dims!r}")
    if any(dim == 0 or dim < -1 for dim in dims):
        raise ValueError(f"a tensor's dims are -1, for any size, or above 0, and not {dims!r}")
    return TensorMark(datatype, tuple(dims))


def batched(max_rows: int, max_delay: float = 0.0) -> Callable[[_F], _F]:
    """Have `predict` called with the items of several requests: a list, or an array whose first dimension is the batch.

    It returns as many results, in their order. `max_rows`: items in one call at most. `max_delay`: seconds that the
    first of them may wait for more; 0 takes what is there. Raises TypeError and ValueError for other numbers.
    """
    if type(max_rows) is not int or isinstance(max_delay, bool) or not isinstance(max_delay, (int, float)):
        raise TypeError("write @batched(max_rows=8, max_delay=0.005): rows as a whole number, and seconds")
    if max_rows < 1 or not 0 <= max_delay <= 60:
        raise ValueError("@batched takes 1 row or more, and a delay of 0 to 60 seconds")

    def mark(function: _F) -> _F:
        setattr(function, BATCHED, BatchMark(max_rows, float(max_delay)))
        return function

    return mark


def concurrent(most: int) -> Callable[[_F], _F]:
    """Say how many requests an `async def predict` has in work at once; without it, 64. ValueError below 1."""
    if type(most) is not int or not 1 <= most <= 4096:
        raise ValueError(f"@concurrent takes a whole number from 1 to 4096, and not {most!r}")

    def mark(function: _F) -> _F:
        setattr(function, CONCURRENT, most)
        return function

    return mark


def traceparent() -> str:
    """Return the W3C Trace Context of the request in work, of its own span on the server, to hand on in a header of
    that name; empty where it is not traced. Of a batch, that of the first request which is.
    """
    return TRACEPARENT.get()


@dataclass(frozen=True)
class Context:
    """A model's place, which `setup` gets: its name and version, where its file lies, and on which device it computes.

    `device` is "cpu", or "cuda:0" and so on. `parameters` are those that the server was given for the model, as text.
    """

    model: str = "model"
    version: str = "1"
    folder: str = "."
    device: str = "cpu"
    instance: str = "model_0"
    parameters: "dict[str, str]" = field(default_factory=dict)


class Refusal(Exception):
    """Raise it to refuse a request: its client gets the message, with a status from 400 to 599 over HTTP.

    Any other exception is a fault of the handler, which is logged with its traceback and answered as one.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        if type(status) is not int or not 400 <= status <= 599:
            raise ValueError(f"a refusal's status is from 400 to 599, and not {status!r}")
        self.message = message
        self.status = status
