"""RPCs that only some clients may call, over gRPC."""

import pytest
from tests.harness.grpc_messages import request
from tritonclient.grpc import service_pb2

from trivium.codecs.grpc_status import PERMISSION_DENIED
from trivium.types.errors import Code, ServeError
from trivium.types.wire import RpcCall
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.grpc import HEALTH, INFER, SERVICE, STREAM_INFER, KServeGrpc
from trivium.wires.v2.grpc_restricted import check_rpc_key, parse_rpc_restrictions
from trivium.wires.v2.restricted import Key

ADMIN = Key("admin-key", "secret")
RPCS = set(service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods_by_name)
GROUPS = "health,metadata,inference,shared-memory,model-config,model-repository,statistics,trace,logging"


def test_every_rpc_is_in_a_group() -> None:
    keys = parse_rpc_restrictions(f"{GROUPS}:k=v")
    assert set(keys) == {SERVICE + name for name in RPCS} | {HEALTH}


def test_groups_and_keys() -> None:
    keys = parse_rpc_restrictions("statistics:Admin-Key=secret; logging:other=x=y")
    assert keys == {SERVICE + "ModelStatistics": ADMIN, SERVICE + "LogSettings": Key("other", "x=y")}
    assert parse_rpc_restrictions("") == {}


@pytest.mark.parametrize(
    "text", ["nope:a=b", "health", "health:a", "health:=b", "health:a=", "health,health:a=b"]
)
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(ServeError) as caught:
        parse_rpc_restrictions(text)
    assert caught.value.code is Code.INVALID
    assert "--restricted-rpcs" in caught.value.message


@pytest.mark.parametrize("metadata", [{}, {"admin-key": ""}, {"admin-key": "Secret"}, {"other": "secret"}])
def test_who_has_no_key_is_refused(metadata: dict[str, str]) -> None:
    with pytest.raises(ServeError) as caught:
        check_rpc_key(RpcCall(INFER, metadata), {INFER: ADMIN})
    assert caught.value.reason == request_reasons.RESTRICTED_API
    assert "'admin-key'" in caught.value.message
    assert "secret" not in caught.value.message.lower()


def test_who_has_it_and_what_is_open() -> None:
    check_rpc_key(RpcCall(INFER, {"admin-key": "secret"}), {INFER: ADMIN})
    check_rpc_key(RpcCall(HEALTH), {INFER: ADMIN})


@pytest.mark.parametrize("method", [INFER, STREAM_INFER, HEALTH, SERVICE + "ModelStatistics"])
def test_a_call_without_the_key_ends_with_a_status(method: str) -> None:
    protocol = KServeGrpc("s", "1", KServeOptions(restricted_rpcs=parse_rpc_restrictions(f"{GROUPS}:k=v")))
    call = RpcCall(method)
    for ask in (lambda: protocol.admit(call), lambda: protocol.decode(call, b"")):
        with pytest.raises(ServeError) as caught:
            ask()
    said = protocol.refuse(call, caught.value)
    assert (said.code, said.message, said.final) == (PERMISSION_DENIED, None, True)


def test_with_the_key_it_is_served() -> None:
    protocol = KServeGrpc("s", "1", KServeOptions(restricted_rpcs=parse_rpc_restrictions("inference:k=v")))
    protocol.admit(RpcCall(STREAM_INFER, {"k": "v"}))
    operation, _ = protocol.decode(RpcCall(INFER, {"k": "v"}), request().SerializeToString())
    assert operation.model == "m"  # type: ignore[union-attr]
