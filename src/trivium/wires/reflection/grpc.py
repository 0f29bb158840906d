"""Reflection over gRPC, in version 1 and the one before: which services there are, and the files that define them.

Both say the same in the same bytes; older clients know the name of the older one alone. Knows no service by name.
Source: grpc/reflection/v1/reflection.proto of gRPC.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto as FileProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from trivium.codecs.grpc_status import ending
from trivium.codecs.protobuf_fields import judge_fields
from trivium.codecs.protobuf_schema import classes_of
from trivium.codecs.protobuf_services import Rpc, messages_file, with_service
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import RpcEncoder, RpcProtocol
from trivium.types.listeners import Role
from trivium.types.operations import Live, Operation, ResponsePart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import RpcAnswer, RpcCall, RpcKind

_PACKAGES = ("grpc.reflection.v1", "grpc.reflection.v1alpha")
_SERVICE, _RPC = "ServerReflection", "ServerReflectionInfo"
SERVICES: Mapping[Role, Sequence[str]] = dict.fromkeys(
    (Role.INFERENCE, Role.MANAGEMENT), tuple(f"{package}.{_SERVICE}" for package in _PACKAGES)
)
"""The services whose RPCs this protocol understands."""

SCOPES: Mapping[str, AccessScope] = {
    f"/{package}.{_SERVICE}/{_RPC}": AccessScope.INFER for package in _PACKAGES
}
"""All that this protocol answers, with the right that each needs: that of whoever may call the services."""

_TABLES = {
    "ExtensionRequest": "1 string containing_type\n2 int32 extension_number",
    "ServerReflectionRequest": """
        1 string host
        3 oneof=message_request string file_by_filename
        4 oneof=message_request string file_containing_symbol
        5 oneof=message_request ExtensionRequest file_containing_extension
        6 oneof=message_request string all_extension_numbers_of_type
        7 oneof=message_request string list_services""",
    "FileDescriptorResponse": "1 repeated bytes file_descriptor_proto",
    "ExtensionNumberResponse": "1 string base_type_name\n2 repeated int32 extension_number",
    "ServiceResponse": "1 string name",
    "ListServiceResponse": "1 repeated ServiceResponse service",
    "ErrorResponse": "1 int32 error_code\n2 string error_message",
    "ServerReflectionResponse": """
        1 string valid_host
        2 ServerReflectionRequest original_request
        4 oneof=message_response FileDescriptorResponse file_descriptor_response
        5 oneof=message_response ExtensionNumberResponse all_extension_numbers_response
        6 oneof=message_response ListServiceResponse list_services_response
        7 oneof=message_response ErrorResponse error_response""",
}
_CLASSES = classes_of(_PACKAGES[0], _TABLES)
_NOT_FOUND, _UNIMPLEMENTED = 5, 12


def descriptors() -> Sequence[bytes]:
    """See `types.described.SupportsReflection`."""
    rpcs = {_RPC: Rpc("ServerReflectionRequest", "ServerReflectionResponse", True, True)}
    files = (messages_file(f"{each.replace('.', '/')}/reflection.proto", each, _TABLES) for each in _PACKAGES)
    return tuple(with_service(file, _SERVICE, rpcs).SerializeToString() for file in files)


class KnownFiles:
    """Finds files among descriptors, by their names and by what they define."""

    def __init__(self, descriptors: Sequence[bytes]) -> None:
        self._pool = DescriptorPool()
        self._bytes: dict[str, bytes] = {}
        waiting = {file.name: file for file in map(FileProto.FromString, descriptors)}
        while waiting:  # a pool takes a file behind those that it imports
            name = next(name for name, file in waiting.items() if not waiting.keys() & set(file.dependency))
            file = waiting.pop(name)
            self._bytes[name] = file.SerializeToString()
            self._pool.AddSerializedFile(self._bytes[name])

    def named(self, name: str) -> Sequence[bytes]:
        """Return a file, and those that it imports. Raises KeyError."""
        return tuple(self._bytes[each] for each in dict.fromkeys(self._with_imports(name)))

    def defining(self, symbol: str) -> Sequence[bytes]:
        """Return the file of a service, an RPC, a message or the like, and those that it imports. Raises KeyError."""
        try:
            file = self._pool.FindFileContainingSymbol(symbol)
        except KeyError:  # the library's does not know RPCs
            file = self._pool.FindMethodByName(symbol).containing_service.file
        return self.named(file.name)

    def has_message(self, name: str) -> bool:
        """Tell whether there is a message of this name."""
        try:
            self._pool.FindMessageTypeByName(name)
        except KeyError:
            return False
        return True

    def _with_imports(self, name: str) -> Iterator[str]:
        yield name
        for other in FileProto.FromString(self._bytes[name]).dependency:
            yield from self._with_imports(other)


class ReflectionGrpc:
    """Implements `types.interfaces.RpcProtocol`."""

    def __init__(self, services: Sequence[str], descriptors: Sequence[bytes]) -> None:
        self._services = services
        self._files = KnownFiles(descriptors)

    def kind(self, method: str) -> RpcKind:
        """UNSUPPORTED for an RPC that there is not."""
        if method in SCOPES:
            return RpcKind.STREAM
        raise ServeError(
            Code.UNSUPPORTED, f"There is no RPC {method[:200]!r} here; there is {', '.join(SCOPES)}."
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
        """The answer to one message, which needs nothing of the server. INVALID for what is none."""
        judge_fields(message, (), "The ServerReflectionRequest")
        try:
            request: Any = _CLASSES["ServerReflectionRequest"].FromString(message)
        except DecodeError as error:
            words = f"The message is no ServerReflectionRequest ({error}). Send one."
            raise ServeError(Code.INVALID, words) from error
        return Live(), ReflectionEncoder(self._answer(request))

    def refuse(self, call: RpcCall, error: ServeError) -> RpcAnswer:
        """A status, which ends the stream."""
        return ending(error)

    def _answer(self, request: Any) -> bytes:
        asked = request.WhichOneof("message_request")
        answer: Any = _CLASSES["ServerReflectionResponse"](valid_host=request.host, original_request=request)
        try:
            match asked:
                case "list_services":
                    for name in self._services:
                        answer.list_services_response.service.add(name=name)
                case "file_by_filename":
                    _put(answer, self._files.named(request.file_by_filename))
                case "file_containing_symbol":
                    _put(answer, self._files.defining(request.file_containing_symbol))
                case "all_extension_numbers_of_type":
                    if not self._files.has_message(request.all_extension_numbers_of_type):
                        raise KeyError
                    answer.all_extension_numbers_response.base_type_name = (
                        request.all_extension_numbers_of_type
                    )
                case "file_containing_extension":
                    raise KeyError
                case _:
                    _refuse(
                        answer, _UNIMPLEMENTED, "The request asks for nothing that there is. Set one field."
                    )
        except KeyError:
            text = "There is no such file, symbol or extension. List the services, and ask for one of them."
            _refuse(answer, _NOT_FOUND, text)
        return bytes(answer.SerializeToString())


def _put(answer: Any, files: Sequence[bytes]) -> None:
    answer.file_descriptor_response.file_descriptor_proto.extend(files)


def _refuse(answer: Any, code: int, text: str) -> None:
    answer.error_response.error_code = code
    answer.error_response.error_message = text


class ReflectionEncoder:
    """Writes an answer that is known before."""

    __slots__ = ("_message",)

    def __init__(self, message: bytes) -> None:
        self._message = message

    def encode(self, part: ResponsePart) -> RpcAnswer:
        """See `types.interfaces.RpcEncoder`."""
        return RpcAnswer(self._message) if part.error is None else ending(part.error)


def make(context: ProtocolContext) -> RpcProtocol:
    """The protocol for one listener."""
    return ReflectionGrpc(context.services, context.descriptors)
