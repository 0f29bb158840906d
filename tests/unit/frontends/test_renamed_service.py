"""A service under a second name is the same service: its calls are understood, and what is not its own is refused."""

import pytest

from trivium.catalogue import CATALOGUE
from trivium.frontends.renamed_service import RenamedService
from trivium.types.access import AccessScope
from trivium.types.errors import ServeError
from trivium.types.listeners import Role
from trivium.types.operations import Live
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import RpcCall, RpcKind
from trivium.wires.v2 import grpc as kserve

OTHER = "/other.package.Service/"
ENTRY = RenamedService(kserve, "inference.GRPCInferenceService", "other.package.Service")


def test_its_methods_are_those_of_the_service_alone() -> None:
    assert ENTRY.SERVICES == {Role.INFERENCE: ("other.package.Service",)}
    assert len(ENTRY.SCOPES) == len(kserve.SCOPES) - 1
    assert all(method.startswith(OTHER) for method in ENTRY.SCOPES)
    assert ENTRY.SCOPES[OTHER + "ModelInfer"] is AccessScope.INFER


def test_a_call_is_understood_as_one_to_the_service() -> None:
    protocol = ENTRY.make(ProtocolContext())
    call = RpcCall(OTHER + "ServerLive")
    assert protocol.kind(call.method) is RpcKind.UNARY
    assert protocol.kind(OTHER + "ModelStreamInfer") is RpcKind.STREAM
    assert protocol.scope(OTHER + "ModelConfig") is AccessScope.OBSERVE
    protocol.admit(call)
    assert not protocol.is_costly(RpcCall(OTHER + "ModelInfer"), b"")
    assert protocol.decode(call, b"")[0] == Live()
    with pytest.raises(ServeError) as caught:
        protocol.decode(RpcCall(OTHER + "ModelMetadata"), b"\xff")
    assert protocol.refuse(call, caught.value).code != 0


def test_the_service_is_not_there_under_its_own_name() -> None:
    protocol = ENTRY.make(ProtocolContext())
    for method in (kserve.INFER, kserve.HEALTH, OTHER + "Nope", "/other.package.Service2/ServerLive"):
        with pytest.raises(ServeError):
            protocol.kind(method)


def test_torchserves_profile_has_the_service_under_both_names() -> None:
    (grpc,) = [each for each in CATALOGUE.profiles["torchserve"].listeners if each.name == "gRPC"]
    owners = {route.prefix: route.protocol for route in grpc.routes}
    assert owners["inference.GRPCInferenceService"] == "v2"
    assert owners["org.pytorch.serve.grpc.openinference.GRPCInferenceService"] == "v2 of torchserve"
    assert owners["org.pytorch.serve.grpc.inference.InferenceAPIsService"] == "torchserve"
    assert owners["org.pytorch.serve.grpc.management.ManagementAPIsService"] == "torchserve"
