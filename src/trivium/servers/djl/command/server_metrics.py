"""Counts what happens to a DJL server and its models, in the original's words: a line in the log, and a metric.

Source: spec sheet `djl`, sections 1.5 and 5.3.
"""

import logging
import socket
import time
from collections.abc import Callable, Mapping

from trivium.codecs.metric_lines import metric_line
from trivium.commands.server_line import ServerLine
from trivium.types.operations import VersionStatus
from trivium.types.state import VersionState

_log = logging.getLogger("ModelServer")
_SERVER, _MODEL = logging.getLogger("server_metric"), logging.getLogger("model_metric")
COUNT, MICROSECONDS = "Count", "Microseconds"
Count = Callable[[str, Mapping[str, object]], None]
"""Takes a step of a custom metric, of a model or (empty) of the server."""


def failure(name: str) -> ServerLine:
    """Return the line of a failure that ends the server before it has any metrics."""
    text = metric_line(name, COUNT, 1, {"Host": socket.gethostname()}, time.time(), "c")
    return ServerLine(text, log=_SERVER.name)


class LifeMetrics:
    """Counts and logs the start of a server and the loads of its models; `given_up` is called for a model that served
    and will not again by itself.
    """

    def __init__(
        self,
        version: str,
        count: Count,
        given_up: Callable[[], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._count = count
        self._given_up = given_up
        self._now = now
        self._began = now()
        self._last: dict[tuple[str, str], tuple[VersionState, float]] = {}
        self._tell(_SERVER, "DJLServingStart", COUNT, 1, {"Version": version})

    def listens(self) -> None:
        """Every model is loaded, and the server listens."""
        spent = (self._now() - self._began) * 1e6
        self._tell(_SERVER, "StartupLatency", MICROSECONDS, spent, {"Host": socket.gethostname()})

    def __call__(self, status: VersionStatus) -> None:
        """Take a change of a version's state."""
        key, now = (status.model, status.version), self._now()
        before, since = self._last.get(key, (None, now))
        self._last[key] = status.state, now
        match status.state:
            case VersionState.LOADING:
                _log.info("Loading model %s", status.model)
            case VersionState.READY:
                _log.info("Model %s is ready", status.model)
                dimensions = {"Model": status.model, "Version": status.version}
                self._tell(_MODEL, "LoadModel", MICROSECONDS, (now - since) * 1e6, dimensions, status.model)
            case VersionState.FAILED if before is VersionState.READY:
                _log.error("Model %s failed: %s", status.model, status.reason)
                self._given_up()
            case VersionState.FAILED:
                self._tell(_SERVER, "ModelLoadingError", COUNT, 1, {"Model": status.model})
            case VersionState.UNLOADED:
                del self._last[key]

    def _tell(
        self,
        log: logging.Logger,
        name: str,
        unit: str,
        value: float,
        dimensions: Mapping[str, str],
        model: str = "",
    ) -> None:
        is_counter = unit == COUNT
        kind = "c" if is_counter else "g"
        log.info("%s", metric_line(name, unit, round(value), dimensions, time.time(), kind))
        label, text = next(iter(dimensions.items()))
        step = {
            "kind": "counter" if is_counter else "gauge",
            "name": f"{name}_total" if is_counter else name,
            "help": f"{name} in {unit}",
            "labels": {label: text},
            "add" if is_counter else "set": float(value),
        }
        self._count(model, step)
