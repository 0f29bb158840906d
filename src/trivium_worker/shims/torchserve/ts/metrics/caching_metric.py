"""A metric without values of its own: each update goes to the server at once."""

import logging
from collections.abc import Sequence

from ts.metrics import sink
from ts.metrics.dimension import Dimension
from ts.metrics.metric_type_enum import MetricTypes


class CachingMetric:
    """One metric with the names of its dimensions, in order."""

    def __init__(
        self,
        metric_name: str,
        unit: str,
        dimension_names: Sequence[str] = (),
        metric_type: MetricTypes = MetricTypes.COUNTER,
    ) -> None:
        self.metric_name = metric_name
        self.unit = unit
        self.dimension_names = list(dimension_names)
        self.metric_type = metric_type

    def add_or_update(
        self, value: float, dimension_values: Sequence[str] | None = (), request_id: str | None = None
    ) -> None:
        """Add to a counter, set a gauge, put into a histogram. Too few or too many dimensions are a log line, and
        nothing is counted: as in the original, no handler fails by it.
        """
        if dimension_values is None or len(dimension_values) != len(self.dimension_names):
            logging.error(
                "metric %s: found the values %s, expected one for each dimension: %s; it stays as it is",
                self.metric_name,
                dimension_values,
                ", ".join(self.dimension_names) or "none",
            )
            return
        labels: dict[str, str] = dict(zip(self.dimension_names, map(str, dimension_values), strict=False))
        sink.tell(self.metric_type.value, self.metric_name, self.unit, labels, value, request_id or "")

    def update(
        self, value: float, request_id: str | None = None, dimensions: Sequence[Dimension] = ()
    ) -> None:
        """Update with dimensions that replace those of the metric, as older handlers call it."""
        self.dimension_names = [dimension.name for dimension in dimensions]
        self.add_or_update(value, [dimension.value for dimension in dimensions], request_id)
