"""Metrics of the model's own: each change goes to the server, which adds up those of all instances.

`value` tells what this instance has made of it. Rules by kind: sheet "triton", section 8.3.
"""

import enum
import re
import threading
from typing import Any

from c_python_backend_utils.backend import BACKEND
from c_python_backend_utils.errors import TritonModelException
from c_python_backend_utils.names import number, text, unfit


class MetricKind(enum.Enum):
    """The kind of measure of a family; the values are the server's words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


_NAME = re.compile(r"(?!__)[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_FAMILIES: dict[str, "tuple[MetricKind, dict[Any, list[float]]]"] = {}
"""Name -> kind, and value by labels: alike metrics are one, however often they are made."""

_LOCK = threading.Lock()


class Metric:
    """One series of a family. TritonModelException where its kind does not allow what is asked."""

    __slots__ = ("_about", "_kind", "_value")

    def __init__(self, kind: MetricKind, about: dict[str, Any], value: list[float]) -> None:
        self._kind = kind
        self._about = about
        self._value = value

    def increment(self, value: float) -> None:
        """Add to a counter, or to a gauge."""
        value = number("Metric.increment: value", value)
        if self._kind is MetricKind.HISTOGRAM:
            raise self._refusal("increment", "Increment")
        if self._kind is MetricKind.COUNTER and value < 0:
            raise _failed(
                "Failed to increment metric value",
                "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically by non-negative values.",
            )
        with _LOCK:
            self._value[0] += value
        self._tell("add", value)

    def set(self, value: float) -> None:
        """Set a gauge."""
        value = number("Metric.set: value", value)
        if self._kind is not MetricKind.GAUGE:
            raise self._refusal("set", "Set")
        self._value[0] = value
        self._tell("set", value)

    def observe(self, value: float) -> None:
        """Put a value into a histogram."""
        value = number("Metric.observe: value", value)
        if self._kind is not MetricKind.HISTOGRAM:
            raise self._refusal("observe", "Observe")
        self._tell("observe", value)

    def value(self) -> float:
        """Return the value that this instance has made of a counter or gauge."""
        if self._kind is MetricKind.HISTOGRAM:
            raise self._refusal("get", "Value")
        return self._value[0]

    def _tell(self, what: str, value: float) -> None:
        BACKEND.host.measure({**self._about, what: value})

    def _refusal(self, what: str, verb: str) -> TritonModelException:
        kind = self._kind.name
        return _failed(
            f"Failed to {what} metric value",
            f"TRITONSERVER_METRIC_KIND_{kind} does not support {verb}",
        )


class MetricFamily:
    """Metrics of one name. TritonModelException where another family of that name is of another kind, or where
    Prometheus takes no such name.
    """

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    __slots__ = ("_about", "_kind", "_values")

    def __init__(self, name: Any, description: Any, kind: Any) -> None:
        name, description = text("MetricFamily: name", name), text("MetricFamily: description", description)
        if not isinstance(kind, MetricKind):
            raise unfit("MetricFamily: kind", kind, "MetricFamily.COUNTER, GAUGE or HISTOGRAM")
        if not _NAME.fullmatch(name):
            raise _failed("Error when creating MetricFamily", "Invalid metric name")
        with _LOCK:
            known, self._values = _FAMILIES.setdefault(name, (kind, {}))
        if known is not kind:
            why = "Family name already exists with different type"
            raise _failed("Error when creating MetricFamily", why)
        self._kind = kind
        self._about = {"kind": kind.value, "name": name, "help": description}

    def Metric(self, labels: dict[str, str] | None = None, buckets: list[float] | None = None) -> Metric:
        """The metric with these labels; a histogram, and nothing else, has the upper bounds of its buckets."""
        if labels is not None and not isinstance(labels, dict):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        if buckets is not None and not isinstance(buckets, list):
            raise TritonModelException("Failed to create metric. Buckets must be a list.")
        if buckets is not None and self._kind is not MetricKind.HISTOGRAM:
            raise TritonModelException("Failed to create metric. Unexpected buckets found.")
        if buckets is None and self._kind is MetricKind.HISTOGRAM:
            raise TritonModelException("Failed to create metric. Missing required buckets.")
        plain: dict[Any, Any] = dict(labels or {})
        if not all(isinstance(name, str) and _LABEL.fullmatch(name) for name in plain):
            raise _failed("Error when creating Metric", "Invalid label name")
        if not all(isinstance(value, str) for value in plain.values()):
            raise _failed("Error when creating Metric", "attempt to access JSON non-string as string")
        about: dict[str, Any] = {**self._about, "labels": plain}
        if buckets is not None:
            about["buckets"] = bounds = [number("Metric: a bucket", bound) for bound in buckets]
            if any(bounds[i] <= bounds[i - 1] for i in range(1, len(bounds))):
                raise _failed("Error when creating Metric", "Bucket Boundaries must be strictly sorted")
        with _LOCK:
            value = self._values.setdefault(tuple(sorted(plain.items())), [0.0])
        metric = Metric(self._kind, about, value)
        if self._kind is MetricKind.COUNTER:
            metric.increment(0.0)  # so that it is seen before the first event
        return metric


def _failed(what: str, message: str) -> TritonModelException:
    """Return the error in the words of the original."""
    return TritonModelException(
        f"{what}: Failed to process the request for model '{BACKEND.instance}', message: {message}"
    )
