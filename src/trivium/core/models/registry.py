"""Every known version of every model: its state, and the loaded model that serves it.

It answers who serves a request; it loads nothing. States move by the table in `types/state`.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from trivium.codecs.near_names import near
from trivium.core.models.aliases import Aliases
from trivium.core.models.served_model import ServedModel
from trivium.core.request import Item
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Sink
from trivium.types.operations import Infer, Listing, VersionStatus
from trivium.types.payload import PayloadKind
from trivium.types.registered_names import named_version
from trivium.types.running import ItemId
from trivium.types.schedules import Graph
from trivium.types.sources import ModelSource
from trivium.types.spec import ModelSpec, version_order
from trivium.types.state import VERSION_MOVES, VersionState, move
from trivium.types.statistics import StatisticsReport


@dataclass(slots=True)
class Record:
    """One version of a model, with what is known of it. `loaded` serves while READY or COLD; `spec` is None for a model
    that could not be read; `source` is what registered it, if somebody asked for that. One that has `vanished` is
    forgotten once it is unloaded. `is_member`: graphs bring it, and it goes with the last of them.
    """

    name: str
    version: str
    spec: ModelSpec | None = None
    state: VersionState = VersionState.REGISTERED
    reason: str = ""
    loaded: ServedModel | None = None
    source: ModelSource | None = None
    vanished: bool = False
    is_member: bool = False

    @property
    def asked(self) -> ModelSource | None:
        """Return what asked for it, or the place of its files; None for a model that could not be read."""
        if self.source is not None or self.spec is None:
            return self.source
        return ModelSource(str(self.spec.shown_root or self.spec.root))

    @property
    def least(self) -> int:
        """Return how many instances it always has, or will have once it is loaded."""
        groups = () if self.spec is None else self.spec.groups
        return sum(group.minimum for group in (groups if self.loaded is None else self.loaded.groups))

    @property
    def is_coming(self) -> bool:
        """Is it being loaded, or about to be, and does nothing serve in its place meanwhile? What is known by its name
        alone is not.
        """
        is_begun = self.state in (VersionState.REGISTERED, VersionState.LOADING)
        return is_begun and self.spec is not None and self.loaded is None and not self.vanished

    def move(self, to: VersionState, reason: str = "") -> None:
        """Move it to another state; only the table calls this."""
        self.state = move(VERSION_MOVES, self.state, to)
        self.reason = reason

    def blamed(self, error: ServeError) -> ServeError:
        """Why it could not be loaded, with its version as a fact."""
        if error.info is None:
            told = {"model": self.name, "version": self.version, "text": error.message}
            error.info = ErrorInfo.of(reasons.NOT_LOADED, **told)
        return error


class VersionTurns:
    """The versions of a model that take turns at requests which name none."""

    def __init__(self, versions: Sequence[ServedModel]) -> None:
        self._versions = itertools.cycle(versions)

    def submit(self, number: ItemId, infer: Infer, sink: Sink) -> Item:
        """See `ServedModel.submit`."""
        return next(self._versions).submit(number, infer, sink)


class Registry:
    """Used on the loop only."""

    def __init__(self) -> None:
        self._models: dict[str, dict[str, Record]] = {}
        self._pinned: dict[str, str] = {}  # model -> the version that was chosen for requests without one
        self._latest: dict[str, ServedModel] = {}
        self._aliases = Aliases()
        self._adaptable: dict[str, ServedModel] = {}  # those that generate, and may have adapters
        self.routes: dict[str, ServedModel | VersionTurns] = {}
        """Who takes a request that names no version, by model; read only."""
        self.at_start: frozenset[str] = frozenset()
        """The models that the server was started with."""

    def record(self, name: str, version: str) -> Record:
        """The version's record, made on first sight."""
        return self._models.setdefault(name, {}).setdefault(version, Record(name, version))

    def records(self, name: str = "") -> list[Record]:
        """Return the versions of one model or of all, sorted by model, then version number."""
        names = [name] if name else sorted(self._models)
        return [
            record
            for model in names
            for record in sorted(self._models.get(model, {}).values(), key=lambda r: version_order(r.version))
        ]

    def forget(self, record: Record) -> None:
        """The version is no longer in the repository and serves no more. No effect once it has been forgotten."""
        versions = self._models.get(record.name, {})
        if versions.get(record.version) is not record:
            return
        del versions[record.version]
        if self._pinned.get(record.name) == record.version:
            del self._pinned[record.name]
        if not versions:
            del self._models[record.name]

    def pin(self, name: str, version: str) -> None:
        """Choose what serves requests without a version; an empty one goes back to the greatest. Raises as
        `serving`.
        """
        self.serving(name, version)
        if version:
            self._pinned[name] = version
        else:
            self._pinned.pop(name, None)
        self._choose_latest(name)

    def keep_default(self, name: str) -> None:
        """Have what serves requests without a version go on with that, whatever versions are added."""
        latest = self._latest.get(name)
        if latest is not None and name not in self._pinned:
            self._pinned[name] = latest.spec.version

    def default_version(self, name: str) -> str:
        """Return the version that serves requests without one; empty where none does."""
        latest = self._latest.get(name)
        return "" if latest is None else latest.spec.version

    def served(self) -> tuple[ModelSpec, ...]:
        """Return the specs of what serves requests without a version, by the models' names."""
        return tuple(self._latest[name].spec for name in sorted(self._latest))

    def publish(self, record: Record, loaded: ServedModel) -> ServedModel | None:
        """Let `loaded` serve the version from now on; returns the one that did, to be drained."""
        before, record.loaded = record.loaded, loaded
        self._choose_latest(record.name)
        return before

    def withdraw(self, record: Record) -> ServedModel | None:
        """Nothing serves the version from now on; returns what did."""
        before, record.loaded = record.loaded, None
        self._choose_latest(record.name)
        return before

    def serving(self, name: str, version: str = "") -> ServedModel:
        """Return who serves a request. Raises NOT_FOUND or NOT_READY, saying what there is instead."""
        if not version:
            latest = self._latest.get(name)
            if latest is not None:
                return latest
        versions = self._models.get(name)
        if not name and (only := self._only()):
            return self.serving(only, version)
        if versions is None and len(meant := self._meant(name)) == 1:
            return self.serving(meant[0], version)
        if not name:
            raise ServeError(
                Code.INVALID,
                f"The request names no model, and there is not just one. {self._near(name)}",
                info=ErrorInfo.of(reasons.UNKNOWN_MODEL, model=name),
            )
        if versions is None:
            raise ServeError(
                Code.NOT_FOUND,
                f"There is no model '{name}'. {self._near(name)}"
                if not meant
                else f"'{name}' is a name of several models: {', '.join(sorted(meant)[:20])}. Name one of them.",
                info=ErrorInfo.of(reasons.UNKNOWN_MODEL, model=name),
            )
        record = versions.get(version) if version else self.records(name)[-1]
        if record is None:
            there = ", ".join(r.version for r in self.records(name))
            raise ServeError(
                Code.NOT_FOUND,
                f"Model '{name}' has no version {version}; it has: {there}.",
                info=ErrorInfo.of(reasons.UNKNOWN_VERSION, model=name, version=version),
            )
        if record.loaded is None:
            why = f": {record.reason}" if record.reason else "."
            raise ServeError(
                Code.NOT_READY,
                f"{named_version(name, record.version)} does not serve; it is {record.state.value}{why}",
                info=ErrorInfo.of(reasons.NOT_SERVING, model=name, version=version, state=record.state.value),
            )
        return record.loaded

    def own_name(self, name: str) -> str:
        """Return what a model calls itself that a request calls so; the same for what is no alias of just one."""
        meant = () if name in self._models else self._meant(name)
        return meant[0] if len(meant) == 1 else name

    def adapter_meant(self, name: str) -> str:
        """Return the adapter by whose name a request calls a model; empty for a name that is the model's own."""
        if name in self._models or self._aliases.meant(name):
            return ""
        return name if len(self._adapted(name)) == 1 else ""

    def _meant(self, name: str) -> tuple[str, ...]:
        """Return the models that have an alias, or else an adapter, of this name."""
        return self._aliases.meant(name) or self._adapted(name)

    def _adapted(self, name: str) -> tuple[str, ...]:
        found = self._adaptable.items()
        return tuple(model for model, latest in found if any(call.topic == name for call in latest.standing))

    def coming(self, name: str, version: str = "") -> Record | None:
        """Return the version that will serve a request once it is loaded; None where one serves it now, and where none
        is being loaded.
        """
        name = name or self._only()
        records = [one for one in self.records(name) if version in ("", one.version)] if name else []
        if any(record.loaded is not None for record in records):
            return None
        return next((record for record in reversed(records) if record.is_coming), None)

    def known(self, name: str, version: str = "") -> Record:
        """Return the record of a version, whether it serves or not; without a version the greatest one's. Raises
        NOT_FOUND.
        """
        records = [record for record in self.records(name) if version in ("", record.version)]
        if not name or not records:
            self.serving(name, version)
            raise ServeError(Code.NOT_FOUND, f"There is no model '{name}'. {self._near(name)}")
        return records[-1]

    def ready_versions(self, name: str) -> tuple[str, ...]:
        """Ascending."""
        return tuple(record.version for record in self.records(name) if record.loaded is not None)

    def listing(self, name: str = "", version: str = "") -> Listing:
        """The state of every version, or of one; of one that is loaded and cannot serve: failed, and why."""
        return Listing(tuple(self._status(one) for one in self.records(name) if version in ("", one.version)))

    def report(self, name: str = "", version: str = "") -> StatisticsReport:
        """Return what the version, those of the model, or all count that serve. Raises like `serving`."""
        if version:
            return StatisticsReport((self.serving(name, version).report(),))
        if name:
            self.serving(name)
        rows = [r.loaded.report() for r in self.records(name) if r.loaded is not None]
        return StatisticsReport(tuple(rows))

    def lacking(self, loaded: ServedModel) -> str:
        """Why a loaded model cannot serve all the same: it was given up, none of its instances can be opened, or it is
        a graph whose members do not serve. Empty if it can.
        """
        if why := loaded.obstacle():
            return why
        graph = loaded.spec.scheduling
        steps = graph.steps if isinstance(graph, Graph) else ()
        for step in (one for one in steps if one.model):
            try:
                reason = self.lacking(self.serving(step.model, step.version))
            except ServeError as error:
                reason = error.message
            if reason:
                return f"It depends on model '{step.model}'. {reason}"
        return ""

    def _status(self, record: Record) -> VersionStatus:
        why = "" if record.loaded is None else self.lacking(record.loaded)
        state, reason = record.state, record.reason
        if why and state is not VersionState.COLD:
            state, reason = VersionState.FAILED, why
        is_versioned = record.spec is None or record.spec.is_versioned
        at_start = record.name in self.at_start
        adaptable = self._adaptable.get(record.name)
        return VersionStatus(
            record.name,
            record.version,
            state,
            reason,
            record.asked,
            is_versioned,
            at_start,
            record.is_member,
            record.loaded is not None,
            record.least,
            record.loaded is not None and record.loaded is self._latest.get(record.name),
            frozenset() if record.loaded is None else record.loaded.takes,
            () if record.loaded is None else record.loaded.spec.aliases,
            0 if record.loaded is None else record.loaded.spec.context,
            () if adaptable is None or adaptable is not record.loaded else adaptable.standing,
        )

    def _only(self) -> str:
        """Return the only model of those that the server was started with, or that there is; empty where there are
        several.
        """
        for names in (self.at_start & self._models.keys(), self._models.keys()):
            if len(names) == 1:
                return next(iter(names))
        return ""

    def _choose_latest(self, name: str) -> None:
        ready = [record.loaded for record in self.records(name) if record.loaded is not None]
        pinned = [loaded for loaded in ready if loaded.spec.version == self._pinned.get(name)]
        if not ready:
            self._latest.pop(name, None)
            self.routes.pop(name, None)
            self._adaptable.pop(name, None)
            self._aliases.put(name, ())
            return
        latest = self._latest[name] = pinned[-1] if pinned else ready[-1]
        in_turns = len(ready) > 1 and not pinned and latest.spec.in_turns
        self.routes[name] = VersionTurns(ready) if in_turns else latest
        self._aliases.put(name, latest.spec.aliases)
        self._adaptable.pop(name, None)
        if latest.spec.functions and PayloadKind.GENERATE in latest.takes:
            self._adaptable[name] = latest

    def _near(self, name: str) -> str:
        if not self._models:
            return "This server has no models."
        meant = near(name, self._models)
        if meant:
            return f"Did you mean '{meant}'?"
        return f"There are: {', '.join(sorted(self._models)[:20])}."
