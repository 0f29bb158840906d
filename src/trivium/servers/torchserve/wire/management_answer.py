"""Writes the answers to requests that manage TorchServe's models: as documents, over HTTP and gRPC alike.

Source: spec sheet `torchserve`, section 5: the order of keys, and members without a value left out.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import JSON, has_controls, uncached_lines, without_controls
from trivium.codecs.json_documents import indented, moment
from trivium.servers.torchserve.wire.errors import refuse
from trivium.servers.torchserve.wire.management_errors import Act, Wish, worded
from trivium.settings.arguments import page
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, frameless, unwritable
from trivium.types.operations import (
    Answer,
    InstanceStatus,
    Listing,
    ModelDescription,
    ModelDescriptions,
    ResponsePart,
    VersionStatus,
)
from trivium.types.payload import Payload, Raw
from trivium.types.schedules import Sequence as SequenceRules
from trivium.types.sources import ModelSource
from trivium.types.spec import Device, Dynamic
from trivium.types.state import VersionState
from trivium.types.wire import HttpAnswer, Target

log = logging.getLogger(__name__)

Write = Callable[[Answer], tuple[int, object]]
"""Makes status and document of an answer."""

Shown = Callable[[str], str]
"""Makes of the place of a model what its clients know it by."""

PROCESSING = "Processing worker updates..."
_GONE = (VersionState.UNLOADED, VersionState.UNLOADING)
_FIRST_ID = 9000
_DELAY_MS = 100


class TorchServeManagementEncoder:
    """Writes one answer over HTTP as `write` says. `exact`: errors are in the words of the original, and ours are a
    line in the log. `reason`: the phrase of a success, None for the usual one.
    """

    __slots__ = ("_exact", "_reason", "_request_id", "_wish", "_write")

    def __init__(
        self, request_id: str, wish: Wish, write: Write, exact: bool, reason: bytes | None = None
    ) -> None:
        self._request_id = request_id
        self._wish = wish
        self._write = write
        self._exact = exact
        self._reason = reason

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer."""
        try:
            status, document = document_of(part, self._wish, self._write)
            body = indented(document)
        except ServeError as error:
            return self._refused(frameless(error))
        except Exception as error:
            return self._refused(unwritable(error))
        fields = uncached_lines(self._request_id) + JSON
        return HttpAnswer(status, fields, (body,), len(body), reason=self._reason)

    def _refused(self, error: ServeError) -> HttpAnswer:
        target = Target("", self._wish.model, self._wish.version)
        answer = refuse(error, self._request_id, target, self._exact)
        note(self._wish, error, answer.status)
        return answer


def document_of(part: ResponsePart, wish: Wish, write: Write) -> tuple[int, object]:
    """Return status and document of an answer. Raises the error that it holds, with the original's row for it."""
    if part.error is not None:
        part.error.is_logged = True  # by `note`
        raise worded(part.error, wish)
    assert part.final, "management is answered by one part"
    assert part.answer is not None, "it holds something"
    try:
        return write(part.answer)
    except ServeError as error:
        raise worded(error, wish) from error


def note(wish: Wish, error: ServeError, status: int) -> None:
    """Log why a request to manage a model is refused: the original's texts teach little. What a client sent makes no
    lines of its own.
    """
    level = logging.INFO if wish.act in (Act.DESCRIBE, Act.LIST) else logging.WARNING
    message = wire_text(error.message)
    for sent in (wish.url, wish.model, wish.version):
        if has_controls(sent):
            message = message.replace(sent, without_controls(sent))
    named = without_controls(wire_text(wish.url or wish.model))
    log.log(level, "%s '%s' is answered with %d: %s", wish.act.value, named, status, message)


# -- statuses ----------------------------------------------------------------------------------------------


def status(text: str, code: int = 200) -> Write:
    """Return what says a text, whatever the answer."""
    return lambda answer: (code, {"status": text})


