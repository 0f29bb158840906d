"""`ts.service`, as far as handlers use it: the error with a status, and handing over metrics of their own making."""

from collections.abc import Iterable
from typing import Any

from ts.utils.util import PredictionException as PredictionException


def emit_metrics(metrics: Iterable[Any]) -> None:
    """Send metrics made as `ts.metrics.metric.Metric` to the server; those of `context.metrics` are sent at once."""
    for metric in metrics:
        metric.emit()
