"""The RPCs that do not infer: operation in, message out; and those that are not served."""

from pathlib import Path
from typing import Any

import pytest
from tests.harness.grpc_messages import PROTOCOL, STREAM, UNARY
from tritonclient.grpc import service_pb2

from trivium.codecs.grpc_status import NOT_FOUND, UNIMPLEMENTED, writable
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.log_settings import LogChange, LogSettings
from trivium.types.operations import (
    Answer,
    Describe,
    List,
    Listing,
    ListRegions,
    Live,
    Load,
    LogControl,
    LogReport,
    ModelDescription,
    Operation,
    Readiness,
    Ready,
    RegionListing,
    RegisterRegion,
    ResponsePart,
    ServerDescription,
    SharedRegion,
    Statistics,
    TraceControl,
    TraceReport,
    Unload,
    UnregisterRegion,
    VersionStatus,
)
from trivium.types.spec import Batching, InstanceGroup, ModelSpec, TensorSpec
from trivium.types.state import ServerState, VersionState
from trivium.types.statistics import BatchStatistics, Duration, StatisticsReport, VersionStatistics
from trivium.types.tracing import TraceChange, TraceSettings
from trivium.types.wire import RpcAnswer, RpcCall, RpcKind
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.grpc import HEALTH, SERVICE, KServeGrpc
from trivium.wires.v2.grpc_errors import refuse
from trivium.wires.v2.grpc_infer_request import of_request

SPEC = ModelSpec(
    name="m",
    version="2",
    root=Path("/models/m"),
    engine="onnx",
    entry="model.onnx",
    inputs=(TensorSpec("x", DataType.FP32, (4,)),),
    outputs=(TensorSpec("y", DataType.INT64, (-1,)),),
    batching=Batching(batch_axis=True, max_rows=8, merge=True),
    groups=(InstanceGroup("m"),),
)


def asked(rpc: str, **fields: Any) -> Operation:
    message = getattr(service_pb2, f"{rpc}Request")(**fields)
    return PROTOCOL.decode(RpcCall(SERVICE + rpc), message.SerializeToString())[0]


def answered(rpc: str, answer: Answer, **fields: Any) -> Any:
    message = getattr(service_pb2, f"{rpc}Request")(**fields)
    encoder = PROTOCOL.decode(RpcCall(SERVICE + rpc), message.SerializeToString())[1]
    said = encoder.encode(ResponsePart(answer=answer))
    assert (said.code, said.final) == (0, True)
    return getattr(service_pb2, f"{rpc}Response").FromString(said.message or b"")


@pytest.mark.parametrize(
    ("rpc", "fields", "operation"),
    [
        ("ServerLive", {}, Live()),
        ("ServerReady", {}, Ready()),
        ("ModelReady", {"name": "m", "version": "2"}, Ready("m", "2")),
        ("ServerMetadata", {}, Describe()),
        ("ModelMetadata", {"name": "m"}, Describe("m")),
        ("ModelConfig", {"name": "m", "version": "2"}, Describe("m", "2")),
        ("ModelStatistics", {}, Statistics()),
        ("ModelStatistics", {"name": "m", "version": "2"}, Statistics("m", "2")),
        ("RepositoryIndex", {"ready": True}, List(True)),
        ("RepositoryModelLoad", {"model_name": "m"}, Load("m")),
        ("RepositoryModelUnload", {"model_name": "m"}, Unload("m")),
    ],
)
def test_operations(rpc: str, fields: dict[str, Any], operation: Operation) -> None:
    assert asked(rpc, **fields) == operation
    assert PROTOCOL.kind(SERVICE + rpc) is RpcKind.UNARY


def test_kinds_of_the_inferring_ones() -> None:
    assert PROTOCOL.kind(UNARY.method) is RpcKind.UNARY
    assert PROTOCOL.kind(STREAM.method) is RpcKind.STREAM
    assert PROTOCOL.kind(HEALTH) is RpcKind.UNARY


