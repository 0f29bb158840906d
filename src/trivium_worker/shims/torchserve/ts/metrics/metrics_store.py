"""The older name of `context.metrics`' class, with its parameters in the other order."""

from typing import Any

from ts.metrics.metric_cache_yaml_impl import MetricsCacheYamlImpl


class MetricsStore(MetricsCacheYamlImpl):
    """See `MetricsCacheYamlImpl`."""

    def __init__(self, request_ids: Any, model_name: str) -> None:
        super().__init__(model_name, request_ids)
