"""Shows a whole server to those who look at it, once or for a while: snapshots, timelines, lines, deaths."""

import time

import msgspec

from trivium.core.models.readiness import ReadyAnswers
from trivium.core.models.registry import Registry
from trivium.core.models.snapshots import Snapshots
from trivium.core.models.watching import Watching
from trivium.core.observability.timelines import TimelineBook
from trivium.core.workers.process_launcher import WorkerServices
from trivium.log_settings import LOG
from trivium.types.interfaces import Clock
from trivium.types.operations import ModelDescriptions, Observation
from trivium.types.recording import InstanceName
from trivium.types.spec import ModelSpec


class ServerView:
    """Puts them together, one per server. Used on the loop only. `begin` lets one listen, `close` ends that for all."""

    def __init__(
        self, registry: Registry, readiness: ReadyAnswers, clock: Clock, workers: WorkerServices
    ) -> None:
        self._registry = registry
        self._lines = workers.lines
        self._snapshots = Snapshots(registry, readiness, clock.now, time.time)
        self._book = TimelineBook(clock.now, time.time, workers.news)
        watching = Watching(registry, clock, workers.news, self._book, self._snapshots.take)
        self.begin, self.close = watching.begin, watching.close

    def note_line(self, spec: ModelSpec, line: str) -> None:
        """Keep a line that a model's own code has printed before it had a worker."""
        name = InstanceName(spec.name, spec.version, 0)
        self._lines.voice(name, "completing").say(line)

    def observed(self, described: ModelDescriptions | None) -> Observation:
        """Return all that is known at this moment, and of a model that is `described` what belongs to it."""
        seen = Observation(
            self._snapshots.take(), self._book.report(), LOG.settings, self._snapshots.memory()
        )
        if described is None:
            return seen
        name = described.statuses[0].model
        loaded = [record.loaded for record in self._registry.records(name) if record.loaded is not None]
        deaths = tuple(death for each in loaded for death in each.status.deaths)
        lines = self._lines.of(name)
        return msgspec.structs.replace(seen, described=described, deaths=deaths, lines=lines)
