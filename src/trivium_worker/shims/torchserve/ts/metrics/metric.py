"""A metric with its value, to be handed over by `ts.service.emit_metrics`."""

import socket
import time
from collections.abc import Iterable
from typing import Any

from ts.metrics import sink
from ts.metrics.metric_type_enum import MetricTypes
from ts.metrics.unit import Units


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

    def reset(self) -> None:
        """Set it to 0."""
        self.value = 0

    def __str__(self) -> str:
        dimensions = ",".join(map(str, self.dimensions))
        request = f",{self.request_id}" if self.request_id else ""
        unit = Units().units.get(self.unit, self.unit)
        host = f"#hostname:{socket.gethostname()},{int(time.time())}"
        return f"{self.name}.{unit}:{self.value}|#{dimensions}|{host}{request}"

    def emit(self) -> None:
        """Tell the server."""
        kind = MetricTypes.COUNTER if self._is_counter else MetricTypes.GAUGE
        labels = {dimension.name: str(dimension.value) for dimension in self.dimensions}
        sink.tell(kind.value, self.name, self.unit, labels, self.value, self.request_id or "")
