"""Metrics of the model's own: each change goes to the server, which adds up those of all instances.

`value` tells what this instance has made of it. Rules by kind: sheet "triton", section 8.3.
"""

import enum
import threading
from typing import Any, Dict, List, Optional, Tuple

from c_python_backend_utils.backend import BACKEND
from c_python_backend_utils.errors import TritonModelException


class MetricKind(enum.Enum):
    """What a family measures; the values are the server's words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


_ALLOWED = {
    MetricKind.COUNTER: "increment (by 0 or more) and value",
    MetricKind.GAUGE: "increment, set and value",
    MetricKind.HISTOGRAM: "observe",
}
_FAMILIES: Dict[str, "Tuple[MetricKind, Dict[Any, List[float]]]"] = {}
"""Name -> kind, and value by labels: alike metrics are one, however often they are made."""

_LOCK = threading.Lock()


class Metric:
    """One series of a family. TritonModelException where its kind does not allow what is asked."""

    __slots__ = ("_about", "_kind", "_value")

    def __init__(self, kind: MetricKind, about: Dict[str, Any], value: List[float]) -> None:
        self._kind = kind
        self._about = about
        self._value = value

    def increment(self, value: float) -> None:
        """Add to a counter, or to a gauge."""
        if self._kind is MetricKind.HISTOGRAM:
            raise self._refusal("increment")
        if self._kind is MetricKind.COUNTER and value < 0:
            raise self._refusal("increment by %g" % value)
        with _LOCK:
            self._value[0] += value
        self._tell("add", value)

    def set(self, value: float) -> None:
        """Set a gauge."""
        if self._kind is not MetricKind.GAUGE:
            raise self._refusal("set")
        self._value[0] = value
        self._tell("set", value)

    def observe(self, value: float) -> None:
        """Put a value into a histogram."""
        if self._kind is not MetricKind.HISTOGRAM:
            raise self._refusal("observe")
        self._tell("observe", value)

    def value(self) -> float:
        """What this instance has made of a counter or gauge."""
        if self._kind is MetricKind.HISTOGRAM:
            raise self._refusal("value")
        return self._value[0]

    def _tell(self, what: str, value: float) -> None:
        BACKEND.host.measure({**self._about, what: float(value)})

    def _refusal(self, what: str) -> TritonModelException:
        kind = self._kind.value
        return TritonModelException(
            "Metric %r is a %s: %s is not allowed; it has %s."
            % (self._about["name"], kind, what, _ALLOWED[self._kind])
        )


class MetricFamily:
    """Metrics of one name. TritonModelException where another family of that name is of another kind."""

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    __slots__ = ("_about", "_kind", "_values")

    def __init__(self, name: Any, description: Any, kind: Any) -> None:
        if not isinstance(name, str) or not isinstance(description, str) or not isinstance(kind, MetricKind):
            raise TypeError(
                "MetricFamily needs name (a str), description (a str) and kind (MetricFamily.COUNTER, ...)."
            )
        with _LOCK:
            known, self._values = _FAMILIES.setdefault(name, (kind, {}))
        if known is not kind:
            raise TritonModelException(
                "Metric family %r is a %s already; it cannot be a %s, too." % (name, known.value, kind.value)
            )
        self._kind = kind
        self._about = {"kind": kind.value, "name": name, "help": description}

    def Metric(
        self, labels: Optional[Dict[str, str]] = None, buckets: Optional[List[float]] = None
    ) -> Metric:
        """The metric with these labels; a histogram, and nothing else, has the upper bounds of its buckets."""
        if labels is not None and not isinstance(labels, dict):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        if buckets is not None and not isinstance(buckets, list):
            raise TritonModelException("Failed to create metric. Buckets must be a list.")
        if buckets is not None and self._kind is not MetricKind.HISTOGRAM:
            raise TritonModelException("Failed to create metric. Unexpected buckets found.")
        if buckets is None and self._kind is MetricKind.HISTOGRAM:
            raise TritonModelException("Failed to create metric. Missing required buckets.")
        plain = labels or {}
        if not all(isinstance(part, str) for pair in plain.items() for part in pair):
            raise TritonModelException(
                "Failed to create metric. Names and values of labels must be of type str."
            )
        about: Dict[str, Any] = {**self._about, "labels": dict(plain)}
        if buckets is not None:
            about["buckets"] = [float(bound) for bound in buckets]
        with _LOCK:
            value = self._values.setdefault(tuple(sorted(plain.items())), [0.0])
        metric = Metric(self._kind, about, value)
        if self._kind is MetricKind.COUNTER:
            metric.increment(0.0)  # so that it is seen before the first event
        return metric
