"""The contract of RPC protocols on all that there are, and on broken ones: each check catches some."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.faulty_encoders import (
    AlteredEncoder,
    always,
    changed,
    changing_where,
    ending_all,
    is_cancelled,
    is_error,
    is_late_error,
    raising_where,
)
from tests.contract.response_parts import COUNTS, SPEC
from tests.contract.rpc_protocols import CHECKS, RpcMethod, RpcSubject, check_request, written
from tests.harness.grpc_messages import request, tensor
from tritonclient.grpc import service_pb2

from trivium.codecs.protobuf_schema import classes_of
from trivium.servers.djl.wire import grpc as djl
from trivium.servers.triton.words.v2 import V2
from trivium.types.errors import Code, ServeError
from trivium.types.log_settings import LogSettings
from trivium.types.operations import (
    Listing,
    LogReport,
    ModelDescription,
    Readiness,
    RegionListing,
    ServerDescription,
    SharedRegion,
    TraceReport,
    VersionStatus,
)
from trivium.types.payload import Raw, Tensors
from trivium.types.state import ServerState, VersionState
from trivium.types.statistics import StatisticsReport
from trivium.types.tracing import TraceSettings
from trivium.types.wire import RpcAnswer, RpcKind
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.grpc import HEALTH, INFER, SERVICE, STREAM_INFER, KServeGrpc


def read(method: str, message: bytes) -> object:
    """As NVIDIA's client reads it; the health check has one field."""
    if method == HEALTH:
        assert message in (b"\x08\x01", b"\x08\x02", b""), message
        return message
    name = method.removeprefix(SERVICE)
    return getattr(service_pb2, f"{name}Response").FromString(message)


def error_in(response: object) -> str:
    """What a stream's response tells of an error."""
    return getattr(response, "error_message", "")


def method(rpc: str, answer: object, **fields: object) -> RpcMethod:
    message = getattr(service_pb2, f"{rpc}Request")(**fields)
    return RpcMethod(SERVICE + rpc, message.SerializeToString(), answer)


_READY, _NONE = Readiness(True), RegionListing(())
_MODEL = ModelDescription(SPEC, ("1", "2"))
_REGION = SharedRegion("r", "/key", 4, 16)
_FIELDS = {"name": "r", "key": "/key", "offset": 4, "byte_size": 16}
_LOG = {"log_verbose_level": {"uint32_param": 1}}
_RATE = {"trace_rate": {"value": ["10"]}}
_CONFIG = {"config": {"string_param": "{}"}, "file:1/f": {"bytes_param": b"hi"}}
_ONE = tensor("x", "FP32", [2])
_INFER = request(
    _ONE, raw=[bytes(8)], id="7", parameters={"priority": {"uint64_param": 1}}
).SerializeToString()
_STREAM = RpcMethod(STREAM_INFER, _INFER, kind=RpcKind.STREAM)
_INFERS = (
    RpcMethod(INFER, _INFER),
    _STREAM,
    replace(_STREAM, metadata={"triton_grpc_error": "true"}, ends_with_status=True),
    replace(
        _STREAM,
        request=request(
            _ONE, raw=[bytes(8)], parameters={"triton_enable_empty_final_response": {"bool_param": True}}
        ).SerializeToString(),
    ),
)
METHODS = (
    *_INFERS,
    RpcMethod(HEALTH, b"", _READY),
    method("ServerLive", _READY),
    method("ServerReady", _READY),
    method("ModelReady", _READY, name="m", version="2"),
    method("ServerMetadata", ServerDescription("x", "1", ServerState.SERVING)),
    method("ModelMetadata", _MODEL, name="m", version="2"),
    method("ModelConfig", _MODEL, name="m"),
    method("ModelStatistics", StatisticsReport((COUNTS,)), name="m"),
    method("RepositoryIndex", Listing((VersionStatus("m", "1", VersionState.READY),)), ready=True),
    method("RepositoryModelLoad", Listing(()), model_name="m", parameters=_CONFIG),
    method("RepositoryModelUnload", Listing(()), model_name="m"),
    method("SystemSharedMemoryStatus", RegionListing((_REGION,))),
    method("SystemSharedMemoryRegister", _NONE, **_FIELDS),
    method("SystemSharedMemoryUnregister", _NONE, name="r"),
    method("CudaSharedMemoryStatus", _READY),
    method("CudaSharedMemoryUnregister", _READY, name="r"),
    method("LogSettings", LogReport(LogSettings()), settings=_LOG),
    method("TraceSetting", TraceReport(TraceSettings(), None), settings=_RATE, model_name="m"),
)

