"""The older name of `context.metrics`' class, which people's tests look into: it keeps each value."""

from collections.abc import Sequence
from typing import Any

from ts.metrics.dimension import Dimension
from ts.metrics.metric import Metric
from ts.metrics.metric_cache_yaml_impl import MetricsCacheYamlImpl
from ts.metrics.metric_type_enum import MetricTypes


class MetricsStore(MetricsCacheYamlImpl):
    """See `MetricsCacheYamlImpl`. `store` has a `Metric` for each name, unit, request and dimensions, in the order in
    which they came; `cache` has the same by one text of these. A counter's is the sum, another's the last value.
    """

    def __init__(self, request_ids: Any, model_name: str) -> None:
        super().__init__(model_name, request_ids)
        self.store: list[Metric] = []
        self.cache: dict[str, Metric] = {}

    def _tell(
        self,
        kind: MetricTypes,
        name: str,
        unit: str,
        dimensions: "Sequence[Dimension] | None",
        value: float,
        request: str,
    ) -> None:
        super()._tell(kind, name, unit, dimensions, value, request)
        whose = [Dimension("ModelName", self.model_name), Dimension("Level", "Model")]
        held = [*(dimensions or ()), *(whose if request else [Dimension("Level", "Error")])]
        key = "-".join([name, unit, request, *map(str, held)])
        if key in self.cache:
            self.cache[key].update(value)
            return
        method = "counter" if kind is MetricTypes.COUNTER else None
        self.cache[key] = Metric(name, value, unit, held, request or None, method)
        self.store.append(self.cache[key])
