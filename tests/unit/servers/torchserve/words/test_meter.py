"""Metrics as they are updated: kept or written, declared or not, by every mode."""

from collections.abc import Mapping

import pytest

from trivium.servers.torchserve.words.meter import (
    MOST_DETECTED,
    MOST_SERIES,
    MeterSettings,
    MetricsMode,
    TorchServeMeter,
)
from trivium.servers.torchserve.words.metric_lines import java_number
from trivium.servers.torchserve.words.metrics_config import DEFAULTS, DeclaredMetric, MetricsDeclarations

LOG, PROMETHEUS, LEGACY = MetricsMode
LABELS = {"ModelName": "m", "Level": "Model"}


class Metered:
    def __init__(
        self,
        mode: MetricsMode,
        detects: bool = False,
        models: Mapping[str, DeclaredMetric] = DEFAULTS.models,
    ) -> None:
        self.server: list[str] = []
        self.models: list[str] = []
        declared = MetricsDeclarations(DEFAULTS.server, models)
        settings = MeterSettings(declared, mode, detects)
        self.meter = TorchServeMeter(
            settings,
            "h",
            lambda: 1_700_000_000.4,
            lambda line, _: self.server.append(line),
            lambda line, _: self.models.append(line),
        )

    def values(self) -> dict[tuple[str, ...], float]:
        return {
            (metric.name, *labels): one.value
            for metric, series in self.meter.kept.items()
            for labels, one in series.items()
        }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0"),
        (1, "1.0"),
        (-0.5, "-0.5"),
        (0.001, "0.001"),
        (0.0009765625, "9.765625E-4"),
        (9_999_999, "9999999.0"),
        (1e7, "1.0E7"),
        (57_000_000, "5.7E7"),
        (123456789.25, "1.2345678925E8"),
        (-1e300, "-1.0E300"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_are_written_as_java_does(value: float, text: str) -> None:
    assert java_number(value) == text


def test_in_log_mode_each_update_is_a_line_and_nothing_is_kept() -> None:
    metered = Metered(LOG)
    metered.meter.answered(200)
    metered.meter.update("ts_queue_latency_microseconds", ("m", "default"), 12.5)
    assert metered.server == [
        "Requests2XX.Count:1.0|#Level:Host|#hostname:h,timestamp:1700000000",
        "ts_queue_latency_microseconds.Microseconds:12.5|#model_name:m,model_version:default|#hostname:h,"
        "timestamp:1700000000",
    ]
    metered.meter.measured(
        {"kind": "gauge", "name": "PredictionTime", "labels": LABELS, "set": 0.8, "request": "one,two"}
    )
    metered.meter.measured({"kind": "gauge", "name": "HandlerTime", "labels": LABELS, "set": 2})
    assert metered.models == [
        "PredictionTime.ms:0.8|#ModelName:m,Level:Model|#hostname:h,requestID:one,two,timestamp:1700000000",
        "HandlerTime.ms:2.0|#ModelName:m,Level:Model|#hostname:h,requestID:null,timestamp:1700000000",
    ]
    assert not metered.meter.kept


def test_in_prometheus_mode_everything_is_kept_and_nothing_written() -> None:
    metered = Metered(PROMETHEUS)
    for status in (200, 201, 404, 507, 302, 101):
        metered.meter.answered(status)
    metered.meter.update("QueueTime", ("Host",), 3)
    metered.meter.update("QueueTime", ("Host",), 1)
    metered.meter.measured({"kind": "gauge", "name": "HandlerTime", "labels": LABELS, "set": 2})
    assert metered.values() == {
        ("Requests2XX", "Host", "h"): 2,
        ("Requests4XX", "Host", "h"): 1,
        ("Requests5XX", "Host", "h"): 3,
        ("QueueTime", "Host", "h"): 1,
        ("HandlerTime", "m", "Model", "h"): 2,
    }
    assert not metered.server + metered.models
    assert {metric.name for metric in metered.meter.kept} == {*DEFAULTS.server, *DEFAULTS.models}


def test_in_legacy_mode_the_three_oldest_are_kept() -> None:
    metered = Metered(LEGACY)
    metered.meter.update("ts_inference_requests_total", ("m", "1.0"), 1)
    metered.meter.update("QueueTime", ("Host",), 3)
    assert metered.values() == {("ts_inference_requests_total", "m", "1.0", "h"): 1}
    assert len(metered.server) == 1
    assert len(metered.meter.kept) == 3


@pytest.mark.parametrize("mode", MetricsMode)
def test_what_is_not_declared_is_dropped_or_detected(mode: MetricsMode) -> None:
    step = {"kind": "counter", "name": "Mine", "unit": "Count", "labels": LABELS, "add": 2.0}
    metered = Metered(mode)
    metered.meter.measured(step)
    assert not metered.models
    assert not metered.values()
    metered = Metered(mode, detects=True)
    metered.meter.measured(step)
    metered.meter.measured(step)
    if mode is PROMETHEUS:
        assert metered.values() == {("Mine", "m", "Model", "h"): 4}
    else:
        line = "Mine.Count:2.0|#ModelName:m,Level:Model|#hostname:h,requestID:null,timestamp:1700000000"
        assert metered.models == [line, line]
    with pytest.raises(ValueError, match="has the dimensions ModelName, Level by its declaration"):
        metered.meter.measured({**step, "labels": {}})


def test_the_declaration_says_the_kind_and_histograms_have_the_originals_buckets() -> None:
    sizes = DeclaredMetric("Sizes", "histogram", "B", ("Hostname",))
    only = DeclaredMetric("Only", "counter", "Count", ("Hostname",))
    metered = Metered(PROMETHEUS, models={"Sizes": sizes, "Only": only})
    for value in (0.004, 0.005, 0.3, 11):
        metered.meter.measured({"kind": "gauge", "name": "Sizes", "set": value})
    (one,) = metered.meter.kept[sizes].values()
    assert one.value == pytest.approx(11.309)
    assert one.counts == [2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]
    metered.meter.measured({"kind": "gauge", "name": "Only", "set": 2.0})
    with pytest.raises(ValueError, match="only grows"):
        metered.meter.measured({"kind": "gauge", "name": "Only", "set": -2.0})
    with pytest.raises(ValueError, match="no number"):
        metered.meter.measured({"kind": "gauge", "name": "Only", "set": float("nan")})
    assert metered.values()["Only", "h"] == 2


def test_a_label_of_many_values_and_a_text_of_many_lines_do_no_harm() -> None:
    models = {"A": DeclaredMetric("A", "gauge", "s", ("id", "Hostname"))}
    metered = Metered(PROMETHEUS, models=models)
    for number in range(MOST_SERIES):
        metered.meter.measured({"kind": "gauge", "name": "A", "labels": {"id": str(number)}, "set": 1.0})
    with pytest.raises(ValueError, match=f"there are {MOST_SERIES} series already"):
        metered.meter.measured({"kind": "gauge", "name": "A", "labels": {"id": "more"}, "set": 1.0})
    metered = Metered(LOG, models=models)
    evil = "x\nRequests2XX.Count:1.0|#Level:Host,"
    metered.meter.measured(
        {"kind": "gauge", "name": "A", "labels": {"id": evil}, "set": 1.0, "request": "a\nb"}
    )
    (line,) = metered.models
    assert "\n" not in line
    assert line.count("|#") == 2


def test_a_series_of_what_is_gone_makes_room() -> None:
    metered = Metered(PROMETHEUS)
    for number in range(MOST_SERIES + 1):  # one too many is dropped, and hurts nobody
        metered.meter.update("WorkerLoadTime", (str(number), "Host"), 1.0)
    assert len(metered.values()) == MOST_SERIES
    metered.meter.update("QueueTime", ("Host",), 1.0)
    assert ("QueueTime", "Host", "h") not in metered.values()
    for _ in range(2):
        metered.meter.forget("WorkerLoadTime", ("7", "Host"))
    metered.meter.update("QueueTime", ("Host",), 1.0)
    assert ("WorkerLoadTime", "7", "Host", "h") not in metered.values()
    assert metered.values()["QueueTime", "Host", "h"] == 1
    metered.meter.forget("Unknown", ("7",))
    Metered(LOG).meter.forget("WorkerLoadTime", ("7", "Host"))


def test_metrics_that_are_detected_have_a_bound() -> None:
    metered = Metered(LOG, detects=True)
    for number in range(MOST_DETECTED):
        metered.meter.measured({"kind": "gauge", "name": f"M{number}", "set": 1.0})
    with pytest.raises(ValueError, match="is one too many: 1000 have been made without a declaration"):
        metered.meter.measured({"kind": "gauge", "name": "More", "set": 1.0})
    metered.meter.measured({"kind": "gauge", "name": "M7", "set": 1.0})
    assert len(metered.models) == MOST_DETECTED + 1
