"""The answers of the read routes as JSON: health, metadata, configuration, statistics, the index of models.

Source: spec sheet `triton`, sections 4.2, 4.9 and 6.1. What only the protocol's
original knows (a model's platform, its configuration in that form) is asked of it.
"""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import msgspec

from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.operations import (
    Answer,
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
from trivium.types.spec import ModelSpec, TensorSpec
from trivium.types.statistics import (
    BatchStatistics,
    Duration,
    GenerationStatistics,
    StatisticsReport,
    VersionStatistics,
)
from trivium.types.wire import HttpAnswer, Target
from trivium.wires.v2.errors import json_answer, refuse
from trivium.wires.v2.index_states import INDEX_STATES
from trivium.wires.v2.original import NO_DOCUMENTS, ModelDocuments
from trivium.wires.v2.routes import Verb
from trivium.wires.v2.settings import log_document
from trivium.wires.v2.trace_settings import trace_document
from trivium.wires.v2.words import OWN_ERRORS, ErrorTranslator

_NOTHING = HttpAnswer(200, b"Content-Type: text/plain\r\n", (), 0)
_NOT_READY = HttpAnswer(400, b"Content-Type: text/plain\r\n", (), 0)
_DONE = json_answer(200, b"")
_HEALTHY = {Verb.LIVE: json_answer(200, b'{"live":true}'), Verb.READY: json_answer(200, b'{"ready":true}')}
"""What KServe's own servers say, and its client reads; the protocol's original says nothing."""


class Identity(msgspec.Struct, frozen=True, gc=False):
    """The server's name and version on this wire; `extensions` by their names in the protocol."""

    name: str
    version: str
    extensions: tuple[str, ...]


class TensorMetadata(TypedDict):
    """Describes an input or output; a size of -1 is any, as is that of the batch."""

    name: str
    datatype: str
    shape: Sequence[int]


class MetadataDocument(TypedDict):
    """Describes a model: its versions that serve, its inputs and outputs."""

    name: str
    versions: Sequence[str]
    platform: str
    inputs: Sequence[TensorMetadata]
    outputs: Sequence[TensorMetadata]


class RegionDocument(TypedDict):
    """Describes a region of shared memory that a client has registered, in bytes."""

    name: str
    key: str
    offset: int
    byte_size: int


class InferStatistics(TypedDict):
    """Counts requests of a version by how they ended, and the nanoseconds of each of their stages."""

    success: Duration
    fail: Duration
    queue: Duration
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration
    cache_hit: Duration
    cache_miss: Duration


class BatchDocument(TypedDict):
    """Counts executions of one size of batch, and the nanoseconds of their stages."""

    batch_size: int
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration


class GenerationDocument(TypedDict):
    """Counts the tokens of a model that generates; durations are in nanoseconds."""

    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    wasted_tokens: int
    steps: Duration
    first_token: Duration
    between_tokens: Duration
    running: int
    waiting: int
    cache_share: float
    cache_bytes: int


class VersionDocument(TypedDict):
    """Counts what a version has done since it was loaded; `last_inference` is in milliseconds of the Unix epoch."""

    name: str
    version: str
    last_inference: int
    inference_count: int
    execution_count: int
    inference_stats: InferStatistics
    response_stats: Mapping[str, object]
    batch_stats: Sequence[BatchDocument]
    memory_usage: Sequence[object]
    generation_stats: NotRequired[GenerationDocument]


class StatisticsDocument(TypedDict):
    """Counts what versions have done."""

    model_stats: Sequence[VersionDocument]


class IndexEntry(TypedDict):
    """Says of a version in the repository how it is; what is not known is left out."""

    name: str
    version: NotRequired[str]
    state: NotRequired[str]
    reason: NotRequired[str]


class DocumentEncoder(msgspec.Struct, frozen=True):
    """Writes the answer to one read route. `refusal` is an error in the request itself, which is answered where the
    core has no error of its own. A probe of what is not ready gets the status `not_ready`; that of a server that is
    has no body where it `is_original`. The garbage collector tracks it, since an error's frames may lead back to it.
    """

    target: Target
    identity: Identity
    words: ErrorTranslator = OWN_ERRORS
    refusal: ServeError | None = None
    not_ready: int = 400
    models: ModelDocuments = NO_DOCUMENTS
    is_original: bool = False

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """The document, or the error. Never raises."""
        if part.error is not None:
            return self._refusal(part.error)
        if self.refusal is not None:
            return refuse(self.refusal)
        try:
            if part.answer is None:
                raise ServeError(
                    Code.INTERNAL, f"The server had no answer to {self.target.verb!r}. Report it."
                )
            fixed = _FIXED_ANSWERS.get(self.target.verb)
            return self._document(part.answer) if fixed is None else fixed
        except Exception as error:
            return self._refusal(unwritable(error))

    def _refusal(self, error: ServeError) -> HttpAnswer:
        verb = self.target.verb
        if self.words.forgives(error, verb):
            return _DONE
        return refuse(self.words.of_answer(error, verb, self.target.model))

    def _readiness(self, answer: Readiness, model: str) -> HttpAnswer:
        """Say of the server whether it is ready; of a model also why not."""
        if answer.ready:
            return _NOTHING if model or self.is_original else _HEALTHY[Verb(self.target.verb)]
        if not model:
            return msgspec.structs.replace(_NOT_READY, status=self.not_ready)
        reason = answer.reason or f"The model {model!r} is not ready."
        return self._refusal(ServeError(Code.NOT_READY, reason, status=self.not_ready))

    def _document(self, answer: Answer) -> HttpAnswer:
        match answer:
            case Readiness():
                return self._readiness(answer, self.target.model)
            case ServerDescription():
                return _json(self.identity)
            case ModelDescription():
                if self.target.verb == Verb.CONFIG:
                    return json_answer(200, self.models.config_json(answer.spec))
                return _json(metadata(answer, self.models.platform(answer.spec)))
            case StatisticsReport():
                return _json({"model_stats": [_with_generation(version) for version in answer.versions]})
            case RegionListing():
                return _json([region_document(region) for region in answer.regions])
            case LogReport():
                return _json(log_document(answer.settings))
            case TraceReport():
                return _json(trace_document(answer))
            case Listing():
                return _json([index_entry(status) for status in answer.versions])
            case _:
                raise ServeError(Code.INTERNAL, "This answer is one of another protocol. Report it.")


_FIXED_ANSWERS: Mapping[str, HttpAnswer] = {
    Verb.LOAD: _DONE,
    Verb.UNLOAD: _DONE,
    Verb.REGISTER: _DONE,
    Verb.UNREGISTER: _DONE,
    Verb.DEVICE_REGIONS: json_answer(200, b"[]"),
    Verb.DEVICE_UNREGISTER: _DONE,
}
"""By verb, where all that an answer says is that it was done."""


def _json(document: object) -> HttpAnswer:
    return json_answer(200, msgspec.json.encode(document))


def metadata(answer: ModelDescription, platform: str) -> MetadataDocument:
    """Return names, datatypes and shapes of a model; a batch dimension is -1."""
    spec = answer.spec
    return {
        "name": spec.name,
        "versions": answer.versions,
        "platform": platform,
        "inputs": _tensors(spec, spec.inputs),
        "outputs": _tensors(spec, spec.outputs),
    }


def _tensors(spec: ModelSpec, tensors: Sequence[TensorSpec]) -> list[TensorMetadata]:
    rows = (-1,) if spec.batching.batch_axis else ()
    return [{"name": tensor.name, "datatype": tensor.wire, "shape": rows + tensor.dims} for tensor in tensors]


def region_document(region: SharedRegion) -> RegionDocument:
    """Return the document of a region of shared memory."""
    return {"name": region.name, "key": region.key, "offset": region.offset, "byte_size": region.size}


def statistics(version: VersionStatistics) -> VersionDocument:
    """Return the counters of a version. All eight durations always: perf_analyzer indexes them."""
    return {
        "name": version.model,
        "version": version.version,
        "last_inference": version.last,
        "inference_count": version.rows,
        "execution_count": version.executions,
        "inference_stats": {
            "success": version.success,
            "fail": version.fail,
            "queue": version.queue,
            "compute_input": version.compute_input,
            "compute_infer": version.compute_infer,
            "compute_output": version.compute_output,
            "cache_hit": version.cache_hit,
            "cache_miss": version.cache_miss,
        },
        "response_stats": {},
        "batch_stats": [_batch(batch) for batch in version.batches],
        "memory_usage": [],
    }


def _with_generation(version: VersionStatistics) -> VersionDocument:
    """Return the counters of a version, with those of tokens where it generates."""
    found = statistics(version)
    if version.generation is not None:
        found["generation_stats"] = _generation(version.generation, version.queued_items)
    return found


def _generation(counts: GenerationStatistics, waiting: int) -> GenerationDocument:
    """Return the object that the protocol does not have: counts by tokens."""
    return {
        "prompt_tokens": counts.prompt_tokens,
        "cached_tokens": counts.cached_tokens,
        "generated_tokens": counts.new_tokens,
        "wasted_tokens": counts.wasted_tokens,
        "steps": counts.steps,
        "first_token": counts.first_token,
        "between_tokens": counts.between_tokens,
        "running": counts.running,
        "waiting": waiting,
        "cache_share": counts.share,
        "cache_bytes": counts.room,
    }


def _batch(batch: BatchStatistics) -> BatchDocument:
    return {
        "batch_size": batch.rows,
        "compute_input": batch.compute_input,
        "compute_infer": batch.compute_infer,
        "compute_output": batch.compute_output,
    }


def index_entry(status: VersionStatus) -> dict[str, str]:
    """Return an entry of the index without what is not known: a model that cannot be read has no version."""
    entry = {"name": status.model, "version": status.version, "state": INDEX_STATES[status.state]}
    return {key: value for key, value in (entry | {"reason": status.reason}).items() if value}
