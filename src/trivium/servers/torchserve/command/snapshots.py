"""Snapshots of a TorchServe: its properties and the models that it has, written so that the next start resumes them.

Decides when one is written: once the models of the start are there, when something has changed since, and at the end.
One that cannot be written is a line of the log. Source: spec sheet `torchserve`, section 2.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import os
import re
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

from trivium.codecs.java_properties import written
from trivium.core.server import Server
from trivium.settings.sources import Sources
from trivium.types.errors import ServeError
from trivium.types.operations import DescribeAll, ModelDescription, ModelDescriptions, VersionStatus
from trivium.types.spec import Dynamic
from trivium.types.state import VersionState

_log = logging.getLogger("org.pytorch.serve.snapshot.SnapshotManager")
LOOK_SECONDS = 1.0
WHOLE_LOOKS = 10
"""Looks of which one is at whole descriptions: they cost more than a listing, which has all but greatest numbers of
workers.
"""
KEPT = 50
"""Snapshots that a folder keeps: the newest, whichever start wrote them."""
_NAME = re.compile(r"\d{17}-(startup|snapshot|shutdown)\.cfg")
_REPLACED = ("load_models", "model_snapshot", "models")
_DEFAULT_DELAY = 100


class SnapshotWriter:
    """Writes the snapshots of one server into a folder. Used on its loop."""

    def __init__(
        self,
        server: Server,
        sources: Sources,
        store: Path,
        folder: Path,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self._server = server
        self._sources = sources
        self._store = store.absolute()
        self._folder = folder
        self._now = now
        self._last = ""
        self._watch: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Write the first one, and watch for changes from then on."""
        await self._write("startup")
        self._watch = asyncio.create_task(self._follow())

    async def end(self) -> None:
        """Write the last one, if there was a first."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait({self._watch})
            await self._write("shutdown")

    async def _follow(self) -> None:
        before = _fingerprint(self._rows())
        for look in itertools.count(1):
            await asyncio.sleep(LOOK_SECONDS)
            rows = self._rows()
            now = _fingerprint(rows)
            if not _has_settled(rows) or (now == before and look % WHOLE_LOOKS):
                continue
            before = now
            if await self._models() != self._last:
                await self._write("snapshot")

    def _rows(self) -> tuple[VersionStatus, ...]:
        return self._server.list().versions

    async def _models(self) -> str:
        """Return the models that serve, as the property `models` has them."""
        found: dict[str, dict[str, object]] = {}
        for name in dict.fromkeys(row.model for row in self._rows() if row.state is VersionState.READY):
            try:
                part = await self._server.execute(DescribeAll(name))
            except ServeError:  # it has gone meanwhile
                continue
            if isinstance(part.answer, ModelDescriptions):
                found[name] = {
                    one.spec.version: self._rules(one, _row(part.answer, one), part.answer.default)
                    for one in part.answer.models
                }
        return json.dumps(found, sort_keys=True)

    def _rules(self, one: ModelDescription, row: VersionStatus | None, default: str) -> dict[str, object]:
        spec, groups = one.spec, one.groups or one.spec.groups
        delay = spec.scheduling.max_delay if isinstance(spec.scheduling, Dynamic) else 0
        place = str(spec.shown_root or spec.root) if row is None or row.source is None else row.source.uri
        return {
            "defaultVersion": spec.version == default,
            "marName": self._shown(place),
            "minWorkers": sum(group.minimum for group in groups),
            "maxWorkers": sum(group.ceiling for group in groups),
            "batchSize": spec.batching.max_rows,
            "maxBatchDelay": round(delay * 1000) or _DEFAULT_DELAY,
            "responseTimeout": round(spec.limits.run_deadline or 0),
            "startupTimeout": round(spec.limits.startup_deadline),
            "runtimeType": "python",
        }

    def _shown(self, place: str) -> str:
        """Return a place by its name in the store, if it is there."""
        with contextlib.suppress(ValueError):
            return str(Path(place).absolute().relative_to(self._store)) if "://" not in place else place
        return place

    async def _write(self, kind: str) -> None:
        moment = self._now()
        models = await self._models()
        name = f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}-{kind}.cfg"
        text = self._text(name, models, moment)
        try:
            await asyncio.to_thread(put, self._folder, name, text)
        except OSError as error:
            _log.warning(
                "The snapshot %s cannot be written: %s. Make room there, or switch snapshots off "
                "(--no-config-snapshots).",
                self._folder / name,
                error.strerror or error,
            )
        else:
            _log.info("Saved snapshot to %s.", self._folder / name)
        self._last = models

    def _text(self, name: str, models: str, moment: datetime) -> str:
        rows = {
            key: setting.value.strip()
            for key, setting in self._sources.settings.items()
            if key not in _REPLACED
        }
        known = json.loads(models)
        document = {
            "name": name,
            "modelCount": sum(map(len, known.values())),
            "created": round(moment.timestamp() * 1000),
            "models": known,
        }
        return "".join(written(*row) for row in (*rows.items(), ("model_snapshot", json.dumps(document))))


def _fingerprint(rows: tuple[VersionStatus, ...]) -> frozenset[tuple[object, ...]]:
    return frozenset((row.model, row.version, row.state, row.least, row.is_default) for row in rows)


def _has_settled(rows: tuple[VersionStatus, ...]) -> bool:
    """Tell whether nothing is being loaded or unloaded: what is on its way is written when it is there."""
    return all(row.state not in (VersionState.LOADING, VersionState.UNLOADING) for row in rows)


def _row(described: ModelDescriptions, one: ModelDescription) -> VersionStatus | None:
    return next((row for row in described.statuses if row.version == one.spec.version), None)


def put(folder: Path, name: str, text: str) -> None:
    """Write a file whole, or not at all: the newest is read at the next start. It may hold a password. Those that are
    too old go.
    """
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f"{name}.part"  # no name that a start would take for a snapshot, should it stay
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
        beside.replace(folder / name)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    for old in outdated(entry.name for entry in folder.iterdir()):
        with contextlib.suppress(OSError):
            (folder / old).unlink(missing_ok=True)


def outdated(names: Iterable[str]) -> list[str]:
    """Return those files of a folder of snapshots that are to go: all snapshots but the newest. No other file is."""
    return sorted(name for name in names if _NAME.fullmatch(name))[:-KEPT]
