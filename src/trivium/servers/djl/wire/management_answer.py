"""Writes the answers to requests that manage models.

Source: spec sheet `djl`, sections 5.1 to 5.3: indented JSON, members without a value left out.
"""

from collections.abc import Callable
from typing import Any

from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import JSON, uncached_lines
from trivium.codecs.json_documents import indented, moment
from trivium.servers.djl.wire.answer import health_of
from trivium.servers.djl.wire.errors import DESCRIBES, MANAGES, refuse
from trivium.settings.arguments import page
from trivium.types.errors import ServeError, unwritable
from trivium.types.operations import (
    Answer,
    InstanceStatus,
    Listing,
    ModelDescription,
    ModelDescriptions,
    ResponsePart,
    VersionStatus,
)
from trivium.types.payload import Payload
from trivium.types.spec import Device, InstanceGroup
from trivium.types.state import VersionState
from trivium.types.wire import HttpAnswer

ManagementAnswer = Answer | Payload
Write = Callable[[ManagementAnswer], tuple[int, object]]
"""Makes status and document of an answer. Raises ServeError for one that refuses what was asked."""

_STATES = {VersionState.READY: "READY", VersionState.COLD: "READY", VersionState.FAILED: "FAILED"}
_GONE = (VersionState.UNLOADED, VersionState.UNLOADING)


class ManagementEncoder:
    """Writes one answer as `write` says. `exact`: errors are in the words of the original."""

    __slots__ = ("_exact", "_request_id", "_write")

    def __init__(self, request_id: str, write: Write, exact: bool) -> None:
        self._request_id = request_id
        self._write = write
        self._exact = exact

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer."""
        if part.error is not None:
            return self._refused(part.error)
        try:
            answer = part.payload if part.answer is None else part.answer
            assert part.final, "management is answered by one part"
            assert answer is not None, "it holds something"
            status, document = self._write(answer)
            body = indented(document)
        except Exception as error:
            return self._refused(unwritable(error))
        return HttpAnswer(status, uncached_lines(self._request_id) + JSON, (body,), len(body))

    def _refused(self, error: ServeError) -> HttpAnswer:
        verb = DESCRIBES if self._write is described else MANAGES
        return refuse(error, self._request_id, self._exact, verb)


def registered(name: str, waits: bool, is_workflow: bool) -> Write:
    """It says that a model is registered, or will be: under the name that it has, else under that which was asked."""
    what = "Workflow" if is_workflow else "Model"
    text = "registered." if waits else "registration scheduled."

    def write(answer: ManagementAnswer) -> tuple[int, object]:
        rows = answer.versions if isinstance(answer, Listing) else ()
        own = wire_text(rows[0].model if rows else name)
        return 200 if waits else 202, {"status": f'{what} "{own}" {text}'}

    return write


def status(text: str) -> Write:
    """Return what says a text, whatever the answer."""
    return lambda answer: (200, {"status": text})


def listed(limit: int, offset: int, is_workflow: bool) -> Write:
    """It lists the endpoints from the one with the number `offset` on, `limit` of them at most. Of workflows the token
    is there even where no more follow.
    """

    def write(answer: ManagementAnswer) -> tuple[int, object]:
        assert isinstance(answer, Listing), answer
        rows = [
            row for row in answer.versions if row.state not in _GONE and not (is_workflow and row.is_member)
        ]
        names = list(dict.fromkeys(row.model for row in rows))
        chosen, following = page(names, limit, offset)
        shown = [row for row in rows if row.model in chosen]
        if is_workflow:
            token = {"nextPageToken": str(min(offset + limit, len(names)))}
            return 200, {
                **token,
                "workflows": [_present(workflowName=row.model, version=_version(row)) for row in shown],
            }
        return 200, {**following, "models": [_row(row) for row in shown]}

    return write


def described(answer: ManagementAnswer) -> tuple[int, object]:
    """It describes every version that was asked for."""
    assert isinstance(answer, ModelDescriptions), answer
    known = {one.spec.version: one for one in answer.models}
    return 200, [_endpoint(row, known.get(row.version)) for row in answer.statuses]


def _row(row: VersionStatus) -> dict[str, Any]:
    status = _STATES.get(row.state, "PENDING")
    return _present(modelName=row.model, version=_version(row), modelUrl=_url(row), status=status)


def _endpoint(row: VersionStatus, model: ModelDescription | None) -> dict[str, Any]:
    """Return a workflow with its models; a plain model is a workflow of one."""
    members = None if model is None else model.members
    rows: list[tuple[VersionStatus, ModelDescription | None]] = [(row, model)]
    if members is not None and members.models:
        rows = list(zip(members.statuses, members.models, strict=True))
    return _present(workflowName=row.model, version=_version(row), models=[_described(*one) for one in rows])


def _described(row: VersionStatus, model: ModelDescription | None) -> dict[str, Any]:
    version = _version(row)
    about: dict[str, Any] = {"modelName": row.model, "version": version, "modelUrl": _url(row)}
    if model is not None:
        groups = model.groups or model.spec.groups
        about |= {
            "batchSize": model.spec.batching.max_rows,
            "maxBatchDelayMillis": round(model.spec.dynamic.max_delay * 1000),
            "maxIdleSeconds": round(max((group.idle_seconds for group in groups), default=0)),
            "queueSize": model.spec.limits.queue_items,
            "requestInQueue": model.queued,
        }
    about["status"] = _health(row, model)
    about["loadedAtStartup"] = row.at_start
    if model is not None:
        about["workerGroups"] = [_group(group, model.instances) for group in model.groups]
    return _present(**about)


def _health(row: VersionStatus, model: ModelDescription | None) -> str:
    if row.state is VersionState.READY and model is not None:
        return "Healthy" if all(_is_whole(group, model) for group in model.groups) else "Unhealthy"
    return health_of(row.state)


def _is_whole(group: InstanceGroup, model: ModelDescription) -> bool:
    return len(_members(group, model.instances)) >= group.minimum


def _members(group: InstanceGroup, instances: tuple[InstanceStatus, ...]) -> list[InstanceStatus]:
    """Return the instances of a group: those on its devices."""
    return [
        one
        for one in instances
        if one.device is group.device and (not group.device_ids or one.device_id in group.device_ids)
    ]


def _group(group: InstanceGroup, instances: tuple[InstanceStatus, ...]) -> dict[str, Any]:
    number = group.device_ids[0] if group.device_ids else -1 if group.device is Device.CPU else 0
    return {
        "device": {"deviceType": group.device.value, "deviceId": number},
        "minWorkers": group.minimum,
        "maxWorkers": group.ceiling,
        "workers": [
            {"id": one.number, "startTime": moment(one.started), "status": "READY"}
            for one in _members(group, instances)
        ],
    }


def _version(row: VersionStatus) -> str | None:
    return row.version if row.is_versioned and row.version else None


def _url(row: VersionStatus) -> str | None:
    return None if row.source is None else wire_text(row.source.uri)


def _present(**members: Any) -> dict[str, Any]:
    """Return an object without the members that have no value."""
    return {
        name: wire_text(value) if isinstance(value, str) else value
        for name, value in members.items()
        if value is not None
    }
