"""The kinds of metrics, as handlers name them."""

import enum


class MetricTypes(enum.Enum):
    """A counter only grows, a gauge is set, a histogram observes."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
