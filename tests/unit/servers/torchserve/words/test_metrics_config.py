"""metrics.yaml: what it declares, and each way of writing it wrongly with its line."""

import pytest

from trivium.servers.torchserve.words.metrics_config import DEFAULTS, read_metrics_config
from trivium.types.findings import Severity

ORIGINAL = """
dimensions:
  - &model_name "ModelName"
  - &level "Level"
  - &hostname "Hostname"

ts_metrics:
  counter:
    - name: Requests2XX
      unit: Count
      dimensions: [*level, *hostname]
  gauge:
    - name: QueueTime
      unit: Milliseconds
      dimensions: [*level, *hostname]

model_metrics:
  # Hostname is added
  gauge:
    - name: HandlerTime
      unit: ms
      dimensions: [*model_name, *level]
  histogram:
    - {name: Sizes, unit: B, dimensions: []}
"""


def test_the_forms_of_the_original() -> None:
    found, findings = read_metrics_config("metrics.yaml", ORIGINAL.encode())
    assert not findings
    assert found.server == {name: DEFAULTS.server[name] for name in ("Requests2XX", "QueueTime")}
    assert found.models["HandlerTime"] == DEFAULTS.models["HandlerTime"]
    sizes = found.models["Sizes"]
    assert (sizes.kind, sizes.unit, sizes.dimensions) == ("histogram", "B", ("Hostname",))


@pytest.mark.parametrize("text", ["model_metrics:\n", "ts_metrics:\n  counter:\n", "dimensions: []\n"])
def test_a_section_may_be_empty(text: str) -> None:
    found, findings = read_metrics_config("metrics.yaml", text.encode())
    assert (found.server, found.models, findings) == ({}, {}, ())


METRIC = "model_metrics:\n  counter:\n    - name: a\n      unit: Count\n      dimensions: [x]\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "nothing"),
        ("- a\n", 1, "no mapping"),
        ("model_metrics: [\n", 2, "expected"),
        ("model_metrics: !!python/object:os.system {}\n", 1, "python"),
        ("models:\n  counter: []\n", 1, "unknown key; expected one of dimensions, ts_metrics, model_metrics"),
        ("model_metrics: 3\n", 1, "no mapping; expected lists under counter, gauge, histogram"),
        ("model_metrics:\n  counters: []\n", 2, "unknown type"),
        ("model_metrics:\n  counter: a\n", 2, "no list"),
        ("model_metrics:\n  counter:\n    - a\n", 3, "no mapping"),
        (METRIC.replace("name: a", "nam: a"), 3, "unknown key"),
        (METRIC.replace("name: a", "name: ''"), 3, "no text"),
        (METRIC.replace("      unit: Count\n", ""), 3, "unit: nothing; expected a text"),
        (METRIC.replace("unit: Count", "unit: [s]"), 4, "no text"),
        (METRIC.replace("      dimensions: [x]\n", ""), 3, "dimensions: nothing"),
        (METRIC.replace("[x]", "x"), 5, "no list"),
        (METRIC.replace("[x]", "[[x]]"), 5, "a dimension that is no text"),
        (METRIC.replace("[x]", "[x, x]"), 5, "a dimension twice"),
        (METRIC + "    - {name: a, unit: s, dimensions: []}\n", 6, "a for the second time"),
        (
            "ts_metrics:\n  counter:\n    - {name: Requests2XX, unit: Count, dimensions: [Level]}\n",
            3,
            "1 dimensions; expected 2, for Level, Hostname",
        ),
        ("x" * 300_000, None, "more than 262144 bytes"),
    ],
)
def test_a_fault_has_its_line_and_what_mends_it(text: str, line: int | None, said: str) -> None:
    _, findings = read_metrics_config("metrics.yaml", text.encode())
    assert findings
    assert findings[0].severity is Severity.ERROR
    assert findings[0].line == line, findings
    assert said in str(findings[0])
    assert str(findings[0]).startswith("metrics.yaml")
    assert findings[0].hint


def test_all_faults_are_told_at_once() -> None:
    text = METRIC.replace("unit: Count", "unit: [s]") + "    - {name: b, units: s, dimensions: []}\n"
    _, findings = read_metrics_config("metrics.yaml", text.encode())
    assert [finding.line for finding in findings] == [4, 6, 6]
    assert read_metrics_config("m", b"\xff\xfe\xff")[1][0].expected == "a file in UTF-8"
