from ts.metrics.metric import Metric
from ts.metrics.metric_cache_yaml_impl import MetricsCacheYamlImpl
from typing import Any

class MetricsStore(MetricsCacheYamlImpl):
    store: list[Metric]
    cache: dict[str, Metric]
    def __init__(self, request_ids: Any, model_name: str) -> None: ...
