"""The Open Inference Protocol v2 over gRPC, as served by KServe and Triton: the wire's face to a front end.

Decides which operation an RPC is and which encoder writes its answer: one row per RPC. Knows no socket, nothing
of grpcio, and no model; an operation's own meaning is the core's.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

import msgspec
from google.protobuf.message import Message

from trivium.types import reasons
from trivium.types.access import AccessScope
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, frameless, unwritable
from trivium.types.interfaces import RpcEncoder, RpcProtocol
from trivium.types.listeners import Role
from trivium.types.operations import (
    Answer,
    Describe,
    Infer,
    Listing,
    Live,
    Operation,
    Ready,
    ResponsePart,
    Statistics,
)
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import RpcAnswer, RpcCall, RpcKind
from trivium.wires.v2 import grpc_documents as documents
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.abilities import KServeOptions, make_options
from trivium.wires.v2.grpc_control import Reading, readers
from trivium.wires.v2.grpc_errors import refuse
from trivium.wires.v2.grpc_infer_answer import Layout, StreamEncoder, UnaryEncoder, refuse_in_stream
from trivium.wires.v2.grpc_infer_request import decode_infer, of_request
from trivium.wires.v2.grpc_restricted import check_rpc_key
from trivium.wires.v2.large_messages import weight
from trivium.wires.v2.original import ModelDocuments
from trivium.wires.v2.parameters import RESERVED
from trivium.wires.v2.service_messages import DESCRIPTORS, Named, new, parse
from trivium.wires.v2.words import OWN_RPC_ERRORS, RpcErrorTranslator

SERVICE = "/inference.GRPCInferenceService/"
INFER = SERVICE + "ModelInfer"
STREAM_INFER = SERVICE + "ModelStreamInfer"
HEALTH = "/grpc.health.v1.Health/Check"
SERVICES: Mapping[Role, Sequence[str]] = {
    Role.INFERENCE: ("inference.GRPCInferenceService", "grpc.health.v1.Health")
}
"""The services whose RPCs this protocol understands."""

_COSTLY_BYTES = 2**17
SCOPES: Mapping[str, AccessScope] = {
    HEALTH: AccessScope.OPEN,
    SERVICE + "ServerLive": AccessScope.OPEN,
    SERVICE + "ServerReady": AccessScope.OPEN,
    SERVICE + "ServerMetadata": AccessScope.INFER,
    SERVICE + "ModelMetadata": AccessScope.INFER,
    SERVICE + "ModelReady": AccessScope.INFER,
    INFER: AccessScope.INFER,
    STREAM_INFER: AccessScope.INFER,
    SERVICE + "ModelConfig": AccessScope.OBSERVE,
    SERVICE + "ModelStatistics": AccessScope.OBSERVE,
    SERVICE + "RepositoryIndex": AccessScope.OBSERVE,
    SERVICE
    + "TraceSetting": AccessScope.OBSERVE,  # with settings it changes them, which needs a manager's key
    SERVICE + "LogSettings": AccessScope.OBSERVE,  # likewise
    SERVICE + "RepositoryModelLoad": AccessScope.MANAGE,
    SERVICE + "RepositoryModelUnload": AccessScope.MANAGE,
    SERVICE + "SystemSharedMemoryStatus": AccessScope.MANAGE,
    SERVICE + "SystemSharedMemoryRegister": AccessScope.MANAGE,
    SERVICE + "SystemSharedMemoryUnregister": AccessScope.MANAGE,
    SERVICE + "CudaSharedMemoryStatus": AccessScope.MANAGE,
    SERVICE + "CudaSharedMemoryRegister": AccessScope.MANAGE,
    SERVICE + "CudaSharedMemoryUnregister": AccessScope.MANAGE,
}
"""All that this protocol answers, with the right that each needs."""

_ENDS_STREAM = "triton_grpc_error"

Write = Callable[[Answer], Message]
_NO_ABILITIES = KServeOptions()
_NOTHING = Listing(())


class ReadEncoder(msgspec.Struct, frozen=True):
    """Writes the answer of one RPC other than the inferring ones. `write` raises ServeError where the request had a
    fault that the core's own errors go before. The garbage collector tracks it, since an error's frames may lead back
    to it.
    """

    write: Write
    method: str = ""
    words: RpcErrorTranslator = OWN_RPC_ERRORS

    def encode(self, part: ResponsePart) -> RpcAnswer:
        """The message, or the error. Never raises."""
        if part.error is not None:
            if self.words.forgives(part.error, self.method):
                return RpcAnswer(self.write(_NOTHING).SerializeToString())
            return refuse(self.words.told(part.error, self.method, part.model))
        try:
            assert part.answer is not None, "the server had no answer"
            return RpcAnswer(self.write(part.answer).SerializeToString())
        except ServeError as error:
            return refuse(self.words.told(frameless(error), self.method, part.model))
        except Exception as error:  # an encoder never raises; the text says whose fault this is
            return refuse(unwritable(error))


class KServeGrpc:
    """Implements `types.interfaces.RpcProtocol`. Name and version are those of ServerMetadata."""

    def __init__(
        self, server_name: str, server_version: str, abilities: KServeOptions = _NO_ABILITIES
    ) -> None:
        metadata = new(
            "ServerMetadataResponse",
            name=server_name,
            version=server_version,
            extensions=list(abilities.extensions),
        )
        self._abilities = abilities
        self._words = abilities.rpc_words
        models = abilities.original.documents
        self._readers: Mapping[str, Callable[[bytes], Reading]] = {
            HEALTH: lambda data: (Live(), documents.health),
            SERVICE + "ServerMetadata": lambda data: (Describe(), lambda answer: metadata),
            **{SERVICE + name: reader for name, reader in {**_readers(models), **readers(abilities)}.items()},
        }
        if abilities.as_original:
            self._readers = {**self._readers, SERVICE + "ModelReady": _ready_of_number}

    def kind(self, method: str) -> RpcKind:
        """UNSUPPORTED for an RPC that there is not."""
        if method == STREAM_INFER:
            return RpcKind.STREAM
        if method == INFER or method in self._readers:
            return RpcKind.UNARY
        raise ServeError(
            Code.UNSUPPORTED,
            f"There is no RPC {method[:200]!r} here; those of the Open Inference Protocol begin with {SERVICE}, and "
            f"the health check is {HEALTH}.",
        )

    def scope(self, method: str) -> AccessScope:
        """Return the right that `SCOPES` says; that of a manager for one that it does not have."""
        return SCOPES.get(method, AccessScope.MANAGE)

    def admit(self, call: RpcCall) -> None:
        """Raise FORBIDDEN for a restricted RPC whose key is missing in the metadata."""
        if self._abilities.restricted_rpcs:
            check_rpc_key(call, self._abilities.restricted_rpcs)

    def is_costly(self, call: RpcCall, message: bytes) -> bool:
        """Contents and BYTES are read value by value; raw contents of numbers are only viewed."""
        return call.method not in (INFER, STREAM_INFER) or weight(message) > _COSTLY_BYTES

    def decode(self, call: RpcCall, message: bytes) -> tuple[Operation, RpcEncoder]:
        """The operation of one request, and the encoder for its answer."""
        self.admit(call)
        method = call.method
        is_stream = method == STREAM_INFER
        if not is_stream and method != INFER:
            operation, write = self._readers[method](message)
            return operation, ReadEncoder(write, method.rpartition("/")[2], self._words)
        regions = self._abilities.regions
        request = decode_infer(message, call.timeout, regions)
        infer = request.operation
        if self._abilities.forwards is not None:
            infer = _forwarded(call, infer, self._abilities.forwards)
        layout = Layout(infer.id, request.places, regions, self._words)
        if is_stream:
            return infer, StreamEncoder(layout, request.tells_end, _ends_stream(call))
        return infer, UnaryEncoder(layout)

    def refuse(self, call: RpcCall, error: ServeError) -> RpcAnswer:
        """A status; of one request of a stream an error message, after which the stream goes on."""
        facts = error.metadata
        request_id, model = str(facts.get("request_id", "")), str(facts.get("request_model", ""))
        told = self._words.told(error, call.method.rpartition("/")[2], model, request_id)
        if (
            call.method != STREAM_INFER
            or _ends_stream(call)
            or error.reason == request_reasons.RESTRICTED_API
        ):
            return refuse(told)
        return refuse_in_stream(told, request_id)


def make(context: ProtocolContext) -> RpcProtocol:
    """The protocol for one listener. INVALID for restrictions that cannot be read."""
    return KServeGrpc(context.server_name, context.server_version, make_options(context))


def descriptors() -> Sequence[bytes]:
    """See `types.described.SupportsReflection`."""
    return DESCRIPTORS


def _forwarded(call: RpcCall, infer: Infer, pattern: re.Pattern[str]) -> Infer:
    """Return the request with the metadata that become parameters."""
    found: dict[str, str] = {}
    for name, value in call.metadata.items():
        if name != _ENDS_STREAM and pattern.fullmatch(name):
            if name.startswith(RESERVED):
                error = ServeError(
                    Code.INVALID,
                    f"The metadata {name!r} cannot become a parameter: names that begin with {RESERVED!r} are "
                    "reserved. Call it otherwise.",
                )
                raise of_request(error, infer.id, infer.model)
            found[name] = value.strip(" \t")  # as over HTTP, where blanks around a value are none of it
    if not found:
        return infer
    return msgspec.structs.replace(infer, parameters={**infer.parameters, **found})


def _ends_stream(call: RpcCall) -> bool:
    return call.metadata.get(_ENDS_STREAM) == "true"


def _ready(data: bytes) -> Reading:
    request = cast(Named, parse("ModelReadyRequest", data))
    if not request.name:  # as in the original: no such model is ready, and that is no error
        return Live(), lambda answer: new("ModelReadyResponse", ready=False)
    return Ready(request.name, request.version), documents.model_ready


def _ready_of_number(data: bytes) -> Reading:
    """Refuse a version that is no number, as the original does."""
    version = cast(Named, parse("ModelReadyRequest", data)).version
    if version and not version.isdigit():
        raise ServeError(
            Code.INVALID,
            f"The version {version[:80]!r} is no number. Correct it, or leave it out.",
            info=ErrorInfo.of(reasons.UNKNOWN_VERSION, model="", version=version),
        )
    return _ready(data)


def _describe(name: str, write: Write) -> Callable[[bytes], Reading]:
    def read(data: bytes) -> Reading:
        request = cast(Named, parse(name, data))
        if not request.name:
            raise ServeError(
                Code.INVALID,
                "The request names no model. Set its name.",
                info=ErrorInfo.of(reasons.UNKNOWN_MODEL, model=""),
            )
        return Describe(request.name, request.version), write

    return read


def _statistics(data: bytes) -> Reading:
    request = cast(Named, parse("ModelStatisticsRequest", data))
    return Statistics(request.name, request.version), documents.statistics


def _readers(models: ModelDocuments) -> Mapping[str, Callable[[bytes], Reading]]:
    """Return what reads the request of each RPC that reads."""
    return {
        "ServerLive": lambda data: (Live(), documents.live),
        "ServerReady": lambda data: (Ready(), documents.server_ready),
        "ModelReady": _ready,
        "ModelMetadata": _describe("ModelMetadataRequest", partial(documents.model_metadata, models)),
        "ModelConfig": _describe("ModelConfigRequest", partial(documents.model_config, models)),
        "ModelStatistics": _statistics,
    }