def test_readiness() -> None:
    assert answered("ServerLive", Readiness(True)).live
    assert not answered("ServerReady", Readiness(False, "Loading.")).ready
    assert answered("ModelReady", Readiness(True), name="m").ready
    assert not answered("ModelReady", Readiness(True), name="").ready


def test_health() -> None:
    encoder = PROTOCOL.decode(RpcCall(HEALTH), b"\x0a\x03any")[1]
    assert encoder.encode(ResponsePart(answer=Readiness(True))) == RpcAnswer(b"\x08\x01")
    assert encoder.encode(ResponsePart(answer=Readiness(False))) == RpcAnswer(b"\x08\x02")


def test_metadata() -> None:
    server = answered("ServerMetadata", ServerDescription("x", "y", ServerState.SERVING))
    assert (server.name, server.version) == ("somebody", "1.2")
    assert "statistics" in server.extensions
    model = answered("ModelMetadata", ModelDescription(SPEC, ("1", "2")), name="m")
    assert (model.name, list(model.versions), model.platform) == ("m", ["1", "2"], "onnxruntime_onnx")
    assert [(t.name, t.datatype, list(t.shape)) for t in model.inputs] == [("x", "FP32", [-1, 4])]
    assert [(t.name, t.datatype, list(t.shape)) for t in model.outputs] == [("y", "INT64", [-1, -1])]


def test_configuration() -> None:
    config = answered("ModelConfig", ModelDescription(SPEC, ("2",)), name="m").config
    assert (config.name, config.max_batch_size) == ("m", 8)
    assert (config.input[0].name, list(config.input[0].dims)) == ("x", [4])
    assert config.HasField("dynamic_batching")


def test_statistics() -> None:
    once = Duration(1, 5)
    version = VersionStatistics(
        model="m",
        version="2",
        last=1234,
        rows=9,
        executions=3,
        success=Duration(4, 100),
        fail=Duration(2, 7),
        queue=Duration(4, 30),
        compute_input=once,
        compute_infer=once,
        compute_output=once,
        batches=(BatchStatistics(3, once, once, once),),
        failures={},
        wasted=0,
        queued_items=0,
    )
    (row,) = answered("ModelStatistics", StatisticsReport((version,))).model_stats
    assert (row.name, row.version, row.last_inference) == ("m", "2", 1234)
    assert (row.inference_count, row.execution_count) == (9, 3)
    stats = row.inference_stats
    assert (stats.success.count, stats.success.ns, stats.fail.count) == (4, 100, 2)
    assert all(stats.HasField(field.name) for field in stats.DESCRIPTOR.fields)
    assert [(batch.batch_size, batch.compute_infer.ns) for batch in row.batch_stats] == [(3, 5)]


def test_the_index() -> None:
    rows = [VersionStatus("m", str(n), state, "why") for n, state in enumerate(VersionState)]
    everything = answered("RepositoryIndex", Listing(tuple(rows))).models
    assert {row.state for row in everything} == {"", "UNAVAILABLE", "LOADING", "READY", "UNLOADING"}
    assert everything[0].reason == "why"


def test_loads_with_a_configuration_and_files() -> None:
    parameters = {
        "config": {"string_param": "{}"},
        "file:1/model.onnx": {"bytes_param": b"\x00"},
    }
    operation = asked("RepositoryModelLoad", model_name="m", parameters=parameters)
    assert operation == Load("m", "{}", {"1/model.onnx": b"\x00"})
    operation = asked(
        "RepositoryModelUnload", model_name="m", parameters={"unload_dependents": {"bool_param": True}}
    )
    assert operation == Unload("m", True)


