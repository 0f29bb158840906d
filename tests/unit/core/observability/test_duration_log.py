"""Durations of a model in its log, in the form that programs read."""

import logging
import re

import pytest
from tests.harness.virtual_models import make_spec

from trivium.codecs.metric_lines import metric_line
from trivium.core.observability.statistics import DurationLog, VersionCounters
from trivium.core.request import Item
from trivium.types.metrics import ModelMetrics
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.running import Executed

LINE = re.compile(r"(\w+)\.Microseconds:([\d.]+)\|#Model:m,Version:1,Host:[^|,]+\|1700000000\|g")


def item(number: int, since: float) -> Item:
    return Item(number, Infer(model="m", payload=Tensors(())), lambda part: None, since, None)  # type: ignore[arg-type]


def counters(every: int) -> VersionCounters:
    spec = make_spec(metrics=ModelMetrics(log_every=every))
    return VersionCounters(log=DurationLog(spec, lambda: 1_700_000_000.4))


def written(caplog: pytest.LogCaptureFixture) -> dict[str, float]:
    found = [LINE.fullmatch(record.getMessage()) for record in caplog.records]
    assert all(found), caplog.messages
    return {match[1]: float(match[2]) for match in found if match}


def test_quantiles_are_written_after_so_many_requests(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trivium.model_metric")
    counted = counters(10)
    for number in range(10):
        assert not caplog.records
        run = Executed([number], [], 1.0, 1.001, 1.003, 1.006)
        counted.executed(run, 1, [item(number, 1.0 - number / 10)], 1.01)
    found = written(caplog)
    assert list(found) == [
        f"{name}_p{number}"
        for name in ("Preprocess", "Inference", "Postprocess", "Prediction")
        for number in (50, 90)
    ]
    assert found["Preprocess_p50"] == pytest.approx(1000, rel=0.02)
    assert found["Inference_p90"] == pytest.approx(2000, rel=0.02)
    assert found["Postprocess_p50"] == pytest.approx(3000, rel=0.02)
    assert found["Prediction_p50"] == pytest.approx(410_000, rel=0.02)
    assert found["Prediction_p90"] == pytest.approx(810_000, rel=0.02)
    caplog.clear()
    counted.executed(Executed([9], [], 1.0, 1.0, 1.0, 1.0), 1, [item(9, 1.0)], 1.0)
    assert not caplog.records


def test_answers_in_parts_have_a_whole_duration_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trivium.model_metric")
    counted = counters(2)
    for number in range(2):
        counted.streamed(item(number, 1.0), 1.5)
    assert list(written(caplog)) == ["Prediction_p50", "Prediction_p90"]


def test_a_line_is_one_line_whatever_a_name_holds() -> None:
    line = metric_line("A", "Count", 2.5, {"Model": "a|b,c\n#"}, 7.0)
    assert line == "A.Count:2.5|#Model:a_b_c__|7|g"
    assert metric_line("A", "Count", 3, {"Host": "h"}, 7.0) == "A.Count:3|#Host:h|7|g"
