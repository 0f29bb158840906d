"""`ts.service`, as far as handlers use it: the error with a status, and handing over metrics of their own making."""

from typing import Any, Iterable

from ts.utils.util import PredictionException as PredictionException


def emit_metrics(metrics: Iterable[Any]) -> None:
    """Tell the server of metrics made as `ts.metrics.metric.Metric`; those of `context.metrics` are told at once."""
    for metric in metrics:
        metric.emit()
