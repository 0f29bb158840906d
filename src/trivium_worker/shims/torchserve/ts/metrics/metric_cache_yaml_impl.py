"""`context.metrics`: custom metrics by name. Source: spec sheet `torchserve`, section 6.2.

Every value goes to the server at once, which knows what its metrics.yaml declares, and what becomes of others.
"""

from collections.abc import Sequence
from typing import Any

from ts.metrics import sink
from ts.metrics.caching_metric import CachingMetric
from ts.metrics.dimension import Dimension
from ts.metrics.metric_cache_errors import MetricsCacheKeyError, MetricsCacheTypeError, MetricsCacheValueError
from ts.metrics.metric_type_enum import MetricTypes

_TIMES = ("ms", "s")
_SIZES = ("MB", "kB", "GB", "B")
_Dimensions = Sequence[Dimension] | None
_Row = tuple[str, str, str, list[str]]
DECLARED: Sequence[_Row] = (
    ("gauge", "HandlerTime", "ms", ["ModelName", "Level"]),
    ("gauge", "PredictionTime", "ms", ["ModelName", "Level"]),
)
"""Metrics that handlers find without having made them, by kind, name, unit and dimensions: those of the original's own
metrics.yaml.
"""


class MetricsCacheYamlImpl:
    """One per worker. `idx` says which request of the batch a value belongs to; without it all of them."""

    def __init__(
        self, model_name: str = "", request_ids: Any = None, declared: Sequence[_Row] = DECLARED
    ) -> None:
        self.model_name = model_name
        self.request_ids = request_ids
        self._cache: dict[tuple[MetricTypes, str], CachingMetric] = {}
        for kind, name, unit, dimensions in declared:
            self.add_metric_to_cache(name, unit, dimensions, MetricTypes(kind))

    def add_metric(
        self,
        name: str,
        value: float,
        unit: str,
        idx: int | None = None,
        dimensions: _Dimensions = None,
        metric_type: MetricTypes = MetricTypes.COUNTER,
    ) -> None:
        """A value of any metric."""
        self._tell(metric_type, name, unit, dimensions, value, self._request(idx))

    def add_counter(
        self, name: str, value: float, idx: int | None = None, dimensions: _Dimensions = None
    ) -> None:
        """Add to a counter."""
        self._tell(MetricTypes.COUNTER, name, "count", dimensions, value, self._request(idx))

    def add_time(
        self,
        name: str,
        value: float,
        idx: int | None = None,
        unit: str = "ms",
        dimensions: _Dimensions = None,
        metric_type: MetricTypes = MetricTypes.GAUGE,
    ) -> None:
        """A time in `ms` or `s`. ValueError for another unit."""
        _check_unit(name, unit, _TIMES)
        self._tell(metric_type, name, unit, dimensions, value, self._request(idx))

    def add_size(
        self,
        name: str,
        value: float,
        idx: int | None = None,
        unit: str = "MB",
        dimensions: _Dimensions = None,
        metric_type: MetricTypes = MetricTypes.GAUGE,
    ) -> None:
        """A size in `MB`, `kB`, `GB` or `B`. ValueError for another unit."""
        _check_unit(name, unit, _SIZES)
        self._tell(metric_type, name, unit, dimensions, value, self._request(idx))

    def add_percent(
        self,
        name: str,
        value: float,
        idx: int | None = None,
        dimensions: _Dimensions = None,
        metric_type: MetricTypes = MetricTypes.GAUGE,
    ) -> None:
        """A share in percent."""
        self._tell(metric_type, name, "percent", dimensions, value, self._request(idx))

    def add_error(self, name: str, value: float, dimensions: _Dimensions = None) -> None:
        """Add to a counter of errors. TypeError for what is no number."""
        self._tell(MetricTypes.COUNTER, name, "", dimensions, value, "")

    def add_metric_to_cache(
        self,
        metric_name: str,
        unit: str,
        dimension_names: Sequence[str] = (),
        metric_type: MetricTypes = MetricTypes.COUNTER,
    ) -> CachingMetric:
        """A metric to update by `add_or_update`, found again by `get_metric`. MetricsCacheTypeError."""
        _check("unit", unit, str)
        _check("dimension_names", dimension_names, (list, tuple))
        _check("metric_name", metric_name, str)
        _check("metric_type", metric_type, MetricTypes)
        metric = CachingMetric(metric_name, unit, dimension_names, metric_type)
        self._cache[metric_type, metric_name] = metric
        return metric

    def get_metric(self, metric_name: str, metric_type: MetricTypes = MetricTypes.COUNTER) -> CachingMetric:
        """A metric of the cache. MetricsCacheKeyError names those that there are; MetricsCacheTypeError."""
        _check("metric_name", metric_name, str)
        _check("metric_type", metric_type, MetricTypes)
        metric = self._cache.get((metric_type, metric_name))
        if metric is None:
            known = ", ".join(name for _, name in self._cache)
            raise MetricsCacheKeyError(f"no {metric_type.value} called {metric_name!r}; there are: {known}")
        return metric

    def _request(self, idx: int | None) -> str:
        """Return the id of a request of the batch, or of all of them with commas between; empty for none."""
        ids = self.request_ids
        if not isinstance(ids, dict):
            return str(ids or "")
        return str(ids[idx]) if idx in ids else ",".join(map(str, ids.values()))

    def _tell(
        self, kind: MetricTypes, name: str, unit: str, dimensions: _Dimensions, value: float, request: str
    ) -> None:
        _check("metric_name", name, str)
        _check("metric_type", kind, MetricTypes)
        labels = {dimension.name: str(dimension.value) for dimension in dimensions or ()}
        if request:
            labels.setdefault("ModelName", self.model_name)
        labels.setdefault("Level", "Model" if request else "Error")
        sink.tell(kind.value, name, unit, labels, value, request)


def _check(name: str, value: object, kind: Any) -> None:
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        expected = " or ".join(one.__name__ for one in kinds)
        raise MetricsCacheTypeError(f"{name}: found {value!r}, expected {expected}")


def _check_unit(name: str, unit: str, units: Sequence[str]) -> None:
    if unit not in units:
        raise MetricsCacheValueError(
            f"metric {name}: found the unit {unit!r}, expected one of {', '.join(units)}"
        )
