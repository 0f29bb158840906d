"""OpenMetrics as its own parser reads it: names of samples as in the other format, bounds, exemplars, the end."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

from trivium.codecs import exposition, openmetrics
from trivium.codecs.exposition import ExposedMetric
from trivium.types.metrics import Exemplar

INF = float("inf")
TRACE = "0af7651916cd43dd8448eb211c80319c"


def families() -> list[ExposedMetric]:
    asked = ExposedMetric("asked_total", "counter", 'How "often"\nasked')
    asked.add('who="le=\\"1\\"} "', 3)
    theirs = ExposedMetric("nv_inference_request_success", "counter", "Triton's")
    theirs.add('model="m"', 5)
    full = ExposedMetric("full", "gauge", "How full")
    full.add("", 0.5)
    times = ExposedMetric("seconds", "histogram", "Times")
    buckets = ((0.5, 1), (1.0, 2), (2500000.0, 0), (INF, 1))
    times.add_histogram('model="m"', 7.5, buckets, exemplars={1: Exemplar(TRACE, 0.75, 1700000000.25)})
    quantiles = ExposedMetric("spent", "summary", "Quantiles")
    quantiles.add_summary("", 2, 3.0, ((0.5, 1.0), (1.0, float("nan"))))
    empty = ExposedMetric("none_total", "counter", "Nothing yet")
    return [asked, theirs, full, times, quantiles, empty]


def test_the_standards_own_parser_reads_it():
    text = openmetrics.text(families()).decode()
    assert text.endswith("\n# EOF\n")
    found = {family.name: family for family in text_string_to_metric_families(text)}
    assert {name: family.type for name, family in found.items()} == {
        "asked": "counter",
        "nv_inference_request_success": "unknown",
        "full": "gauge",
        "seconds": "histogram",
        "spent": "summary",
        "none": "counter",
    }
    assert found["asked"].documentation == 'How "often"\nasked'
    bounds = [sample.labels["le"] for sample in found["seconds"].samples if "le" in sample.labels]
    assert bounds == ["0.5", "1.0", "2.5e+06", "+Inf"]
    shown = [sample.exemplar for sample in found["seconds"].samples if sample.exemplar is not None]
    assert [(each.labels, each.value, float(each.timestamp)) for each in shown] == [
        ({"trace_id": TRACE}, 0.75, 1700000000.25)
    ]


def test_samples_have_the_names_that_they_have_in_the_other_format():
    def names(text: str) -> set[str]:
        return {
            line.partition("{")[0].partition(" ")[0]
            for line in text.splitlines()
            if line[:1] not in ("#", "")
        }

    plain = exposition.text(families()).decode()
    assert list(plain_families(plain))
    assert "trace_id" not in plain
    assert names(plain) == names(openmetrics.text(families()).decode())


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", True),
        ("text/plain;q=0.5, Application/OpenMetrics-Text; version=0.0.1", True),
        ("application/openmetrics-texts", False),
    ],
)
def test_who_asks_for_it(accept: str, expected: bool):
    assert openmetrics.is_wanted(accept) is expected
