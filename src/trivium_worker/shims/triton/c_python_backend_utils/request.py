"""A request: one that came from a client, looked at only when user code asks, or one for another model.

Sheet "triton", sections 8.3 and 8.6.
"""

import functools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from c_python_backend_utils import calls
from c_python_backend_utils.backend import BACKEND
from c_python_backend_utils.errors import TritonModelException
from c_python_backend_utils.memory import InferenceTrace, PreferredMemory
from c_python_backend_utils.names import as_text, listed, text, unfit, whole
from c_python_backend_utils.response import checked_parameters
from c_python_backend_utils.sender import InferenceResponseSender, failed
from c_python_backend_utils.tensor import ReceivedTensor, Tensor
from trivium_worker.runtime.adapter import Call
from trivium_worker.wire.frames import AGAIN
from trivium_worker.wire.values import Failure, Item, Scalar, SequencePlace

if TYPE_CHECKING:
    import asyncio

RELEASE_ALL, RELEASE_RESCHEDULE = 1, 2
SEQUENCE_START, SEQUENCE_END = 1, 2
UNABLE = (
    "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured to handle "
    "such a flag. Write sequence_batching { iterative_sequence: true } in its config.pbtxt."
)


class InferenceRequest:
    """A request for another model. TypeError where `inputs`, `requested_output_names` or `model_name` is missing, or
    an argument of a wrong type or beyond its bounds; TritonModelException where one is empty that must not be.
    """

    __slots__ = (
        "_correlation_id",
        "_flags",
        "_inputs",
        "_model_name",
        "_model_version",
        "_outputs",
        "_parameters",
        "_request_id",
        "_timeout",
        "_trace",
    )

    def __init__(  # noqa: PLR0913 - the fields of a request
        self,
        request_id: str = "",
        correlation_id: int | str = 0,
        inputs: Sequence[Tensor] | None = None,
        requested_output_names: Sequence[str] | None = None,
        model_name: str | None = None,
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        preferred_memory: PreferredMemory | None = None,
        trace: InferenceTrace | None = None,
        parameters: dict[str, Scalar] | None = None,
    ) -> None:
        self._request_id = text("InferenceRequest: request_id", request_id)
        self._model_name = text("InferenceRequest: model_name", model_name)
        about = f"for request with id '{self._request_id}' and model name '{self._model_name}'"
        self._inputs = listed("InferenceRequest: inputs", inputs, Tensor, "Tensor")
        names = listed(
            "InferenceRequest: requested_output_names", requested_output_names, (str, bytes), "str"
        )
        self._outputs = list(dict.fromkeys(map(as_text, names)))
        if "" in self._outputs:
            raise TritonModelException(f"Requested output name {about} should not be empty.")
        self._correlation_id = _correlation_id(correlation_id)
        self._model_version = whole("InferenceRequest: model_version", model_version, -(2**63), 2**63 - 1)
        self._flags = _flags(flags)
        self._timeout = whole("InferenceRequest: timeout", timeout, 0, 2**64 - 1)
        for what, value, kind in (
            ("preferred_memory", preferred_memory, PreferredMemory),
            ("trace", trace, InferenceTrace),
        ):
            if value is not None and not isinstance(value, kind):
                raise unfit(f"InferenceRequest: {what}", value, kind.__name__)
        self._trace = trace
        self._parameters = checked_parameters(parameters) if parameters else {}

    def inputs(self) -> list[Any]:
        """The input tensors, in order."""
        return self._inputs

    def request_id(self) -> str:
        """Return the client's id of the request, or nothing."""
        return self._request_id

    def correlation_id(self) -> int | str:
        """Return the id of its sequence; 0 without one."""
        return self._correlation_id

    def requested_output_names(self) -> set[str]:
        """The outputs to answer: of a client's request all of the model's, if it names none."""
        return set(self._outputs)

    def flags(self) -> int:
        """Bits: the sequence starts (1), ends (2)."""
        return self._flags

    def set_flags(self, flags: int) -> None:
        """See `flags`."""
        self._flags = _flags(flags)

    def timeout(self) -> int:
        """Microseconds; 0 without a limit."""
        return self._timeout

    def parameters(self) -> str:
        """The parameters as JSON, "{}" if there are none."""
        return json.dumps(self._parameters)

    def trace(self) -> InferenceTrace:
        """The trace that it shall be a part of."""
        return self._trace or InferenceTrace()

    def exec(self, decoupled: bool = False) -> Any:
        """Run it and wait: the response, or with `decoupled` an iterator over them. What goes wrong in the other
        model is in the response. TritonModelException outside of `execute`.
        """
        check_serving()
        return calls.run(self._call(), BACKEND.parents(), decoupled)

    def async_exec(self, decoupled: bool = False) -> "asyncio.Future[Any]":
        """`exec` for coroutines: to be awaited."""
        check_serving()
        run = functools.partial(calls.run, self._call(), BACKEND.parents(), decoupled)
        import asyncio  # which few models need, and takes a while to load

        return asyncio.get_running_loop().run_in_executor(None, run)

    def get_response_sender(self) -> InferenceResponseSender:
        """One that has nobody to send to: the request was made in this model."""
        return InferenceResponseSender(None)

    def is_cancelled(self) -> bool:
        """Has the client left, or asked for an end?"""
        return False

    def set_release_flags(self, flags: int) -> None:
        """ALL changes nothing; RESCHEDULE gives a client's request back, to get it again. It has effect once `execute`
        returns.
        """
        if flags not in (RELEASE_ALL, RELEASE_RESCHEDULE):
            raise TritonModelException(
                f"Release flags {flags!r} are unknown; expected 1 (ALL) or 2 (RESCHEDULE)."
            )

    def _call(self) -> Call:
        version = "" if self._model_version == -1 else str(self._model_version)
        return Call(
            model=self._model_name,
            version=version,
            payload=[tensor.on_wire() for tensor in self._inputs],
            outputs=self._outputs,
            parameters=self._parameters or None,
            request_id=self._request_id,
            timeout=self._timeout / 1e6 if self._timeout else None,
            sequence=self._sequence(),
            trace=self._trace.number if self._trace is not None else 0,
        )

    def _sequence(self) -> SequencePlace | None:
        """Return the place in a sequence; without an id the flags say nothing."""
        if not self._correlation_id:
            return None
        return (
            self._correlation_id,
            bool(self._flags & SEQUENCE_START),
            bool(self._flags & SEQUENCE_END),
        )