def test_regions() -> None:
    region = SharedRegion("r", "/key", 4, 16)
    fields = {"name": "r", "key": "/key", "offset": 4, "byte_size": 16}
    assert asked("SystemSharedMemoryRegister", **fields) == RegisterRegion(region)
    assert asked("SystemSharedMemoryUnregister", name="r") == UnregisterRegion("r")
    assert asked("SystemSharedMemoryStatus") == ListRegions()
    listed = answered("SystemSharedMemoryStatus", RegionListing((region,))).regions["r"]
    assert (listed.name, listed.key, listed.offset, listed.byte_size) == ("r", "/key", 4, 16)
    assert not answered("CudaSharedMemoryStatus", Readiness(True)).regions
    answered("CudaSharedMemoryUnregister", Readiness(True))
    answered("SystemSharedMemoryUnregister", RegionListing(()))


def test_log_settings() -> None:
    settings = {"log_verbose_level": {"uint32_param": 1}, "log_error": {"bool_param": True}}
    assert asked("LogSettings", settings=settings) == LogControl(LogChange(verbose=1, error=True))
    assert asked("LogSettings") == LogControl()
    said = answered("LogSettings", LogReport(LogSettings(info=False))).settings
    assert {key: value.WhichOneof("parameter_choice") for key, value in said.items()} == {
        "log_file": "string_param",
        "log_info": "bool_param",
        "log_warning": "bool_param",
        "log_error": "bool_param",
        "log_verbose_level": "uint32_param",
        "log_format": "string_param",
    }
    assert (said["log_info"].bool_param, said["log_warning"].bool_param) == (False, True)


def test_trace_settings() -> None:
    some = {"trace_level": {"value": ["OFF"]}, "trace_rate": {"value": ["10"]}, "trace_count": {"value": []}}
    change = TraceChange(details=frozenset(), every=10, left=None)
    assert asked("TraceSetting", settings=some) == TraceControl("", change)
    assert asked("TraceSetting", settings=some, model_name="m") == TraceControl("m", change)
    assert asked("TraceSetting") == TraceControl()
    said = answered("TraceSetting", TraceReport(TraceSettings(), "")).settings
    assert len(said) == 6
    assert list(said["trace_level"].value) == ["OFF"]
    assert refusal("TraceSetting", settings={"trace_file": {"value": ["x"]}}).code is Code.UNSUPPORTED
    several = refusal("TraceSetting", settings={"trace_rate": {"value": ["1", "2"]}})
    assert several.info is not None
    assert (several.code, several.info.reason) == (Code.INVALID, request_reasons.SEVERAL_VALUES)
    shut = KServeGrpc("trivium", "1")
    assert refusal("TraceSetting", shut, settings={"trace_rate": {"value": ["1"]}}).code is Code.FORBIDDEN


def test_a_fault_in_the_trace_settings_of_a_model_waits_until_the_model_is_found() -> None:
    fields = {"settings": {"trace_file": {"value": ["x"]}}, "model_name": "m"}
    assert asked("TraceSetting", **fields) == TraceControl("m")
    message = service_pb2.TraceSettingRequest(**fields).SerializeToString()
    _, encoder = PROTOCOL.decode(RpcCall(SERVICE + "TraceSetting"), message)
    assert encoder.encode(ResponsePart(answer=TraceReport(TraceSettings(), ""))).code == UNIMPLEMENTED
    unknown = encoder.encode(ResponsePart(error=ServeError(Code.NOT_FOUND, "no such model")))
    assert (unknown.code, unknown.details) == (NOT_FOUND, "no such model")


def refusal(rpc: str, protocol: KServeGrpc = PROTOCOL, **fields: Any) -> ServeError:
    message = getattr(service_pb2, f"{rpc}Request")(**fields)
    with pytest.raises(ServeError) as caught:
        protocol.decode(RpcCall(SERVICE + rpc), message.SerializeToString())
    return caught.value


def test_names_that_are_missing() -> None:
    for rpc in ("ModelMetadata", "ModelConfig"):
        assert refusal(rpc).code is Code.INVALID


