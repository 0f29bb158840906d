"""Finished traces in the JSON of Triton's trace files: which records there are, and what their moments are called.

Source: spec sheet `triton`, section 4.12. Pure: text out; where it is written the exporter decides.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from trivium.types.datatype import DataType
from trivium.types.payload import Tensor
from trivium.types.tracing import Moment, MomentNames, SpanNames, Trace, Traces

_OF_MODEL: Mapping[Moment, str] = {
    Moment.STARTED: "REQUEST_START",
    Moment.QUEUED: "QUEUE_START",
    Moment.COMPUTING: "COMPUTE_START",
    Moment.INPUT_READY: "COMPUTE_INPUT_END",
    Moment.FIRST_TOKEN: "FIRST_TOKEN",
    Moment.LAST_TOKEN: "LAST_TOKEN",
    Moment.OUTPUT_BEGAN: "COMPUTE_OUTPUT_START",
    Moment.COMPUTED: "COMPUTE_END",
    Moment.ANSWERED: "INFER_RESPONSE_COMPLETE",
    Moment.ENDED: "REQUEST_END",
}
_OF_WIRE: Mapping[str, Mapping[Moment, str]] = {
    "HTTP": {
        Moment.RECEIVING: "HTTP_RECV_START",
        Moment.RECEIVED: "HTTP_RECV_END",
        Moment.SENDING: "HTTP_SEND_START",
        Moment.SENT: "HTTP_SEND_END",
    },
    "GRPC": {
        Moment.RECEIVING: "GRPC_WAITREAD_START",
        Moment.RECEIVED: "GRPC_WAITREAD_END",
        Moment.SENDING: "GRPC_SEND_START",
        Moment.SENT: "GRPC_SEND_END",
    },
}
SPAN_NAMES = SpanNames(
    tracer="triton-server",
    request="InferRequest",
    execution="compute",
    moments=MomentNames(_OF_MODEL, _OF_WIRE),
    model="triton.model_name",
    version="triton.model_version",
    number="triton.trace_id",
    parent="triton.trace_parent_id",
    request_id="triton.request_id",
)
"""What spans are called that the original sends to a collector."""

_BLOBS = frozenset({DataType.FP16, DataType.BF16})
"""Datatypes whose elements are left out, as the original does."""


def text(requests: Iterable[Traces]) -> bytes:
    """The records of these, with commas between: what stands between the brackets of a file."""
    records = [record for traces in requests for trace in traces for record in _records(trace)]
    return msgspec.json.encode(records)[1:-1]


def _records(trace: Trace) -> Iterator[dict[str, object]]:
    named: dict[str, object] = {
        "id": trace.id,
        "model_name": trace.model,
        "model_version": int(trace.version) if trace.version.isdecimal() else trace.version,
    }
    if trace.request_id:
        named["request_id"] = trace.request_id
    if trace.parent:
        named["parent_id"] = trace.parent
    is_named = False
    for name, time in SPAN_NAMES.moments.of(trace):
        if name == _OF_MODEL[Moment.STARTED]:
            is_named = True
            yield named
        yield {"id": trace.id, "timestamps": [{"name": name, "ns": time}]}
    if not is_named:
        yield named
    yield from _activities(trace, "TENSOR_QUEUE_INPUT", trace.inputs)
    yield from _activities(trace, "TENSOR_BACKEND_OUTPUT", trace.outputs)


def _activities(trace: Trace, activity: str, tensors: Iterable[Tensor]) -> Iterator[dict[str, object]]:
    for tensor in tensors:
        yield {
            "id": trace.id,
            "activity": activity,
            "tensor": {
                "name": tensor.name,
                "data": _elements(tensor),
                "shape": ",".join(map(str, tensor.shape)),
                "dtype": tensor.datatype.wire,
            },
        }


def _elements(tensor: Tensor) -> str:
    """Return the elements with commas between; texts in quotes, numbers as C++ prints them: six digits, truth as 0
    and 1.
    """
    if tensor.datatype in _BLOBS:
        return ""
    values = tensor.array.reshape(-1).tolist()
    if tensor.datatype is DataType.BYTES:
        return ",".join(f'"{value.decode("utf-8", "replace")}"' for value in values)
    if tensor.datatype in (DataType.FP32, DataType.FP64):
        return ",".join(f"{value:g}" for value in values)
    return ",".join(str(int(value)) for value in values)
