"""Requests and answers of the gRPC service, made and read as a client does: by NVIDIA's own messages."""

from collections.abc import Sequence
from typing import Any

from tritonclient.grpc import service_pb2

from trivium.servers.triton.words.v2 import V2
from trivium.types.operations import Infer
from trivium.types.wire import RpcCall
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.grpc import INFER, STREAM_INFER, KServeGrpc

PROTOCOL = KServeGrpc("somebody", "1.2", KServeOptions(may_change=True, original=V2))
UNARY = RpcCall(INFER)
STREAM = RpcCall(STREAM_INFER)


def request(*inputs: Any, raw: Sequence[bytes] = (), **fields: Any) -> Any:
    """A ModelInferRequest."""
    return service_pb2.ModelInferRequest(model_name="m", inputs=inputs, raw_input_contents=raw, **fields)


def tensor(name: str, datatype: str, shape: Sequence[int], **contents: Any) -> Any:
    """One input; with contents where any are given."""
    entry = service_pb2.ModelInferRequest.InferInputTensor(name=name, datatype=datatype, shape=shape)
    if contents:
        entry.contents.CopyFrom(service_pb2.InferTensorContents(**contents))
    return entry


def decoded(message: Any, call: RpcCall = UNARY) -> Infer:
    """The operation."""
    operation, _ = PROTOCOL.decode(call, message.SerializeToString())
    assert isinstance(operation, Infer)
    return operation
