"""Reflection without a server: what each question is answered."""

from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from trivium.catalogue import CATALOGUE
from trivium.codecs.protobuf_schema import classes_of
from trivium.described_api import descriptors_of
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Live, Readiness, ResponsePart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import RpcCall, RpcKind
from trivium.wires.reflection import grpc

# The messages as gRPC's own file has them, with the fields that are asked for here.
MESSAGES = classes_of(
    "grpc.reflection.v1alpha",
    {
        "ExtensionRequest": "1 string containing_type\n2 int32 extension_number",
        "Request": """
            1 string host
            3 oneof=q string file_by_filename
            4 oneof=q string file_containing_symbol
            5 oneof=q ExtensionRequest file_containing_extension
            6 oneof=q string all_extension_numbers_of_type
            7 oneof=q string list_services""",
        "Files": "1 repeated bytes file_descriptor_proto",
        "Numbers": "1 string base_type_name\n2 repeated int32 extension_number",
        "Service": "1 string name",
        "Services": "1 repeated Service service",
        "Error": "1 int32 error_code\n2 string error_message",
        "Response": """
            1 string valid_host
            2 Request original_request
            4 oneof=a Files files
            5 oneof=a Numbers numbers
            6 oneof=a Services services
            7 oneof=a Error error""",
    },
)
SERVICES = ("inference.GRPCInferenceService", "grpc.health.v1.Health")
PROTOCOL = grpc.make(ProtocolContext(services=SERVICES, descriptors=descriptors_of(CATALOGUE.rpc.values())))
CALL = RpcCall(next(iter(grpc.SCOPES)))


def asked(**fields: Any) -> Any:
    message = MESSAGES["Request"](host="h", **fields).SerializeToString()
    operation, encoder = PROTOCOL.decode(CALL, message)
    assert isinstance(operation, Live)
    answer = encoder.encode(ResponsePart(answer=Readiness(True)))
    assert answer.message is not None
    assert answer.code == 0
    found: Any = MESSAGES["Response"].FromString(answer.message)
    assert found.valid_host == "h"
    assert found.original_request.SerializeToString() == message
    return found


def names(response: Any) -> list[str]:
    return [FileDescriptorProto.FromString(data).name for data in response.files.file_descriptor_proto]


def test_services_are_listed() -> None:
    assert [each.name for each in asked(list_services="*").services.service] == list(SERVICES)


@pytest.mark.parametrize(
    ("symbol", "files"),
    [
        ("inference.GRPCInferenceService", ["grpc_service.proto", "model_config.proto"]),
        ("inference.GRPCInferenceService.ModelInfer", ["grpc_service.proto", "model_config.proto"]),
        ("inference.ModelInferRequest.InferInputTensor", ["grpc_service.proto", "model_config.proto"]),
        ("grpc.health.v1.Health", ["grpc/health/v1/health.proto"]),
        (
            "ai.djl.serving.grpc.proto.Inference",
            ["djl/inference.proto", "google/protobuf/empty.proto"],
        ),
        (
            "org.pytorch.serve.grpc.inference.InferenceAPIsService",
            [
                *("torchserve/inference.proto", "google/protobuf/empty.proto"),
                *("google/rpc/status.proto", "google/protobuf/any.proto"),
            ],
        ),
        ("grpc.reflection.v1alpha.ServerReflection", ["grpc/reflection/v1alpha/reflection.proto"]),
    ],
)
def test_a_symbol_is_answered_with_its_file_and_those_that_it_imports(symbol: str, files: list[str]) -> None:
    assert names(asked(file_containing_symbol=symbol)) == files
    assert names(asked(file_by_filename=files[0])) == files


@pytest.mark.parametrize(
    "question",
    [
        {"file_containing_symbol": "no.Such"},
        {"file_by_filename": "no.proto"},
        {"all_extension_numbers_of_type": "no.Such"},
        {"file_containing_extension": {"containing_type": "inference.ModelConfig", "extension_number": 1}},
    ],
)
def test_what_there_is_not_is_an_error_in_band(question: dict[str, Any]) -> None:
    assert asked(**question).error.error_code == 5


def test_messages_have_no_extensions() -> None:
    found = asked(all_extension_numbers_of_type="inference.ModelInferRequest").numbers
    assert found.base_type_name == "inference.ModelInferRequest"
    assert not found.extension_number


def test_a_question_without_a_field_and_bytes_that_are_none() -> None:
    assert asked().error.error_code == 12
    with pytest.raises(ServeError) as caught:
        PROTOCOL.decode(CALL, b"\xff")
    assert caught.value.code is Code.INVALID
    assert PROTOCOL.refuse(CALL, caught.value).code == 3


def test_both_versions_are_streams_and_nothing_else_is_there() -> None:
    assert [PROTOCOL.kind(method) for method in grpc.SCOPES] == [RpcKind.STREAM] * 2
    with pytest.raises(ServeError) as caught:
        PROTOCOL.kind("/grpc.reflection.v1.ServerReflection/Other")
    assert caught.value.code is Code.UNSUPPORTED