def registered(source: ModelSource, waits: bool) -> Write:
    """It says that the version from this source is registered, and how many workers it has, or will have."""

    def write(answer: Answer) -> tuple[int, object]:
        assert isinstance(answer, Listing), answer
        rows = answer.versions
        row = next((row for row in rows if row.source == source), rows[-1])
        if row.least and not waits:
            return 202, {"status": PROCESSING}
        named = f'Model "{wire_text(row.model)}" Version: {wire_text(row.version)}'
        text = f"{named} registered with {row.least} initial workers"
        if not row.least:
            text += ". Use scale workers API to add workers for the model."
        return 200, {"status": text}

    return write


def scaled(model: str, version: str, least: int, waits: bool) -> Write:
    """It says that a version has so many workers, or will have."""
    if not waits:
        return status(PROCESSING, 202)
    named = f", version: {wire_text(version)}" if version else ""
    return status(f"Workers scaled to {least} for model: {wire_text(model)}{named}")


# -- lists and descriptions --------------------------------------------------------------------------------


def is_known(row: VersionStatus) -> bool:
    """Tell whether a version is one for clients: not once it is gone, nor if it failed to load with the server."""
    has_failed = row.state is VersionState.FAILED and not row.is_loaded and row.at_start
    return row.state not in _GONE and not has_failed


def listed(limit: int, offset: int, shown: Shown) -> Write:
    """It lists the models from the one with the number `offset` on, `limit` of them at most, each with the URL of its
    default version.
    """

    def write(answer: Answer) -> tuple[int, object]:
        assert isinstance(answer, Listing), answer
        chosen: dict[str, VersionStatus] = {}
        for row in filter(is_known, answer.versions):
            if row.model not in chosen or row.is_default:
                chosen[row.model] = row
        names, following = page(sorted(chosen), limit, offset, names_end=True)
        models = [{"modelName": wire_text(name), "modelUrl": _url(chosen[name], shown)} for name in names]
        return 200, {**following, "models": models}

    return write


def ready(model: str) -> Write:
    """It says whether a model has any worker."""

    def write(answer: Answer) -> tuple[int, object]:
        assert isinstance(answer, ModelDescriptions), answer
        return 200, {"name": wire_text(model), "ready": any(one.instances for one in answer.models)}

    return write


def described(shown: Shown, is_all: bool = False, is_customized: bool = False) -> Write:
    """It describes every version, or the one that was asked for: without a name the default one."""

    def write(answer: Answer) -> tuple[int, object]:
        assert isinstance(answer, ModelDescriptions), answer
        rows = list(filter(is_known, answer.statuses))
        if not rows:
            raise _not_loaded(answer.statuses)
        if not is_all:
            rows = [row for row in rows if row.version == answer.default][:1] or rows[:1]
        known = {one.spec.version: one for one in answer.models}
        documents = [_described(row, known.get(row.version), shown) for row in rows]
        if is_customized:
            documents[0]["customizedMetadata"] = _metadata(answer.said)
        return 200, documents

    return write


def _not_loaded(rows: Sequence[VersionStatus]) -> ServeError:
    """Return the refusal of a description of what did not load with the server, or is gone."""
    model, why = rows[0].model, rows[0].reason
    words = f"Model '{model}' did not load, and is not there. {why}"
    return ServeError(Code.NOT_FOUND, words, info=ErrorInfo.of(reasons.UNKNOWN_MODEL, model=model))


