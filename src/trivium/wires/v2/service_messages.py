"""The messages of the gRPC service as protobuf classes, in the private pool that ModelConfig lives in.

`new` makes one by name, `parse` reads one; the classes below are only what mypy sees of those whose fields are
read, and are never instantiated. Must not know which RPC uses which message.
"""

from collections.abc import Iterator, Mapping, MutableSequence, Sequence
from typing import Protocol, cast

from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from trivium.codecs.protobuf_fields import judge_fields
from trivium.codecs.protobuf_schema import file_of
from trivium.codecs.protobuf_services import Rpc, depending, with_service
from trivium.types.errors import Code, ServeError
from trivium.wires.v2.descriptor import CONFIG_BYTES, CONFIG_FILE, POOL
from trivium.wires.v2.service_schema import HEALTH, HEALTH_ENUMS, RPC_NAMES, SERVICE

_RPCS = {name: Rpc(f"{name}Request", f"{name}Response") for name in RPC_NAMES}
_STREAM_RPC = Rpc("ModelInferRequest", "ModelStreamInferResponse", True, True)
_SERVICE_FILE = with_service(
    depending(file_of("grpc_service.proto", "inference", SERVICE, {}), CONFIG_FILE),
    "GRPCInferenceService",
    {**_RPCS, "ModelStreamInfer": _STREAM_RPC},
)
_HEALTH_FILE = with_service(
    file_of("grpc/health/v1/health.proto", "grpc.health.v1", HEALTH, HEALTH_ENUMS),
    "Health",
    {"Check": Rpc("HealthCheckRequest", "HealthCheckResponse")},
)
DESCRIPTORS: Sequence[bytes] = (
    CONFIG_BYTES,
    _SERVICE_FILE.SerializeToString(),
    _HEALTH_FILE.SerializeToString(),
)
"""The files of the services, each behind those that it imports."""

for _file in DESCRIPTORS[1:]:
    POOL.AddSerializedFile(_file)

_CLASSES = {
    name: GetMessageClass(POOL.FindMessageTypeByName(f"{package}.{name}"))
    for package, messages in (("inference", SERVICE), ("grpc.health.v1", HEALTH))
    for name in messages
}

DATA_FIELDS: Mapping[str, Sequence[int]] = {"ModelInferRequest": (5, 7), "RepositoryModelLoadRequest": (3,)}
"""Fields of the requests that carry data, with what may be long: inputs and raw contents, files of a model."""


class Parameter(Message):
    """A value of one of several types, each in a field of its own; which one is set is found by `WhichOneof`."""


class TensorContents(Message):
    """Values by the kind of their datatype. Read by the name of the field."""


class InputTensor(Message):
    """One input."""

    name: str
    datatype: str
    shape: Sequence[int]
    parameters: Mapping[str, Parameter]
    contents: TensorContents


class RequestedOutput(Message):
    """One output that is asked for."""

    name: str
    parameters: Mapping[str, Parameter]


class InferRequestMessage(Message):
    """A ModelInferRequest."""

    model_name: str
    model_version: str
    id: str
    parameters: Mapping[str, Parameter]
    inputs: Sequence[InputTensor]
    outputs: Sequence[RequestedOutput]
    raw_input_contents: Sequence[bytes]


class OutputTensor(Message):
    """One output of an answer."""

    name: str
    datatype: str
    shape: MutableSequence[int]
    parameters: Mapping[str, Parameter]


class OutputTensors(Protocol):
    """All outputs of an answer."""

    def add(self) -> OutputTensor: ...
    def __iter__(self) -> Iterator[OutputTensor]: ...


class InferResponse(Message):
    """A ModelInferResponse."""

    model_name: str
    model_version: str
    id: str
    parameters: Mapping[str, Parameter]
    outputs: OutputTensors
    raw_output_contents: MutableSequence[bytes]


class StreamResponse(Message):
    """A ModelStreamInferResponse."""

    error_message: str
    infer_response: InferResponse


class Named(Message):
    """Any request that names a model and a version."""

    name: str
    version: str


class TraceValue(Message):
    """The values of a trace setting; none resets it."""

    value: MutableSequence[str]


class TraceSettingsMessage(Message):
    """A request or an answer about them."""

    settings: Mapping[str, TraceValue]
    model_name: str


class LogSettingsMessage(Message):
    """A request or an answer about them."""

    settings: Mapping[str, Parameter]


def new(message: str, /, **fields: object) -> Message:
    """A message of that name. Nested messages may be given as dicts."""
    return _CLASSES[message](**fields)


def new_stream_response() -> StreamResponse:
    """An empty ModelStreamInferResponse."""
    return cast(StreamResponse, _CLASSES["ModelStreamInferResponse"]())


def new_infer_response() -> InferResponse:
    """An empty ModelInferResponse."""
    return cast(InferResponse, _CLASSES["ModelInferResponse"]())


def new_infer_request() -> InferRequestMessage:
    """An empty ModelInferRequest."""
    return cast(InferRequestMessage, _CLASSES["ModelInferRequest"]())


def parse_infer_request(data: bytes) -> InferRequestMessage:
    """Raises INVALID like `parse`."""
    return cast(InferRequestMessage, parse("ModelInferRequest", data))


def parse(name: str, data: bytes) -> Message:
    """The message of that name that these bytes are. INVALID where they are none; TOO_LARGE as `judge_fields` says."""
    judge_fields(data, DATA_FIELDS.get(name, ()), "The request")
    try:
        return _CLASSES[name].FromString(data)
    except DecodeError as error:
        raise no_message(name, len(data), error) from error


def no_message(name: str, size: int, error: DecodeError) -> ServeError:
    """The error of a request of `size` bytes that are not what they should be."""
    return ServeError(
        Code.INVALID,
        f"The {size} bytes of the request are no message {name} of the Open Inference Protocol: {error}. "
        "Make the client's stubs from the protocol's own .proto files.",
    )