def test_the_repository_is_one() -> None:
    for rpc in ("RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload"):
        error = refusal(rpc, repository_name="r")
        assert error.code is Code.UNSUPPORTED
        assert error.message.startswith("'repository_name' specification is not supported")


CHANGES: dict[str, dict[str, Any]] = {
    "RepositoryModelLoad": {"model_name": "m"},
    "RepositoryModelUnload": {"model_name": "m"},
    "LogSettings": {"settings": {"log_info": {"bool_param": True}}},
}


@pytest.mark.parametrize("rpc", CHANGES)
def test_nobody_from_elsewhere_changes_anything(rpc: str) -> None:
    error = refusal(rpc, KServeGrpc("somebody", "1"), **CHANGES[rpc])
    assert "listens beyond its own machine" in error.message
    assert refuse(error).code == 7


@pytest.mark.parametrize(
    ("rpc", "parameters", "text"),
    [
        ("RepositoryModelLoad", {"config": {"bytes_param": b"{}"}}, "expected string_param"),
        ("RepositoryModelLoad", {"file:1/m": {"string_param": "a"}}, "expected bytes_param"),
        ("RepositoryModelLoad", {"file:1/m": {"bytes_param": b"a"}}, "without the parameter 'config'"),
        ("RepositoryModelLoad", {"other": {"bytes_param": b"a"}}, "no load parameter 'other'"),
        ("RepositoryModelUnload", {"unload_dependents": {"int64_param": 1}}, "expected bool_param"),
        ("RepositoryModelUnload", {"other": {"int64_param": 1}}, "no unload parameter 'other'"),
    ],
)
def test_parameters_that_do_not_fit(rpc: str, parameters: dict[str, Any], text: str) -> None:
    error = refusal(rpc, model_name="m", parameters=parameters)
    assert error.code is Code.INVALID
    assert text in error.message


def test_device_memory_is_unsupported() -> None:
    assert refusal("CudaSharedMemoryRegister", name="r").code is Code.UNSUPPORTED


def test_errors_of_reads_are_statuses() -> None:
    encoder = PROTOCOL.decode(RpcCall(SERVICE + "ModelStatistics"), b"")[1]
    assert encoder.encode(ResponsePart(error=ServeError(Code.NOT_FOUND, "No."))) == RpcAnswer(
        code=5, details="No."
    )
    assert encoder.encode(ResponsePart(answer=Readiness(True))).code == 13
    assert encoder.encode(ResponsePart()).code == 13


def test_every_rpc_of_theirs_is_served() -> None:
    for method in service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods:
        assert PROTOCOL.kind(SERVICE + method.name) in RpcKind


def test_anything_else() -> None:
    with pytest.raises(ServeError, match="There is no RPC '/x/y' here"):
        PROTOCOL.kind("/x/y")


def test_what_a_handler_asked_for_goes_first() -> None:
    assert refuse(ServeError(Code.MODEL_FAILED, "No.", status=404)).code == 5
    assert refuse(ServeError(Code.MODEL_FAILED, "No.", status=418)).code == 13


def test_a_refusal_keeps_its_request() -> None:
    error = of_request(ServeError(Code.INVALID, "No."), "7", "m")
    said = service_pb2.ModelStreamInferResponse.FromString(PROTOCOL.refuse(STREAM, error).message or b"")
    assert (said.error_message, said.infer_response.id) == ("No.", "7")
    assert PROTOCOL.refuse(UNARY, error) == RpcAnswer(code=3, details="No.")


@pytest.mark.parametrize("text", ["x" * 10_000, "\N{GRINNING FACE}" * 5000, "%" * 5000])
def test_long_texts_lose_their_middle(text: str) -> None:
    from urllib.parse import quote

    short = writable(f"begins {text} ends")
    assert short.startswith("begins ")
    assert short.endswith(" ends")
    assert " [...] " in short
    assert len(quote(short)) < 4100
    assert writable("short \udc80") == "short \\udc80"
