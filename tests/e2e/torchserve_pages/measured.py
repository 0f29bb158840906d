"""A handler that emits a metric by each of the functions that the original's page on metrics names."""

from ts.metrics.dimension import Dimension
from ts.metrics.metric_type_enum import MetricTypes


class Measured:
    def initialize(self, context):
        metrics = context.metrics
        self.requests = metrics.add_metric_to_cache(
            metric_name="InferenceRequestCount",
            unit="count",
            dimension_names=[],
            metric_type=MetricTypes.COUNTER,
        )
        metrics.add_metric_to_cache(
            metric_name="PreprocessCallCount", unit="count", dimension_names=["ModelName"]
        )
        metrics.add_metric(name="InitializeCallCount", value=1, unit="count", metric_type=MetricTypes.COUNTER)

    def handle(self, data, context):
        metrics, name = context.metrics, context.model_name
        self.requests.add_or_update(value=1, dimension_values=[])
        steps = metrics.get_metric(metric_name="PreprocessCallCount", metric_type=MetricTypes.COUNTER)
        steps.add_or_update(value=1, dimension_values=[name], request_id=context.get_request_id())
        size = metrics.get_metric(metric_name="RequestBatchSize", metric_type=MetricTypes.GAUGE)
        size.update(len(data), context.get_request_id(), [Dimension("ModelName", name)])
        metrics.add_size(name="SizeOfImage", value=len(data[0]["body"]) / 1024, idx=None, unit="kB")
        metrics.add_time(
            name="HandlerMethodTime",
            value=0.5,
            idx=None,
            unit="ms",
            dimensions=[Dimension(name="MethodName", value="preprocess")],
            metric_type=MetricTypes.GAUGE,
        )
        metrics.add_counter(name="PostprocessCallCount", value=2, idx=None, dimensions=[])
        metrics.add_percent(
            name="ExamplePercentMetric",
            value=50,
            idx=None,
            dimensions=[],
            metric_type=MetricTypes.HISTOGRAM,
        )
        metrics.add_metric(name="DistanceInKM", value=10, unit="km", dimensions=[Dimension("Way", "there")])
        return ["measured"] * len(data)
