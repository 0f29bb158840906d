"""The answers of the RPCs that do not infer, as messages: health, metadata, configuration, statistics, the index,
shared memory, settings.

Source: spec sheet `triton`, sections 5.2, 5.3 and 6.1. What only the dialect of Triton knows (a model's
platform, its configuration in that form) is asked of it.
"""

from collections.abc import Callable, Sequence
from typing import cast

from google.protobuf.message import Message

from trivium.types.operations import (
    Answer,
    Listing,
    LogReport,
    ModelDescription,
    Readiness,
    RegionListing,
    TraceReport,
)
from trivium.types.spec import ModelSpec, TensorSpec
from trivium.types.statistics import BatchStatistics, Duration, StatisticsReport, VersionStatistics
from trivium.wires.v2.index_states import INDEX_STATES
from trivium.wires.v2.original import ModelDocuments
from trivium.wires.v2.service_messages import LogSettingsMessage, TraceSettingsMessage, new
from trivium.wires.v2.settings import log_document
from trivium.wires.v2.trace_settings import trace_document

Fields = dict[str, object]

_SERVING, _NOT_SERVING = 1, 2


def health(answer: Answer) -> Message:
    """Of the health protocol: does the server answer, whatever service is asked about?"""
    assert isinstance(answer, Readiness)
    return new("HealthCheckResponse", status=_SERVING if answer.ready else _NOT_SERVING)


def live(answer: Answer) -> Message:
    """Is the server up?"""
    assert isinstance(answer, Readiness)
    return new("ServerLiveResponse", live=answer.ready)


def server_ready(answer: Answer) -> Message:
    """Are all its models ready?"""
    assert isinstance(answer, Readiness)
    return new("ServerReadyResponse", ready=answer.ready)


def model_ready(answer: Answer) -> Message:
    """Is this one? Unknown is not ready, and no error."""
    assert isinstance(answer, Readiness)
    return new("ModelReadyResponse", ready=answer.ready)


def model_metadata(models: ModelDocuments, answer: Answer) -> Message:
    """Names, datatypes and shapes; a batch dimension is -1."""
    assert isinstance(answer, ModelDescription)
    spec = answer.spec
    return new(
        "ModelMetadataResponse",
        name=spec.name,
        versions=list(answer.versions),
        platform=models.platform(spec),
        inputs=_tensors(spec, spec.inputs),
        outputs=_tensors(spec, spec.outputs),
    )


def model_config(models: ModelDocuments, answer: Answer) -> Message:
    """The configuration as completed."""
    assert isinstance(answer, ModelDescription)
    response = new("ModelConfigResponse")
    response.config.MergeFromString(models.config_bytes(answer.spec))  # type: ignore[attr-defined]
    return response


def statistics(answer: Answer) -> Message:
    """Counters of every version asked about."""
    assert isinstance(answer, StatisticsReport)
    return new("ModelStatisticsResponse", model_stats=[_version(version) for version in answer.versions])


def index(answer: Answer) -> Message:
    """The versions asked for."""
    assert isinstance(answer, Listing)
    models = [
        {"name": row.model, "version": row.version, "state": INDEX_STATES[row.state], "reason": row.reason}
        for row in answer.versions
    ]
    return new("RepositoryIndexResponse", models=models)


def regions(answer: Answer) -> Message:
    """The shared memory that is registered."""
    assert isinstance(answer, RegionListing)
    response = new("SystemSharedMemoryStatusResponse")
    for region in answer.regions:
        status = response.regions[region.name]  # type: ignore[attr-defined]
        status.name, status.key = region.name, region.key
        status.offset, status.byte_size = region.offset, region.size
    return response


def nothing(message: str) -> Callable[[Answer], Message]:
    """It was done, and there is nothing to tell: an empty message of that name."""
    return lambda answer: new(message)


def log_settings(answer: Answer) -> Message:
    """Return the message of what is logged."""
    assert isinstance(answer, LogReport)
    response = cast(LogSettingsMessage, new("LogSettingsResponse"))
    for key, value in log_document(answer.settings).items():
        kind = "string" if isinstance(value, str) else "bool" if isinstance(value, bool) else "uint32"
        setattr(response.settings[key], f"{kind}_param", value)
    return response


def trace_settings(answer: Answer) -> Message:
    """Return the message of what is traced."""
    assert isinstance(answer, TraceReport)
    response = cast(TraceSettingsMessage, new("TraceSettingResponse"))
    for key, value in trace_document(answer).items():
        response.settings[key].value.extend([value] if isinstance(value, str) else value)
    return response


def _tensors(spec: ModelSpec, tensors: Sequence[TensorSpec]) -> list[Fields]:
    rows = (-1,) if spec.batching.batch_axis else ()
    return [{"name": tensor.name, "datatype": tensor.wire, "shape": rows + tensor.dims} for tensor in tensors]


def _version(version: VersionStatistics) -> Fields:
    """All eight durations always: perf_analyzer reads them."""
    return {
        "name": version.model,
        "version": version.version,
        "last_inference": version.last,
        "inference_count": version.rows,
        "execution_count": version.executions,
        "inference_stats": {
            "success": _duration(version.success),
            "fail": _duration(version.fail),
            "queue": _duration(version.queue),
            "compute_input": _duration(version.compute_input),
            "compute_infer": _duration(version.compute_infer),
            "compute_output": _duration(version.compute_output),
            "cache_hit": _duration(version.cache_hit),
            "cache_miss": _duration(version.cache_miss),
        },
        "batch_stats": [_batch(batch) for batch in version.batches],
    }


def _batch(batch: BatchStatistics) -> Fields:
    return {
        "batch_size": batch.rows,
        "compute_input": _duration(batch.compute_input),
        "compute_infer": _duration(batch.compute_infer),
        "compute_output": _duration(batch.compute_output),
    }


def _duration(duration: Duration) -> Fields:
    return {"count": duration.count, "ns": duration.ns}
