"""What the contracts of all wires share: parts of answers as odd as they can be, and words for what went wrong."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from trivium.types import reasons
from trivium.types.datatype import DataType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ConfigError, RunAgain, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.generation import Generate, Generated, GeneratedChoice
from trivium.types.log_settings import LogSettings
from trivium.types.metrics import CacheUse, GpuUse, MachineUse, MetricFamily, MetricSeries
from trivium.types.operations import (
    Listing,
    LogReport,
    ModelDescription,
    Readiness,
    RegionListing,
    ResponsePart,
    ServerDescription,
    SharedRegion,
    TraceReport,
    VersionStatus,
)
from trivium.types.payload import NOT_MADE, PackedTensor, Raw, RawPart, Tensor, Tensors
from trivium.types.spec import Batching, ModelSpec, TensorSpec
from trivium.types.state import ServerState, VersionState
from trivium.types.statistics import (
    BatchStatistics,
    Duration,
    MetricsReport,
    StatisticsReport,
    VersionMetrics,
    VersionStatistics,
)
from trivium.types.tracing import Detail, TraceSettings

TEXTS = (
    "",
    "It failed. Send another.",
    "a\r\nX-Evil: 1\r\n\r\nevil",
    "\x00\x1b[31m\x7f\x85\u2028",
    "\udc80\ud800 surrogates",
    "é漢字\U0001f600",
    '"quotes" \\ {model} %s %',
    "x" * 30_000,
)
"""Messages, names and values as user code and hostile clients make them."""

STATUSES = (0, 1, -3, 99, 100, 199, 200, 204, 304, 418, 424, 500, 599, 600, 999, 1000, 10**6)
"""What a handler may return as the status of its answer."""

SPEC = ModelSpec(
    "m",
    "2",
    Path("m"),
    "onnx",
    "model.onnx",
    inputs=(TensorSpec("x", DataType.FP32, (-1, 4)),),
    outputs=(TensorSpec("y", DataType.BYTES, ()),),
    batching=Batching(batch_axis=True, max_rows=8, merge=True),
)
NOTHING = Duration()
COUNTS = VersionStatistics(
    "m", "2", 0, 7, 4, *(NOTHING,) * 6, (BatchStatistics(1, *(NOTHING,) * 3),), {"expired": 1}, 0, 0
)
METRICS = MetricsReport((VersionMetrics(COUNTS, {"team": "red"}, 0, True),))


def floats(*values: float) -> Tensors:
    """One tensor that every wire can write."""
    return Tensors((Tensor("y", DataType.FP32, (len(values),), np.float32(values)),))


def answers(name: str = "m") -> tuple[object, ...]:
    """An answer of every type, about a model of that name."""
    rows = tuple(VersionStatus(name, "1", state, name) for state in VersionState)
    counts = replace_struct(COUNTS, model=name, failures={name: 1})
    family = MetricFamily(name, "histogram", name, (MetricSeries(((name, name),), 1.0, 1, ((1.0, 1),)),))
    use = CacheUse(1, 0, 0, 0, 0, 0, 0.0, 0.0)
    version = VersionMetrics(counts, {name: name}, 0, True)
    return (
        Readiness(True),
        Readiness(False, name),
        ServerDescription(name, "1", ServerState.SERVING),
        ModelDescription(replace(SPEC, name=name), ("1", "2"), (name,)),
        Listing(()),
        Listing(rows),
        StatisticsReport((counts,)),
        MetricsReport(()),
        MetricsReport((version,), (family,), MachineUse(0.5, 2, 1), (GpuUse(0, name, 0.5),), use),
        RegionListing((SharedRegion(name, name, 0, 8),)),
        LogReport(LogSettings(file=name)),
        TraceReport(TraceSettings(frozenset(Detail)), name, {name: name}),
        TraceReport(TraceSettings(left=3), None),
    )


def replace_struct(value, **fields):
    """A copy of a msgspec value with other fields."""
    return type(value)(**{name: getattr(value, name) for name in value.__struct_fields__} | fields)


def errors(code: Code) -> tuple[ServeError, ...]:
    """Errors of this code as the core, a handler and a hostile request make them."""
    return (
        *(ServeError(code, text) for text in TEXTS),
        *(ServeError(code, "Try again.", retry_after) for retry_after in (0.0, 0.2, 3.0, 86_400.0)),
        *(ServeError(code, "The handler said so.", status=status) for status in (400, 409, 418, 503, 599)),
        ServeError(code, "Full.", 1.0, 429),
        *(ServeError(code, text, info=ErrorInfo.of(reasons.UNKNOWN_MODEL, model=text)) for text in TEXTS),
        ServeError(code, "None.", info=ErrorInfo.of(reasons.UNKNOWN_VERSION, model="m", version="\udc80x")),
        ServeError(code, "None.", info=ErrorInfo.of(reasons.NOT_SERVING, model="m", version="1")),
    )


def _tensors() -> list[Tensors]:
    found = [Tensors(()), floats(1.0, np.nan, np.inf)]
    for datatype in DataType:
        for shape in ((2,), (), (0,), (1, 2), (1,)):
            array = np.zeros(shape, datatype.dtype)
            if datatype is DataType.BYTES:
                array = np.full(shape, b"\xff\x00\r\n", object)
            found.append(Tensors((Tensor("y", datatype, shape, array),)))
    texts = np.array([b"", b"text", "é".encode(), b"x" * 3000], object)
    found.append(Tensors((Tensor("y", DataType.BYTES, (2, 2), texts.reshape(2, 2)),)))
    found.append(Tensors((PackedTensor("y", DataType.FP32, (2,), NOT_MADE, bytes(12), 4, 8),)))
    found.append(Tensors(found[1].items + floats(2.0).items * 2))
    found += [Tensors((Tensor(text, DataType.INT64, (1,), np.int64([7])),)) for text in TEXTS]
    impossible = (("no datatype", None), (DataType.FP32, None), (DataType.BYTES, np.array([None, 1], object)))
    found += [Tensors((Tensor("y", datatype, (2,), array),)) for datatype, array in impossible]
    return found


def _raws() -> list[Raw]:
    names = (
        *TEXTS,
        "content-length",
        "Transfer-Encoding",
        "CONNECTION",
        "Content-Type",
        "x-request-id",
        "a b",
    )
    found = [Raw(()), Raw((RawPart(b""),)), Raw((RawPart(b"a"), RawPart(memoryview(b"b"), "b/c", "b")))]
    found += [Raw((RawPart(b"x", "text/plain"),), {name: "5"}) for name in names]
    found += [Raw((RawPart(b"x"),), {"x-own": text, "Content-Type": text}) for text in TEXTS]
    found += [Raw((RawPart(b"x", text),)) for text in TEXTS]
    found += [Raw((RawPart(b"x"),), reason=text) for text in TEXTS]
    found += [Raw((RawPart(b"x"),), status=status) for status in STATUSES]
    found.append(
        Raw((RawPart(b"x", "a/b"),), {"content-type": "c/d", "Content-Type": "e/f", "X-A": "1", "x-a": "2"})
    )
    return found


def odd_parts() -> list[ResponsePart]:
    """Parts of every shape that the types allow, and some that they do not; each as a final one and, but for errors,
    as one that another follows.
    """
    payloads = [*_tensors(), *_raws(), Generate(prompts=("x",)), Generated((GeneratedChoice(0, "x"),))]
    good = floats(1.0)
    found = [ResponsePart(payload, final=final) for payload in payloads for final in (True, False)]
    found += [ResponsePart(final=final) for final in (True, False)]
    for text in ("m", *TEXTS):
        found += [ResponsePart(answer=answer) for answer in answers(text)]
        found.append(ResponsePart(good, model=text, version=text))
    parameters = [{text: text} for text in TEXTS]
    parameters += [
        {"a": value} for value in (True, 2**63, -(2**63), 2**64 + 1, 10**400, 0.5, np.nan, None, object())
    ]
    found += [ResponsePart(good, parameters=some, model="m") for some in parameters]
    failed = [
        *errors(Code.NOT_FOUND),
        *errors(Code.MODEL_FAILED),
        *(ServeError(code, "It failed.") for code in Code),
    ]
    found += [ResponsePart(error=error, model="m") for error in failed]
    wrong = Finding(Severity.ERROR, "f", 1, "k", "\udc80")
    found += [
        ResponsePart(error=error) for error in (ConfigError((wrong,)), RunAgain(Code.INTERNAL, "again"))
    ]
    return found


def refusal_of(call: Callable[[], object]) -> ServeError | None:
    """The refusal that it raises, if it does."""
    try:
        call()
    except ServeError as error:
        return error
    return None


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Whatever is raised becomes an AssertionError that says what was done."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{what}: {error!r:.500}") from error
