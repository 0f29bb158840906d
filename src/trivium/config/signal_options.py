"""The options of what a server tells of itself: metrics and traces. See `options` for what a field is."""

from dataclasses import dataclass

from trivium.config.listener_options import tls_option
from trivium.settings.option import ANY, INT, LONG, option


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """Metrics for Prometheus: where they are served and what is measured."""

    port: int = option(
        "--metrics-port",
        -1,
        "Port for metrics alone; 0 takes a free one, -1 has none: then they are at /metrics.",
        (-1, 65535),
        is_common=True,
    )
    no_metrics: bool = option("--no-metrics", False, "Do not serve metrics.")
    host: str = option(
        "--metrics-host", "", "Address to listen on for metrics alone, where it is not that of --host."
    )
    tls_certificate: str = tls_option("metrics", "certificate", "the port of metrics")
    tls_key: str = tls_option("metrics", "key", "the port of metrics")
    tls_client_authorities: str = tls_option("metrics", "client-authorities", "the port of metrics")
    interval: float = option("--metrics-interval", 2.0, "Seconds for which a reading of the machine is good.")
    quantiles: str = option(
        "--metrics-quantiles", "", "Quantiles of latencies to measure, like 0.5,0.99; costs time."
    )
    first_part: bool = option(
        "--metrics-first-part", False, "Measure the time to the first of several answers."
    )
    vllm: bool = option(
        "--metrics-vllm",
        False,
        "Write what is counted of language models under vLLM's names as well, for its dashboards and autoscalers.",
    )
    no_duration_metrics: bool = option(
        "--no-duration-metrics", False, "No sums of latencies among the metrics."
    )
    no_cpu_metrics: bool = option("--no-cpu-metrics", False, "No metrics of the machine.")
    no_gpu_metrics: bool = option("--no-gpu-metrics", False, "No metrics of GPUs.")


@dataclass(frozen=True, slots=True)
class TracingConfig:
    """Traces of requests: where they go and which requests are traced."""

    file: str = option(
        "--trace-file",
        "",
        "File for traces of requests, a JSON array; which are traced --trace-levels and clients say.",
    )
    endpoint: str = option(
        "--trace-endpoint",
        "",
        "URL of a collector that takes traces by OTLP over HTTP; not together with --trace-file.",
    )
    resource: str = option(
        "--trace-resource",
        "service.name=trivium",
        "What such traces say of this server: KEY=VALUE, with commas between.",
    )
    queue: int = option("--trace-queue", 2048, "Spans that may wait for the collector.", (1, ANY))
    delay: float = option(
        "--trace-delay", 5.0, "Seconds between two deliveries to the collector.", (0.001, LONG)
    )
    batch: int = option("--trace-batch", 512, "Spans that are delivered at once.", (1, ANY))
    levels: str = option(
        "--trace-levels", "", "What is traced from the start: timestamps, tensors, or both with a comma."
    )
    rate: int = option(
        "--trace-rate", 1000, "One request in so many is traced; 0: those with a trace context.", (0, INT)
    )
    count: int = option(
        "--trace-count",
        -1,
        "How many requests are traced until clients say more; -1: any number.",
        (-1, INT),
    )
    frequency: int = option(
        "--trace-frequency", 0, "Traces after which a numbered file is begun; 0 puts all into one.", (0, INT)
    )

    @property
    def has_place(self) -> bool:
        """Is there a place for traces? Then clients may switch them on, too."""
        return bool(self.file or self.endpoint)
