from _typeshed import Incomplete
from collections.abc import Sequence
from ts.metrics.dimension import Dimension as Dimension
from ts.metrics.metric_type_enum import MetricTypes

class CachingMetric:
    metric_name: Incomplete
    unit: Incomplete
    dimension_names: Incomplete
    metric_type: Incomplete
    def __init__(self, metric_name: str, unit: str, dimension_names: Sequence[str] = (), metric_type: MetricTypes = ...) -> None: ...
    def add_or_update(self, value: float, dimension_values: Sequence[str] | None = (), request_id: str | None = None) -> None: ...
    def update(self, value: float, request_id: str | None = None, dimensions: Sequence[Dimension] = ()) -> None: ...
