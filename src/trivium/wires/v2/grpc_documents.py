"""The answers of the RPCs that do not infer, as messages: health, metadata, configuration, statistics, the index,
shared memory, settings.

Source: spec sheet `triton`, sections 5.2, 5.3 and 6.1. What only the dialect of Triton knows (a model's
platform, its configuration in that form) is asked of it.
"""

from collections.abc import Callable
from typing import cast

import msgspec
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
from trivium.types.statistics import StatisticsReport
from trivium.wires.v2 import documents
from trivium.wires.v2.original import ModelDocuments
from trivium.wires.v2.service_messages import LogSettingsMessage, TraceSettingsMessage, new
from trivium.wires.v2.settings import log_document
from trivium.wires.v2.trace_settings import trace_document

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
    return new("ModelMetadataResponse", **documents.metadata(answer, models.platform(answer.spec)))


def model_config(models: ModelDocuments, answer: Answer) -> Message:
    """The configuration as completed."""
    assert isinstance(answer, ModelDescription)
    response = new("ModelConfigResponse")
    response.config.MergeFromString(models.config_bytes(answer.spec))  # type: ignore[attr-defined]
    return response


def statistics(answer: Answer) -> Message:
    """Counters of every version asked about."""
    assert isinstance(answer, StatisticsReport)
    counters = [msgspec.to_builtins(documents.statistics(version)) for version in answer.versions]
    return new("ModelStatisticsResponse", model_stats=counters)


def index(answer: Answer) -> Message:
    """The versions asked for."""
    assert isinstance(answer, Listing)
    return new("RepositoryIndexResponse", models=[documents.index_entry(row) for row in answer.versions])


def regions(answer: Answer) -> Message:
    """The shared memory that is registered."""
    assert isinstance(answer, RegionListing)
    response = new("SystemSharedMemoryStatusResponse")
    for region in answer.regions:
        status = response.regions[region.name]  # type: ignore[attr-defined]
        for key, value in documents.region_document(region).items():
            setattr(status, key, value)
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
