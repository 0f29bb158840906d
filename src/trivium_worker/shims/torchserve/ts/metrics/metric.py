"""A metric with its value, to be handed over by `ts.service.emit_metrics`."""

from collections.abc import Iterable
from typing import Any

from ts.metrics import sink
from ts.metrics.metric_type_enum import MetricTypes


class Metric:
    """One value, which `update` changes and `emit` tells the server. A dimension is a `Dimension`."""

    def __init__(
        self,
        name: str,
        value: float,
        unit: str,
        dimensions: Iterable[Any],
        request_id: str | None = None,
        metric_method: str | None = None,
    ) -> None:
        self.name = name
        self.unit = unit
        self.value = value
        self.dimensions = list(dimensions)
        self.request_id = request_id
        self._is_counter = metric_method == "counter"

    def update(self, value: float) -> None:
        """Set it, or add to a counter."""
        self.value = self.value + value if self._is_counter else value

    def emit(self) -> None:
        """Tell the server."""
        kind = MetricTypes.COUNTER if self._is_counter else MetricTypes.GAUGE
        labels = {dimension.name: str(dimension.value) for dimension in self.dimensions}
        sink.tell(kind.value, self.name, self.unit, labels, self.value, self.request_id or "")