KSERVE = RpcSubject(
    "kserve",
    lambda: KServeGrpc("trivium", "1.2", KServeOptions(may_change=True, original=V2)),
    METHODS,
    read,
    error_in,
)
_TRITON = KServeOptions(may_change=True, original=V2, as_original=True)
_DJL_MESSAGES = classes_of(
    "contract",
    {
        "Predict": "1 string model_name\n2 string model_version\n4 map<string,bytes> headers\n5 bytes input",
        "Predicted": "1 int32 code\n2 map<string,bytes> headers\n3 bytes output",
        "Pinged": "1 int32 code\n2 map<string,string> model_status",
    },
)
_PREDICTION = _DJL_MESSAGES["Predict"](model_name="m", headers={"Accept": b"tensor/npz"}, input=b"hi")


def read_djl(method: str, message: bytes) -> object:
    """As a client of DJL's own would read it."""
    made = _DJL_MESSAGES["Pinged" if method == djl.PING else "Predicted"]()
    made.ParseFromString(message)
    return made


DJL = RpcSubject(
    "djl",
    lambda: djl.DjlGrpc(lambda: "made"),
    (
        RpcMethod(djl.PING, b"", Listing((VersionStatus("m", "1", VersionState.READY),))),
        RpcMethod(
            djl.PREDICT, _PREDICTION.SerializeToString(), kind=RpcKind.SERVER_STREAM, ends_with_status=True
        ),
    ),
    read_djl,
    error_in,
)
SUBJECTS = (
    KSERVE,
    replace(KSERVE, name="kserve in Triton's words", make=lambda: KServeGrpc("triton", "2.51.0", _TRITON)),
    DJL,
)
every_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)


@every_subject
@pytest.mark.parametrize("name", CHECKS)
def test_contract(name, subject):
    CHECKS[name](subject)


def test_all_methods_that_answer_are_under_test():
    rpcs = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods_by_name
    refused = {"CudaSharedMemoryRegister"}  # always
    assert {each.name for each in METHODS} == {HEALTH, *(SERVICE + name for name in set(rpcs) - refused)}


