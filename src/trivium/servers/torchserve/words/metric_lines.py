"""Writes an update of a metric as the line of a log, and numbers as Java does; reads lines of a command that measures.

Source: spec sheet `torchserve`, sections 6.1 and 6.3: `Name.Unit:value|#Dimension:value,...|#hostname:h,...`. Programs
that read these logs know the lines by this form.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import inf, isfinite

from trivium.servers.torchserve.words.metrics_config import DeclaredMetric

_CONTROLS = str.maketrans(dict.fromkeys(map(chr, range(32)), " "))
_RESERVED = str.maketrans(dict.fromkeys("|,#", "_")) | _CONTROLS
"""Characters that part a line, or end it: others' texts must not."""

_SYSTEM = re.compile(
    r"\s*(?P<name>[\w\s]+)\.[\w\s]+:(?P<value>[0-9\-,.e]+)\|#(?P<dimensions>[^|]*)(?:\|#type:[^|,]+)?"
    r"\|#hostname:[^,]+,[^,]+(?:,.*)?"
)
MOST_KNOWN = 1000
"""Metrics, each with the values of its dimensions, whose lines are remembered; a value may be a client's."""

_LEAST, _MOST = 1e-3, 1e7
"""Between them Java writes numbers without an exponent."""


def java_number(value: float) -> str:
    """Return a number as `Double.toString` writes it: 1.0, 5.7E7."""
    if not isfinite(value):
        return "Infinity" if value == inf else "-Infinity" if value == -inf else "NaN"
    if value == 0 or _LEAST <= abs(value) < _MOST:
        return repr(float(value))
    sign, digits, exponent = Decimal(repr(float(value))).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    power = len(digits) - 1 + int(exponent)
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"


class MetricLines:
    """Writes lines of one server's metrics. What is the same in each line of a metric is written once."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._known: dict[tuple[int, tuple[str, ...]], tuple[DeclaredMetric, str, str]] = {}

    def line(
        self,
        metric: DeclaredMetric,
        values: Sequence[str],
        value: float,
        epoch: float,
        request: str | None = None,
    ) -> str:
        """Return the line of one update at a time, in seconds since 1970, with `values` of the dimensions but for the
        host's; by a handler for this `request` (None: by the server).
        """
        key = id(metric), tuple(values)  # a metric that is remembered lives, and so no other has its identity
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = (metric, *_ends(metric, values, self._host))
        _, begins, ends = known
        asked = "" if request is None else f",requestID:{request}"
        return f"{begins}{java_number(value)}{ends}{asked},timestamp:{int(epoch)}"


def _ends(metric: DeclaredMetric, values: Sequence[str], host: str) -> tuple[str, str]:
    """Return what stands in front of the value of a metric, and what behind it."""
    pairs = zip(metric.dimensions, values, strict=False)
    shown = ",".join([f"{key}:{text.translate(_RESERVED)}" for key, text in pairs])
    name = f"{metric.name}.{metric.unit}".translate(_CONTROLS)
    return f"{name}:", f"|#{shown}|#hostname:{host}"


@dataclass(frozen=True, slots=True)
class SystemMetric:
    """One metric of the machine, by a command that measures it: its dimensions' values, and its own."""

    name: str
    values: tuple[str, ...]
    value: float


def read_system_metric(line: str) -> SystemMetric | None:
    """Read a line of a command that measures the machine: `Name.Unit:value|#Dimension:value,...|#hostname:h,time`; None
    for another.
    """
    found = _SYSTEM.fullmatch(line)
    if found is None:
        return None
    try:
        value = float(found["value"].replace(",", ""))
    except ValueError:
        return None
    pairs = [pair.split(":") for pair in found["dimensions"].split(",")]
    return SystemMetric(found["name"], tuple(pair[1] for pair in pairs if len(pair) == 2), value)
