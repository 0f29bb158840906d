"""DJL Serving's own gRPC service: a ping, and predictions whose answers are streams of messages.

Source: spec sheet `djl`, section 5.5, and the original's inference.proto. Knows no socket, no model and no handler.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.message import DecodeError

from trivium.codecs.conversion import is_slow_to_write, negotiated
from trivium.codecs.generation import is_slow_to_tell
from trivium.codecs.grpc_status import ending
from trivium.codecs.protobuf_fields import judge_fields
from trivium.codecs.protobuf_schema import classes_of
from trivium.codecs.protobuf_services import (
    EMPTY,
    EMPTY_FILE,
    Rpc,
    depending,
    known_files,
    messages_file,
    with_service,
)
from trivium.servers.djl.wire.answer import ping_of
from trivium.servers.djl.wire.config import DjlConfig
from trivium.servers.djl.wire.generated_answer import LmiWriter, begin, piece_of
from trivium.servers.djl.wire.meter import DjlMeter
from trivium.servers.djl.wire.options import meter_of
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.generation import Generate
from trivium.types.interfaces import RpcEncoder, RpcProtocol
from trivium.types.listeners import Role
from trivium.types.operations import Infer, List, Listing, Operation, ResponsePart
from trivium.types.payload import Raw, RawPart, Tensors
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import RpcAnswer, RpcCall, RpcKind, costly_rpc

_PACKAGE = "ai.djl.serving.grpc.proto"
SERVICES: Mapping[Role, Sequence[str]] = {Role.INFERENCE: (f"{_PACKAGE}.Inference",)}
"""The services whose RPCs this protocol understands."""

PING, PREDICT = f"/{_PACKAGE}.Inference/Ping", f"/{_PACKAGE}.Inference/Predict"
SCOPES: Mapping[str, AccessScope] = {PING: AccessScope.OPEN, PREDICT: AccessScope.INFER}
"""All that this protocol answers, with the right that each needs."""

_INPUT = 5
"""The field of a request that carries data."""

_MESSAGES = {
    "InferenceRequest": """
            1 string model_name
            2 string model_version
            4 map<string,bytes> headers
            5 bytes input""",
    "InferenceResponse": """
            1 int32 code
            2 map<string,bytes> headers
            3 bytes output""",
    "PingResponse": """
            1 int32 code
            2 map<string,string> model_status""",
}
_CLASSES = classes_of(_PACKAGE, _MESSAGES)


def descriptors() -> Sequence[bytes]:
    """See `types.described.SupportsReflection`."""
    file = depending(messages_file("djl/inference.proto", _PACKAGE, _MESSAGES), EMPTY_FILE)
    rpcs = {
        "Ping": Rpc(EMPTY, "PingResponse"),
        "Predict": Rpc("InferenceRequest", "InferenceResponse", answers_many=True),
    }
    return (*known_files(), with_service(file, "Inference", rpcs).SerializeToString())


class DjlGrpc:
    """Implements `types.interfaces.RpcProtocol`. `make_id` gives each request its id; `multi_status`: the code of a
    ping is 207 while a model is being loaded. It is 503 once the `meter` of the server says that errors came too fast.
    `epoch` says the time in seconds of the Unix epoch.
    """

    def __init__(
        self,
        make_id: Callable[[], str],
        multi_status: bool = False,
        meter: DjlMeter | None = None,
        epoch: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._make_id = make_id
        self._multi_status = multi_status
        self._meter = meter or DjlMeter()
        self._epoch = epoch

    def kind(self, method: str) -> RpcKind:
        """UNSUPPORTED for an RPC that there is not."""
        if method == PING:
            return RpcKind.UNARY
        if method == PREDICT:
            return RpcKind.SERVER_STREAM
        raise ServeError(
            Code.UNSUPPORTED,
            f"There is no RPC {method[:200]!r} here; those of DJL Serving are {PING} and {PREDICT}.",
        )

    def scope(self, method: str) -> AccessScope:
        """Return the right that `SCOPES` says; that of a manager for one that it does not have."""
        return SCOPES.get(method, AccessScope.MANAGE)

    def admit(self, call: RpcCall) -> None:
        """Let every stream begin."""

    def is_costly(self, call: RpcCall, message: bytes) -> bool:
        """No message is: `decode` refuses what would take long to read."""
        return False

    def decode(self, call: RpcCall, message: bytes) -> tuple[Operation, RpcEncoder]:
        """The operation of one request, and the encoder for its answer."""
        if call.method == PING:
            return List(), DjlPingRpcEncoder(self._multi_status, self._meter)
        judge_fields(message, (_INPUT,), "The InferenceRequest")
        request: Any = _CLASSES["InferenceRequest"]()
        try:
            request.ParseFromString(message)
        except DecodeError as error:
            raise ServeError(
                Code.INVALID, f"The message is no InferenceRequest ({error}). Send one of {_PACKAGE}."
            ) from error
        properties = {name: value.decode("utf-8", "replace") for name, value in request.headers.items()}
        kind = next((value for name, value in properties.items() if name.lower() == "content-type"), "")
        accept = next((value for name, value in properties.items() if name.lower() == "accept"), "")
        request_id = self._make_id()
        encoder = DjlPredictEncoder(request_id, accept, kind, self._epoch)
        infer = Infer(
            request.model_name,
            Raw((RawPart(request.input, kind),), properties),
            request.model_version,
            request_id,
            deadline=call.timeout,
            as_generate=encoder.read,
        )
        return infer, encoder

    def refuse(self, call: RpcCall, error: ServeError) -> RpcAnswer:
        """The status of an error, which ends the call."""
        return ending(error)


class DjlPingRpcEncoder:
    """Writes how every model is."""

    __slots__ = ("_meter", "_multi_status")

    def __init__(self, multi_status: bool, meter: DjlMeter) -> None:
        self._multi_status = multi_status
        self._meter = meter

    def encode(self, part: ResponsePart) -> RpcAnswer:
        """One message."""
        if part.error is not None or not isinstance(part.answer, Listing):
            return ending(
                part.error
                or ServeError(Code.INTERNAL, "The server did not say how its models are. Report it.")
            )
        code, health = ping_of(part.answer, self._multi_status, self._meter)
        answer: Any = _CLASSES["PingResponse"](code=code, model_status=health)
        return RpcAnswer(answer.SerializeToString())


class DjlPredictEncoder:
    """Writes one answer, a message for each of its parts; headers are in the first. `accept` and `content_type` are the
    request's.
    """

    __slots__ = ("_accept", "_code", "_content_type", "_epoch", "_has_begun", "_request_id", "_writer")

    def __init__(self, request_id: str, accept: str, content_type: str, epoch: Callable[[], float]) -> None:
        self._request_id = request_id
        self._accept = accept
        self._content_type = content_type
        self._epoch = epoch
        self._has_begun = False
        self._code = 200
        self._writer: LmiWriter | None = None

    def read(self, raw: Raw, parameters: Mapping[str, str]) -> Generate:
        """Read a body for a model that generates; its answer is then written in the form asked for. INVALID, naming the
        field.
        """
        generate, self._writer = begin(raw, parameters, self._request_id, self._epoch())
        return generate

    def encode(self, part: ResponsePart) -> RpcAnswer:
        """The message of a part; none for an empty last one behind others."""
        if is_slow_to_write(part.payload) or is_slow_to_tell(part.payload):
            return costly_rpc(lambda: self._written(part))
        return self._written(part)

    def _written(self, part: ResponsePart) -> RpcAnswer:
        if part.error is not None:
            return ending(part.error)
        try:
            return self._message(part)
        except Exception as error:
            return ending(unwritable(error))

    def _message(self, part: ResponsePart) -> RpcAnswer:
        payload, headers, output = part.payload, {}, b""
        if self._writer is not None:
            return self._generated(part, self._writer)
        if isinstance(payload, Raw):
            output = bytes(payload.parts[0].data) if payload.parts else b""
            headers = {name: value.encode("utf-8", "replace") for name, value in payload.properties.items()}
            self._code = payload.status or self._code
        elif isinstance(payload, Tensors):
            kind, buffers = negotiated(payload, self._accept, self._content_type, "tensor/ndlist")
            output, headers = b"".join(buffers), {"content-type": kind.encode()}
        elif payload is not None:
            raise ServeError(
                Code.UNSUPPORTED, f"The model {part.model!r} generates text, which this RPC does not answer."
            )
        if payload is None and self._has_begun:
            return RpcAnswer(None, part.final)
        return self._said(output, headers, part.final)

    def _generated(self, part: ResponsePart, writer: LmiWriter) -> RpcAnswer:
        output = piece_of(part, writer)
        if not output and (self._has_begun or not part.final):
            return RpcAnswer(None, part.final)
        return self._said(output, {"content-type": writer.kind.encode()}, part.final)

    def _said(self, output: bytes, headers: Mapping[str, bytes], final: bool) -> RpcAnswer:
        answer: Any = _CLASSES["InferenceResponse"](code=self._code, output=output)
        for name, value in headers.items() if not self._has_begun else ():
            answer.headers[name] = value
        self._has_begun = True
        return RpcAnswer(answer.SerializeToString(), final)


def make(context: ProtocolContext) -> RpcProtocol:
    """The protocol for one listener."""
    return DjlGrpc(
        context.make_id, context.own.read(DjlConfig).multi_status, meter_of(context), context.epoch
    )