def _metadata(said: Payload | None) -> dict[str, Any]:
    """Return what a handler says of itself, an empty object where that is none."""
    try:
        parts = said.parts if isinstance(said, Raw) else ()
        found = json.loads(bytes(parts[0].data)) if parts else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _described(row: VersionStatus, model: ModelDescription | None, shown: Shown) -> dict[str, Any]:
    about: dict[str, Any] = {
        "modelName": wire_text(row.model),
        "modelVersion": wire_text(row.version),
        "modelUrl": _url(row, shown),
        "runtime": "python",
    }
    if model is None:
        return about | {"loadedAtStartup": row.at_start, "workers": []}
    spec, settings = model.spec, _settings(model)
    config = _mapping(settings.get("model_yaml_config"))
    groups = model.groups or spec.groups
    device = groups[0].device if groups else Device.CPU
    about["runtime"] = str(_mapping(settings.get("manifest")).get("runtime", "python"))
    about |= {
        "minWorkers": sum(group.minimum for group in groups),
        "maxWorkers": sum(group.ceiling for group in groups),
        "batchSize": spec.batching.max_rows,
        "maxBatchDelay": _delay(row, model, config),
        "responseTimeout": round(spec.limits.run_deadline or 0),
        "startupTimeout": round(spec.limits.startup_deadline or 0),
        "maxRetryTimeoutInSec": _number(config, "maxRetryTimeoutInSec", 300),
        "clientTimeoutInMills": _number(config, "clientTimeoutInMills", 0),
        "parallelType": "",
        "parallelLevel": 0,
        "deviceType": "cpu" if device is Device.CPU else "gpu",
    }
    if device is not Device.CPU and "deviceIds" in config:
        about["deviceIds"] = list(groups[0].device_ids)
    return about | {
        "continuousBatching": "slots" in settings,
        "useJobTicket": config.get("useJobTicket") is True,
        "useVenv": config.get("useVenv") is True,
        **_sequences(config, isinstance(spec.scheduling, SequenceRules)),
        "loadedAtStartup": row.at_start,
        "workers": _workers(row, model),
        "jobQueueStatus": {
            "remainingCapacity": max(spec.limits.queue_items - model.queued, 0),
            "pendingRequests": model.queued,
        },
    }


def _sequences(config: Mapping[str, Any], is_stateful: bool) -> dict[str, Any]:
    """Return what is said of sequences: zeros of a model whose file names no idle time for them."""
    idle = _number(config, "sequenceMaxIdleMSec", 0)
    names = ("sequenceMaxIdleMSec", "sequenceTimeoutMSec", "maxNumSequence", "maxSequenceJobQueueSize")
    if idle <= 0:
        return {"stateful": is_stateful, **dict.fromkeys(names, 0)}
    return {
        "stateful": is_stateful,
        "sequenceMaxIdleMSec": idle,
        "sequenceTimeoutMSec": max(_number(config, "sequenceTimeoutMSec", 0), 0),
        "maxNumSequence": max(_number(config, "maxNumSequence", 1), 1),
        "maxSequenceJobQueueSize": max(_number(config, "maxSequenceJobQueueSize", 1), 1),
    }


def _workers(row: VersionStatus, model: ModelDescription) -> list[dict[str, Any]]:
    """Return the open workers and, behind them, those that are being opened: of these the process and the moment of
    their start are not known yet, and the keys are there as in the original.
    """
    opening = row.least if row.state is VersionState.LOADING else model.opening
    highest = max((one.number for one in model.instances), default=-1)
    return [
        *map(_worker, model.instances),
        *(
            {
                "id": str(_FIRST_ID + highest + each),
                "startTime": "",
                "status": "UNLOADING",
                "memoryUsage": 0,
                "pid": -1,
                "gpu": bool(model.spec.groups) and model.spec.groups[0].device is not Device.CPU,
                "gpuUsage": "N/A",
            }
            for each in range(1, opening + 1)
        ),
    ]


def _worker(one: InstanceStatus) -> dict[str, Any]:
    process = {} if one.process is None else {"pid": one.process}
    return {
        "id": str(_FIRST_ID + one.number),
        "startTime": moment(one.started),
        "status": "READY",
        "memoryUsage": one.memory or 0,
        **process,
        "gpu": one.device is not Device.CPU,
        "gpuUsage": "N/A",
    }


def _delay(row: VersionStatus, model: ModelDescription, config: Mapping[str, Any]) -> int:
    """Return the milliseconds that a batch waits; where nothing is batched, what was asked for."""
    rules = model.spec.scheduling
    if isinstance(rules, Dynamic | SequenceRules) and rules.max_delay:
        return round(rules.max_delay * 1000)
    over = {} if row.source is None else row.source.over
    if "max_batch_delay" in over:
        return int(over["max_batch_delay"].value)
    return _number(config, "maxBatchDelay", _DELAY_MS)


def _settings(model: ModelDescription) -> Mapping[str, Any]:
    return {} if model.spec.handler is None else model.spec.handler.settings


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(config: Mapping[str, Any], key: str, default: int) -> int:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _url(row: VersionStatus, shown: Shown) -> str:
    return "" if row.source is None else wire_text(shown(row.source.uri))
