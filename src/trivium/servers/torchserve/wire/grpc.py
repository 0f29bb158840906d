"""TorchServe's gRPC services, for inference and management: the wire's face to a front end.

Source: spec sheet `torchserve`, section 7, and what 0.12.0 answers. Knows no socket, no model and no handler.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, cast

from trivium.codecs.json_documents import indented
from trivium.servers.torchserve.wire.answer import health_of
from trivium.servers.torchserve.wire.errors import note_refusal
from trivium.servers.torchserve.wire.grpc_errors import refuse_inference, refuse_management
from trivium.servers.torchserve.wire.grpc_management import MANAGEMENT_RPCS, decode_rpc
from trivium.servers.torchserve.wire.grpc_messages import INFERENCE, MANAGEMENT, new, read, service_files
from trivium.servers.torchserve.wire.grpc_predictions import PartRpcEncoder, PredictionBytes
from trivium.servers.torchserve.wire.grpc_sequences import (
    SequenceRpcEncoder,
    refuse_in_stream,
    sequence_of,
)
from trivium.servers.torchserve.wire.management import ManagementRequest
from trivium.servers.torchserve.wire.management_answer import document_of, note
from trivium.servers.torchserve.wire.management_options import ManagementOptions, management_options
from trivium.servers.torchserve.wire.management_routes import scope_of
from trivium.servers.torchserve.words.layers import SequenceNames
from trivium.types import reasons
from trivium.types.access import AccessScope
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, frameless, unwritable
from trivium.types.interfaces import RpcEncoder, RpcProtocol
from trivium.types.listeners import Role
from trivium.types.operations import Infer, List, Listing, Operation, ResponsePart
from trivium.types.payload import Raw, RawPart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import RpcAnswer, RpcCall, RpcKind, Target

_INFERS, _MANAGES = f"{INFERENCE}.InferenceAPIsService", f"{MANAGEMENT}.ManagementAPIsService"
SERVICES: Mapping[Role, Sequence[str]] = {Role.INFERENCE: (_INFERS,), Role.MANAGEMENT: (_MANAGES,)}
"""The services whose RPCs this protocol understands, by role."""

PING, PREDICT = f"/{_INFERS}/Ping", f"/{_INFERS}/Predictions"
STREAM, STREAM_2 = f"/{_INFERS}/StreamPredictions", f"/{_INFERS}/StreamPredictions2"
SCOPES: Mapping[str, AccessScope] = {
    PING: AccessScope.OPEN,
    PREDICT: AccessScope.INFER,
    STREAM: AccessScope.INFER,
    STREAM_2: AccessScope.INFER,
    **{f"/{_MANAGES}/{name}": scope_of(verb) for name, verb in MANAGEMENT_RPCS.items()},
}
"""All that this protocol answers, with the right that each needs."""


def descriptors() -> Sequence[bytes]:
    """See `types.described.SupportsReflection`."""
    managing = {name: f"{name}Request" for name in MANAGEMENT_RPCS}
    return service_files(_INFERS.rpartition(".")[2], _MANAGES.rpartition(".")[2], managing)


_KINDS: Mapping[str, RpcKind] = {STREAM: RpcKind.SERVER_STREAM, STREAM_2: RpcKind.STREAM}
_INPUT = 3
"""The field of a request that carries data."""

_NO_OPTIONS = ManagementOptions()
_NAMES = SequenceNames()


class TorchServeGrpc:
    """Implements `types.interfaces.RpcProtocol`. `make_id` gives each request its id. With `exact_texts` an error says
    what the original says, and no more. What is for other `roles` is not there; models are managed as `management`
    says. Inputs with these `names` say that a sequence starts or ends.
    """

    def __init__(
        self,
        make_id: Callable[[], str],
        exact_texts: bool = False,
        roles: Set[Role] = frozenset(Role),
        management: ManagementOptions = _NO_OPTIONS,
        names: SequenceNames = _NAMES,
    ) -> None:
        self._make_id = make_id
        self._exact = exact_texts
        self._names = names
        self._management = management
        services = tuple(f"/{name}/" for role in roles for name in SERVICES.get(role, ()))
        self._methods = frozenset(method for method in SCOPES if method.startswith(services))

    def kind(self, method: str) -> RpcKind:
        """UNSUPPORTED for an RPC that there is not."""
        if method in self._methods:
            return _KINDS.get(method, RpcKind.UNARY)
        raise ServeError(
            Code.UNSUPPORTED,
            f"There is no RPC {method[:200]!r} here; those of TorchServe are {', '.join(sorted(self._methods))}.",
        )

    def scope(self, method: str) -> AccessScope:
        """Return the right that `SCOPES` says; that of a manager for one that it does not have."""
        return SCOPES.get(method, AccessScope.MANAGE)

    def admit(self, call: RpcCall) -> None:
        """Admit every call that has a kind."""

    def is_costly(self, call: RpcCall, message: bytes) -> bool:
        """No message is: `decode` refuses what would take long to read."""
        return False

    def decode(self, call: RpcCall, message: bytes) -> tuple[Operation, RpcEncoder]:
        """The operation of one request, and the encoder for its answer."""
        if call.method == PING:
            return List(), PingRpcEncoder()
        service, _, name = call.method[1:].partition("/")
        if service == _MANAGES:
            asked = decode_rpc(name, message, self._make_id(), self._management)
            return asked.operation, ManagementRpcEncoder(asked, self._exact)
        request = read("PredictionsRequest", message, (_INPUT,))
        if not request.model_name:
            raise ServeError(
                Code.INVALID,
                "The request names no model. Set its model_name.",
                info=ErrorInfo.of(reasons.UNKNOWN_MODEL, model=""),
            )
        target = Target("", request.model_name, request.model_version)
        names = self._names
        prediction = PredictionBytes(call.method != PREDICT, (names.start, names.end))
        infer = self._infer(call, request, prediction)
        if call.method == STREAM_2:
            shows = "" if request.sequence_id else names.id
            return infer, SequenceRpcEncoder(target, prediction, self._exact, shows, request.sequence_id)
        return infer, PredictionRpcEncoder(target, prediction, call.method == STREAM, self._exact)

    def _infer(self, call: RpcCall, request: Any, prediction: PredictionBytes) -> Infer:
        parts = tuple(RawPart(value, name=name) for name, value in request.input.items())
        return Infer(
            request.model_name,
            Raw(parts, path=None),
            request.model_version,
            self._make_id(),
            deadline=call.timeout,
            sequence=sequence_of(request, self._names, call.method == STREAM_2),
            as_generate=prediction.read,
        )

    def refuse(self, call: RpcCall, error: ServeError) -> RpcAnswer:
        """The status of an error, which ends the call; of one request of a stream a message."""
        if call.method == STREAM_2:
            return refuse_in_stream(error, Target(""), self._exact)
        refuse = refuse_management if call.method.startswith(f"/{_MANAGES}/") else refuse_inference
        answer = refuse(error, Target(""), self._exact)
        note_refusal(error, answer.code)
        return answer


class PingRpcEncoder:
    """Writes the health of the server."""

    __slots__ = ()

    def encode(self, part: ResponsePart) -> RpcAnswer:
        """One message."""
        if part.error is not None or not isinstance(part.answer, Listing):
            error = part.error or ServeError(
                Code.INTERNAL, "The server did not say how its models are. Report it."
            )
            return refuse_inference(error, Target(""), exact=False)
        health = _text(indented({"status": health_of(part.answer)}))
        return RpcAnswer(new("TorchServeHealthResponse", health=health).SerializeToString())


class ManagementRpcEncoder:
    """Writes the answer of one RPC that manages models: a status as its text alone, a document as indented JSON."""

    __slots__ = ("_asked", "_exact")

    def __init__(self, asked: ManagementRequest, exact: bool) -> None:
        self._asked = asked
        self._exact = exact

    def encode(self, part: ResponsePart) -> RpcAnswer:
        """One message."""
        wish = self._asked.wish
        try:
            _, document = document_of(part, wish, self._asked.write)
            is_status = isinstance(document, dict) and document.keys() == {"status"}
            text = str(cast(dict[str, str], document)["status"]) if is_status else _text(indented(document))
            return RpcAnswer(new("ManagementResponse", msg=text).SerializeToString())
        except ServeError as error:
            return self._refused(frameless(error))
        except Exception as error:
            return self._refused(unwritable(error))

    def _refused(self, error: ServeError) -> RpcAnswer:
        wish = self._asked.wish
        answer = refuse_management(error, Target("", wish.model, wish.version), self._exact)
        note(wish, error, answer.code)
        return answer


class PredictionRpcEncoder(PartRpcEncoder):
    """Writes one prediction: a message for each part of a stream, else the first part alone, as the original does, once
    all of them have come. Status and headers that a handler sets have no place in it. Text that is generated is one
    part, where it is not streamed.
    """

    __slots__ = ("_first", "_is_stream")

    def __init__(self, target: Target, prediction: PredictionBytes, is_stream: bool, exact: bool) -> None:
        super().__init__(target, prediction, exact)
        self._is_stream = is_stream
        self._first: bytes | None = None

    def message(self, part: ResponsePart) -> RpcAnswer:
        """Return the message of a part; none for an empty last one behind others."""
        if self._is_stream:
            data = self._prediction.of(part)
            return RpcAnswer(None if data is None else _message_of(data), part.final)
        if self._first is None:
            self._first = self._prediction.of(part)
        return RpcAnswer(_message_of(self._first or b"") if part.final else None, part.final)

    def refused(self, error: ServeError) -> RpcAnswer:
        """Return the end of the call."""
        return refuse_inference(error, self._target, self._exact)


def _message_of(data: bytes) -> bytes:
    return bytes(new("PredictionResponse", prediction=data).SerializeToString())


def _text(document: bytes) -> str:
    return document.decode().rstrip("\n")


def make(context: ProtocolContext) -> RpcProtocol:
    """The protocol for one listener. INVALID for options that cannot be."""
    options, names = management_options(context), context.states.of(SequenceNames)
    return TorchServeGrpc(context.make_id, context.as_original, context.roles, options, names)
