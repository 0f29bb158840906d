"""Makes the documents of the console from what the core answers: one truth in other words, nothing counted. Pure."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from trivium.codecs.field_words import field_words
from trivium.codecs.spec_rows import named_text, spec_rows
from trivium.types.console_facts import ConsoleFacts, ExampleRequest
from trivium.types.findings import Finding
from trivium.types.log_settings import LogSettings
from trivium.types.observing import InstanceDeath, Timeline, VersionLoad, WorkerSaid
from trivium.types.operations import ModelDescription, Observation, Snapshot, VersionStatus
from trivium.types.spec import ModelSpec, Origin, TensorSpec
from trivium.types.state import ServerState, VersionState
from trivium.types.statistics import VersionStatistics
from trivium.wires.operate.schema import (
    DeathRow,
    FindingRow,
    InstanceRow,
    Instances,
    InstanceTally,
    ListenerRow,
    LogRow,
    Logs,
    ModelPage,
    ModelRow,
    OptionRow,
    Overview,
    Requests,
    ServerRow,
    SettingRow,
    SettingsPage,
    TensorRow,
    TimelineRow,
    Totals,
    TryIt,
    VersionRow,
)
from trivium.wires.operate.window import Counts, Pace, PaceWindow, merged

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_NO_MODELS = "No model is served yet."
_ADD_ONE = (
    "Start the server with the path of a model, `trivium serve PATH`, or put one into the folder that it serves, and "
    "load it by its name."
)


class ConsoleReader:
    """Reads snapshots for one server, whose name and version clients see; `window` keeps what the last ones counted."""

    def __init__(self, name: str, version: str, facts: ConsoleFacts, window: PaceWindow) -> None:
        self._name = name
        self._version = version
        self._facts = facts
        self._window = window

    def overview(self, snapshot: Snapshot, is_signed_in: bool = False) -> Overview:
        """Return the server, and a row for each model, by name."""
        rows = tuple(self._rows(snapshot).values())
        sentence, mend = _trouble(snapshot, bool(rows))
        statistics = snapshot.statistics.versions
        server = ServerRow(
            self._name,
            self._version,
            self._facts.profile,
            snapshot.started,
            snapshot.readiness.ready,
            sentence,
            mend,
            is_signed_in,
        )
        totals = Totals(
            sum(map(_ended, statistics)),
            sum(each.fail.count for each in statistics),
            sum(each.queued_items for each in statistics),
            self._connections(),
        )
        return Overview(server, totals, rows)

    def model(self, seen: Observation) -> ModelPage:
        """Return all that is known of the model that was asked for."""
        assert seen.described is not None, "it was asked for"
        statuses, described = seen.described.statuses, seen.described.models
        row = self._rows(seen.snapshot)[statuses[0].model]
        shown = next((each for each in described if each.spec.version == row.version), None)
        spec = shown.spec if shown is not None else described[-1].spec if described else None
        source = statuses[-1].source
        versions = (VersionRow(each.version, each.state.value, each.reason or None) for each in statuses)
        values = {name: getattr(row, name) for name in ModelRow.__struct_fields__}
        return ModelPage(
            **values,
            versions=tuple(versions),
            origin=_root(spec) if spec is not None else source.uri if source is not None else "",
            inputs=() if spec is None else _tensors(spec, spec.inputs),
            outputs=() if spec is None else _tensors(spec, spec.outputs),
            try_it=None if spec is None else _try_it(self._facts.example(spec)),
            configuration=() if spec is None else tuple(_configuration(spec)),
            findings=tuple(_findings(spec, statuses)),
        )

    def settings(self, seen: Observation) -> SettingsPage:
        """Return what the server was started with, and what it takes."""
        facts = self._facts
        return SettingsPage(
            tuple(OptionRow(each.name, each.value, each.where or None) for each in facts.settings),
            tuple(ListenerRow(name, place) for name, place in facts.places.items()),
            log_level(seen.log),
            {
                "resident_bytes": seen.memory.get("", 0),
                "worker_bytes": sum(size for name, size in seen.memory.items() if name),
            },
            self._connections(),
        )

    def _connections(self) -> int:
        return sum(count() for count in self._facts.connections.values())

    def _rows(self, snapshot: Snapshot) -> Mapping[str, ModelRow]:
        statuses: dict[str, list[VersionStatus]] = {}
        for status in snapshot.listing.versions:
            statuses.setdefault(status.model, []).append(status)
        counted: defaultdict[str, list[VersionStatistics]] = defaultdict(list)
        for each in snapshot.statistics.versions:
            counted[each.model].append(each)
        loads: defaultdict[str, list[VersionLoad]] = defaultdict(list)
        for load in snapshot.loads:
            loads[load.model].append(load)
        counts = {
            name: Counts(
                sum(map(_ended, counted[name])), merged(one.success_buckets for one in counted[name])
            )
            for name in statuses
        }
        paces = self._window.take(counts, snapshot.now)
        return {
            name: _row(versions, counted[name], loads[name], paces[name])
            for name, versions in statuses.items()
        }


def _row(
    statuses: Sequence[VersionStatus],
    counted: Sequence[VersionStatistics],
    loads: Sequence[VersionLoad],
    pace: Pace,
) -> ModelRow:
    shown = next((each for each in statuses if each.is_default), statuses[-1])
    opening = sum(load.opening for load in loads)
    if not loads and shown.state is VersionState.LOADING:
        opening = shown.least
    return ModelRow(
        shown.model,
        shown.version,
        shown.state.value,
        _reason(shown, statuses),
        next((load.engine for load in loads), None),
        sum(map(_ended, counted)),
        sum(each.fail.count for each in counted),
        pace.rate,
        pace.p50,
        pace.p99,
        sum(each.queued_items for each in counted),
        sum(load.running for load in loads),
        InstanceTally(sum(load.open for load in loads), opening, sum(load.lack for load in loads)),
        pace.history,
    )


def _reason(shown: VersionStatus, statuses: Sequence[VersionStatus]) -> str | None:
    """Return why the version that serves is in its state, else why another one does not serve."""
    if shown.reason:
        return shown.reason
    failed = next((each for each in statuses if each.state is VersionState.FAILED and each.reason), None)
    return None if failed is None else f"Version {failed.version} is failed. {failed.reason}"


def _ended(counted: VersionStatistics) -> int:
    return counted.success.count + counted.fail.count


def _trouble(snapshot: Snapshot, has_models: bool) -> tuple[str | None, str | None]:
    """Return what is wrong with the server, in a sentence, and what mends it; nothing where nothing is."""
    readiness = snapshot.readiness
    if readiness.ready:
        return (None, None) if has_models else (_NO_MODELS, _ADD_ONE)
    if snapshot.state is ServerState.STARTING:
        loaded = sum(each.is_loaded for each in snapshot.listing.versions)
        of_all = len(snapshot.listing.versions)
        return (
            f"The server is starting: {loaded} of {of_all} versions are loaded.",
            "Wait; it goes on by itself.",
        )
    if snapshot.state is not ServerState.SERVING:
        return "The server is going down.", "Send requests elsewhere, or start it again."
    if readiness.is_passing:
        return readiness.reason, "Wait; it goes on by itself."
    failed = next((each.model for each in snapshot.listing.versions if each.state is VersionState.FAILED), "")
    return readiness.reason, f"Correct what the reason names, then load '{failed}' again." if failed else None


def _root(spec: ModelSpec) -> str:
    return str(spec.shown_root or spec.root)


def _tensors(spec: ModelSpec, tensors: Sequence[TensorSpec]) -> tuple[TensorRow, ...]:
    first = (-1,) * spec.batching.batch_axis
    return tuple(TensorRow(each.name, each.wire, (*first, *each.dims), each.optional) for each in tensors)


def _try_it(example: ExampleRequest | None) -> TryIt | None:
    if example is None:
        return None
    body: object = example.body or None
    if example.body:
        try:
            body = msgspec.Raw(msgspec.json.encode(json.loads(example.body)))
        except (ValueError, RecursionError):
            body = example.body
    kind = example.content_type or ("application/json" if example.body else "")
    return TryIt(
        example.kinds, example.method if body else "POST", example.own_path or example.path, kind, body
    )


def _configuration(spec: ModelSpec) -> Iterator[SettingRow]:
    for field, value in spec_rows(spec):
        origin = spec.origin.get(field)
        if origin is not None:
            yield SettingRow(field_words(field), named_text(spec, value), named_text(spec, where(origin)))


def where(origin: Origin) -> str:
    """Return a place, with its line, and without it with the key there."""
    if origin.line is not None:
        return f"{origin.file}:{origin.line}"
    return f"{origin.file}, {origin.key}" if origin.key else origin.file


def _findings(spec: ModelSpec | None, statuses: Sequence[VersionStatus]) -> Iterator[FindingRow]:
    for status in statuses:
        if status.state is VersionState.FAILED and status.reason:
            yield FindingRow("error", status.reason, None, "Correct it, and load the model again.")
    for finding in () if spec is None else spec.reports:
        yield _finding(finding)


def _finding(finding: Finding) -> FindingRow:
    text = f"{finding.key}: {finding.found}" if finding.key else finding.found
    if finding.expected:
        text += f"; expected {finding.expected}"
    place = finding.file if finding.line is None else f"{finding.file}:{finding.line}"
    return FindingRow(finding.severity.value, text, place, finding.hint or None)


def instances(seen: Observation) -> Instances:
    """Return the instances of the model that was asked for, each with how it died before."""
    assert seen.described is not None, "it was asked for"
    model = seen.described.statuses[0].model
    deaths: dict[tuple[str, str], list[DeathRow]] = {}
    for death in seen.deaths:
        deaths.setdefault((death.version, death.instance), []).append(_death(death))
    rows = [row for each in seen.described.models for row in _instance_rows(each, deaths)]
    states = {load.version: _state_of_gone(load) for load in seen.snapshot.loads if load.model == model}
    lost = (
        InstanceRow(name, version, "", states.get(version, "closed"), deaths=tuple(known))
        for (version, name), known in deaths.items()
    )
    return Instances((*rows, *lost))


def _state_of_gone(load: VersionLoad) -> str:
    """Say what becomes of the places of instances that have died."""
    return "starting" if load.opening else "lost" if load.lack else "closed"


def _instance_rows(
    described: ModelDescription, deaths: dict[tuple[str, str], list[DeathRow]]
) -> Iterator[InstanceRow]:
    """Yield those that are open, and take their deaths away."""
    version = described.spec.version
    for each in described.instances:
        device = each.device.value if each.device.value == "cpu" else f"{each.device.value} {each.device_id}"
        known = tuple(deaths.pop((version, each.name), ()))
        state = "busy" if each.is_busy else "ready"
        yield InstanceRow(each.name, version, device, state, each.process, each.memory, each.started, known)


def _death(death: InstanceDeath) -> DeathRow:
    return DeathRow(death.when, death.cause, death.last_lines)


def logs(seen: Observation) -> Logs:
    """Return the last lines of the model that was asked for."""
    return Logs(tuple(map(log_row, seen.lines)))


def log_row(line: WorkerSaid) -> LogRow:
    """Return a line that an instance has printed."""
    return LogRow(line.when, line.model, line.version, line.instance, line.text)


def requests(seen: Observation) -> Requests:
    """Return how requests went that ended while somebody listened."""
    kept = seen.timelines
    slowest, failed, sample = (
        tuple(map(timeline_row, each)) for each in (kept.slowest, kept.failed, kept.sample)
    )
    return Requests(slowest, failed, sample, kept.since)


def timeline_row(line: Timeline) -> TimelineRow:
    """Return how one request went."""
    return TimelineRow(
        id=line.id,
        model=line.model,
        version=line.version,
        received=line.received,
        queue_s=round(line.queued, 6),
        input_s=round(line.reading, 6),
        compute_s=round(line.computing, 6),
        output_s=round(line.writing, 6),
        total_s=round(line.total, 6),
        batch_size=line.together,
        batched_with=line.beside,
        status=line.code or "ok",
        error=line.error or None,
    )


def log_level(settings: LogSettings) -> str:
    """Return the least level that is written, by its name."""
    written = (settings.verbose > 0, settings.info, settings.warning)
    return next((name for name, is_on in zip(_LEVELS, written, strict=False) if is_on), "ERROR")
