"""The sink of metrics: the server, once the worker has said how; a log line elsewhere."""

import logging
from collections.abc import Callable
from numbers import Real
from typing import Any

Measure = Callable[[dict[str, Any]], None]
_STEPS = {"counter": "add", "gauge": "set", "histogram": "observe"}
_UNITS = {
    "ms": "Milliseconds",
    "s": "Seconds",
    "percent": "Percent",
    "count": "Count",
    "MB": "Megabytes",
    "GB": "Gigabytes",
    "kB": "Kilobytes",
    "B": "Bytes",
    "": "unit",
}
"""The names by which units are written, spelled out."""

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Of histograms: the default ones of the original's library."""


class Sink:
    """`measure` takes one step of a metric (see `Host.measure`); None until a worker has set it."""

    measure: Measure | None = None


def tell(kind: str, name: str, unit: str, labels: dict[str, str], value: float, request: str = "") -> None:
    """One step, by whoever handles a `request`, or several. What cannot be taken is a log line: a counter that would
    shrink, a gauge that is set to no number. TypeError for a counter that is added no number, as in the original, which
    compares it with zero.
    """
    if not isinstance(value, Real):  # numpy's numbers are, too
        if kind == "counter":
            raise TypeError(f"metric {name}: found {value!r}, expected a number")
        logging.error("metric %s: found %r, expected a number; it stays as it is", name, value)
        return
    if kind == "counter" and value < 0:
        logging.error("metric %s: a counter only grows; %r is not added", name, value)
        return
    unit = _UNITS.get(unit, unit)
    step: dict[str, Any] = {"kind": kind, "name": name, "help": f"in {unit}", "labels": labels}
    step.update(unit=unit, request=request)
    step[_STEPS[kind]] = float(value)
    if kind == "histogram":
        step["buckets"] = list(_BUCKETS)
    if Sink.measure is None:
        logging.info("metric %s", step)
    else:
        Sink.measure(step)