def _mutate(subject: RpcSubject, data: st.DataObject) -> None:
    """A request with a piece of it replaced by something else."""
    chosen = data.draw(st.sampled_from(subject.methods))
    message = bytearray(chosen.request)
    at = data.draw(st.integers(0, len(message)))
    message[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    check_request(subject, subject.make(), chosen, chosen.call, bytes(message))


@every_subject
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_message_is_decoded_or_refused(subject, data):
    _mutate(subject, data)


@pytest.mark.slow
@every_subject
@settings(max_examples=3000, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_message_is_decoded_or_refused_at_length(subject, data):
    _mutate(subject, data)


# -- broken implementations --------------------------------------------------------------------------------


class AlteredProtocol:
    """A good protocol with a fault in one of its steps."""

    def __init__(self, good, *, kind=None, decode=None, refuse=None, encode=None):
        self.kind = good.kind if kind is None else lambda method: kind(good, method)
        self._decode = good.decode if decode is None else lambda *request: decode(good, *request)
        self.refuse = (
            good.refuse if refuse is None else lambda call, error: refuse(good.refuse(call, error), error)
        )
        self._encode = encode

    def decode(self, call, message):
        operation, encoder = self._decode(call, message)
        return operation, encoder if self._encode is None else AlteredEncoder(encoder, self._encode)


class SharingProtocol:
    """All requests have one encoder, and with it what it knows of the others."""

    def __init__(self, good):
        self._good, self._shared = good, {}
        self.kind, self.refuse = good.kind, good.refuse

    def decode(self, call, message):
        operation, encoder = self._good.decode(call, message)
        counting = AlteredEncoder(
            encoder, lambda answer, part, n: changed(answer, code=14) if n > 4 else answer
        )
        return operation, self._shared.setdefault(call.method, counting)


def broken(**faults: Callable[..., object]) -> RpcSubject:
    """The subject with these faults, and with the methods that infer and one other."""
    good = KSERVE.make
    return replace(KSERVE, make=lambda: AlteredProtocol(good(), **faults), methods=METHODS[:6])


def _is_answered(good, method):
    return good.kind(method) if method.startswith(SERVICE) and method.isascii() else RpcKind.UNARY


def _is_looked_up(good, method):
    return {each.name: each.kind for each in METHODS}[method]


def _all_unary(good, method):
    good.kind(method)
    return RpcKind.UNARY


def _decode_text(good, call, message):
    message.decode()
    return good.decode(call, message)


def _refuse_without_row(answer: RpcAnswer, error: ServeError) -> RpcAnswer:
    if error.code is Code.DRAINING:
        raise KeyError(error.code)
    return answer


def _unwritable(answer: RpcAnswer, error: ServeError) -> RpcAnswer:
    return changed(answer, details=error.message) if answer.code else answer


FAULTS: Mapping[str, Mapping[str, RpcSubject]] = {
    "encoders_never_raise": {
        "raises at tensors": broken(
            encode=raising_where(lambda part, number: isinstance(part.payload, Tensors) and part.final)
        ),
        "raises at a handler's answer": broken(
            encode=raising_where(lambda part, number: isinstance(part.payload, Raw))
        ),
        "raises at answers": broken(encode=raising_where(lambda part, number: part.answer is not None)),
        "raises at errors behind a part": broken(encode=raising_where(is_late_error)),
    },
    "answers_can_be_sent": {
        "a status of its own": broken(encode=changing_where(is_error, code=17, message=None)),
        "no message of the method": broken(encode=changing_where(always, code=0, message=b"\xff")),
        "a message beside an error": broken(encode=changing_where(is_error, code=3, message=b"")),
        "a text that fits no trailer": broken(
            encode=changing_where(is_error, code=3, message=None, details="x" * 9000)
        ),
        "no response": broken(encode=changing_where(always, code=0, details="", message=None)),
    },
    "final_parts_end_the_answer": {
        "no end": broken(encode=changing_where(always, final=False)),
        "no end of errors": broken(encode=changing_where(is_error, final=False)),
    },
    "answers_end_once": {
        "ends at once": broken(encode=changing_where(always, final=True)),
        "never ends": broken(encode=changing_where(lambda part, n: n > 0, final=False)),
        "swallows parts": broken(encode=changing_where(lambda part, n: n == 1, message=None)),
        "the first of several parts as the whole answer": broken(
            encode=changing_where(lambda part, n: not part.final, code=0, details="", message=b"", final=True)
        ),
        "an error that went well": broken(encode=changing_where(always, code=2, message=None)),
    },
    "large_answers_are_written_elsewhere": {
        "all at once": broken(encode=lambda answer, part, n: written(answer)),
        "ends before it is written": broken(encode=changing_where(always, final=True)),
    },
    "failures_behind_the_first_part": {
        "a failure in silence": broken(encode=changing_where(is_late_error, message=None)),
        "a failure that ends nothing": broken(encode=changing_where(is_late_error, final=False)),
        "one failure ends the stream": broken(
            encode=changing_where(is_late_error, code=13, details="no", message=None)
        ),
        "a failure that looks well": broken(
            encode=changing_where(is_late_error, code=0, details="", message=b"")
        ),
    },
    "cancellation_in_mid_stream": {
        "goes on when cancelled": broken(encode=changing_where(is_cancelled, final=False)),
        "cancelled in silence": broken(encode=changing_where(is_cancelled, message=None)),
        "cancels the others, too": broken(encode=ending_all()),
    },
    "requests_share_nothing": {
        "one encoder for all": replace(
            KSERVE, make=lambda: SharingProtocol(KSERVE.make()), methods=METHODS[:6]
        ),
    },
    "refusals_have_a_form": {
        "refuses with success": broken(
            refuse=lambda answer, error: changed(answer, code=0, details="", message=b"")
        ),
        "refuses without an end": broken(refuse=lambda a, e: changed(a, final=False)),
        "cannot write surrogates": broken(refuse=_unwritable),
        "an error without a text": broken(encode=changing_where(is_error, details="")),
    },
    "every_code_has_a_status": {
        "a code without a row": broken(refuse=_refuse_without_row),
        "all errors alike": broken(refuse=lambda answer, error: changed(answer, code=2)),
    },
    "methods": {
        "answers any method": broken(kind=_is_answered),
        "raises at odd methods": broken(kind=_is_looked_up),
        "knows no streams": broken(kind=_all_unary),
    },
    "hostile_messages": {
        "raises at odd messages": broken(decode=_decode_text),
    },
}
"""The check that must see it -> what is broken -> the subject."""


@pytest.mark.parametrize(
    ("check", "fault"), [(check, fault) for check, faults in FAULTS.items() for fault in faults]
)
def test_the_contract_catches(check, fault):
    with pytest.raises(AssertionError) as caught:
        CHECKS[check](FAULTS[check][fault])
    assert not isinstance(
        caught.value.__cause__, NameError | TypeError | AttributeError
    )  # of the fault's own code


@pytest.mark.parametrize("name", CHECKS)
def test_without_a_fault_nothing_is_caught(name):
    CHECKS[name](broken())


def test_every_check_catches_something():
    assert set(FAULTS) == set(CHECKS)
