"""Reads a config.pbtxt's settings of metrics: labels for all of them, and the buckets of one histogram.

Source: spec sheet `triton`, sections 3.1 and 6.2. Milliseconds there are seconds here.
"""

from collections.abc import Iterator
from math import isfinite

from trivium.servers.triton.words.config_text import ConfigText
from trivium.types.findings import Finding
from trivium.types.metrics import ModelMetrics

_FIRST_RESPONSE = "nv_inference_first_response_histogram_ms"


def metrics(text: ConfigText) -> ModelMetrics:
    """Return the model's metrics: of several buckets for the one family the last ones count, without any the
    server's own.
    """
    bounds: tuple[float, ...] = ()
    for control in text.config.model_metrics.metric_control:
        if control.metric_identifier.family == _FIRST_RESPONSE:
            finite = {bound for bound in control.histogram_options.buckets if isfinite(bound)}
            bounds = tuple(bound / 1000 for bound in sorted(finite))
    return ModelMetrics(dict(text.config.metric_tags), bounds)


def check(text: ConfigText) -> Iterator[Finding]:
    """Buckets of anything else have no effect."""
    for i, control in enumerate(text.config.model_metrics.metric_control):
        family = control.metric_identifier.family
        if family != _FIRST_RESPONSE:
            key = f"model_metrics.metric_control[{i}].metric_identifier.family"
            yield text.notice(
                key, f"the family {family or '(none)'}; buckets can be chosen for {_FIRST_RESPONSE} alone"
            )
