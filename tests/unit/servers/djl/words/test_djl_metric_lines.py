"""Lines by which a DJL handler tells of metrics (sheet `djl`, 1.5), as a table."""

import pytest

from trivium.core.observability.custom_metrics import CustomMetrics
from trivium.servers.djl.words.metric_lines import read_metric


@pytest.mark.parametrize(
    ("line", "kind", "name", "labels", "value"),
    [
        ("[METRICS]Loaded.Count:1|#Host:h", "counter", "Loaded_total", {"Host": "h"}, 1.0),
        (
            "[METRICS]Tokens.Count:3|#Model:m,Host:h|1700000000",
            "counter",
            "Tokens_total",
            {"Model": "m"},
            3.0,
        ),
        ("INFO [METRICS] Latency.Microseconds:12.5|#Model:m", "gauge", "Latency", {"Model": "m"}, 12.5),
        ("[METRICS]Latency.Milliseconds:-1e3", "gauge", "Latency", {}, -1000.0),
        ("[METRICS]Latency.Milliseconds:2|#Model:m|17|h", "histogram", "Latency", {"Model": "m"}, 2.0),
        ("[METRICS]Queue.Count:2|g", "gauge", "Queue", {}, 2.0),
        ("[METRICS]Prefill time.Milliseconds:2|#:x", "gauge", "Prefill_time", {}, 2.0),
    ],
)
def test_a_line_is_a_step(line: str, kind: str, name: str, labels: dict[str, str], value: float) -> None:
    step = read_metric(line)
    assert step is not None
    assert (step["kind"], step["name"], step["labels"]) == (kind, name, labels)
    metrics = CustomMetrics()
    metrics.take("m", step)
    assert metrics.families[name].series[tuple(labels.items())].value == value


@pytest.mark.parametrize(
    "line",
    [
        "Loaded.Count:1",
        "[METRICS]",
        "[METRICS]Loaded:1",
        "[METRICS]Loaded.Count:",
        "[METRICS]Loaded.Count:many",
        "[METRICS]Loaded.Count:nan",
        "[METRICS]Loaded.Count:1|x",
        "[METRICS].Count:1",
    ],
)
def test_any_other_line_is_output(line: str) -> None:
    assert read_metric(line) is None