class ReceivedRequest(InferenceRequest):
    """A client's request. Nothing is unpacked before it is asked for."""

    __slots__ = ("_is_answered", "_item", "_sender", "_wants_again")

    def __init__(self, item: Item) -> None:
        self._item = item
        self._inputs: Any = None
        self._sender: InferenceResponseSender | None = None
        self._is_answered = False
        self._wants_again = False

    def inputs(self) -> list[Any]:
        """See `InferenceRequest`."""
        tensors = self._inputs
        if tensors is None:
            payload = self._item.payload
            assert isinstance(payload, list), "the server gave this model a raw body, and it takes tensors"
            tensors = self._inputs = [ReceivedTensor(tensor) for tensor in payload]
        return tensors  # type: ignore[no-any-return]

    def request_id(self) -> str:
        """See `InferenceRequest`."""
        return self._item.request_id

    def correlation_id(self) -> int | str:
        """See `InferenceRequest`."""
        sequence = self._item.sequence
        return 0 if sequence is None else sequence[0]

    def requested_output_names(self) -> set[str]:
        """See `InferenceRequest`."""
        return set(self._item.outputs or BACKEND.declared)

    def flags(self) -> int:
        """See `InferenceRequest`."""
        if hasattr(self, "_flags"):
            return self._flags
        sequence = self._item.sequence
        if sequence is None:
            return 0
        return (SEQUENCE_START if sequence[1] else 0) | (SEQUENCE_END if sequence[2] else 0)

    def timeout(self) -> int:
        """See `InferenceRequest`."""
        return int((self._item.timeout or 0) * 1e6)

    def parameters(self) -> str:
        """See `InferenceRequest`."""
        parameters = self._item.parameters
        return json.dumps(parameters, separators=(",", ":"), ensure_ascii=False) if parameters else "{}"

    def trace(self) -> InferenceTrace:
        """Its own, to be handed to requests that shall be a part of it."""
        return InferenceTrace.of_item(self._item)

    def get_response_sender(self) -> InferenceResponseSender:
        """The sender of its responses, always the same one."""
        if self._sender is None:
            self._sender = InferenceResponseSender(self._item, self._is_answered)
        return self._sender

    def is_cancelled(self) -> bool:
        """See `InferenceRequest`."""
        return self._item.is_cancelled

    def set_release_flags(self, flags: int) -> None:
        """See `InferenceRequest`."""
        super().set_release_flags(flags)
        self._wants_again = flags == RELEASE_RESCHEDULE

    def release(self) -> Failure:
        """Give it back: it ends here, and comes again."""
        if self._sender is not None:
            self._sender.close()
        return Failure(UNABLE, AGAIN)

    def fail(self, message: str, code: str) -> Failure | None:
        """Return the outcome of the request where its batch fails: None if it was answered before."""
        if self._sender is not None and not self._sender.close():
            return None
        self._is_answered = True
        return failed(message, code)

    def _call(self) -> Call:
        raise TritonModelException(
            "A client's request cannot be executed: make an InferenceRequest with model_name and its inputs."
        )


ReceivedRequest.__name__ = ReceivedRequest.__qualname__ = "InferenceRequest"  # which it is for user code


def _correlation_id(given: Any) -> int | str:
    given = as_text(given)
    if isinstance(given, str):
        return given
    if not hasattr(given, "__index__"):
        raise TritonModelException("Correlation ID must be integer or string")
    return whole("InferenceRequest: correlation_id", given, 0, 2**64 - 1)


def _flags(given: Any) -> int:
    return whole("InferenceRequest: flags", given, 0, 2**32 - 1)


def check_serving() -> None:
    """TritonModelException while the model is being loaded or unloaded."""
    if not BACKEND.is_serving:
        raise TritonModelException("BLS is only supported during the 'execute' function.")
