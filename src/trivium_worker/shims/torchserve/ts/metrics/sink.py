"""The sink of metrics: the server, once the worker has said how; elsewhere a log line, as the original writes it."""

import logging
import socket
import time
from collections.abc import Callable
from numbers import Real
from typing import Any

from ts.metrics.unit import Units

Measure = Callable[[dict[str, Any]], None]
_STEPS = {"counter": "add", "gauge": "set", "histogram": "observe"}
_UNITS = Units().units
_LOG = logging.getLogger("ts.metrics.caching_metric")
"""Where nobody measures; the original's name, since tests look for its lines."""

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
        _LOG.info("%s", _line(step, value))
    else:
        Sink.measure(step)


def _line(step: dict[str, Any], value: float) -> str:
    dimensions = ",".join(f"{name}:{held}" for name, held in step["labels"].items())
    request = f",{step['request']}" if step["request"] else ""
    return (
        f"[METRICS]{step['name']}.{step['unit']}:{value}|#{dimensions}|#type:{step['kind'].upper()}|"
        f"#hostname:{socket.gethostname()},{int(time.time())}{request}"
    )
