"""Metrics under TorchServe's own names at /metrics of a server that stands in for it, and who counts answers there."""

import pytest

from trivium.app import Site, http_routes
from trivium.catalogue import CATALOGUE
from trivium.config.loading import from_process
from trivium.servers.torchserve.wire.own_metrics import families
from trivium.servers.torchserve.words.meter import MeterSettings, TorchServeMeter
from trivium.servers.torchserve.words.metrics_config import DEFAULTS
from trivium.types.by_type import ByType
from trivium.types.errors import Code, ServeError
from trivium.types.metrics import DiskUse, GpuUse, MachineUse
from trivium.types.operations import ResponsePart
from trivium.types.payload import Raw, RawPart
from trivium.types.protocol_context import AnswerCounts
from trivium.types.statistics import Duration, MetricsReport, VersionMetrics, VersionStatistics
from trivium.types.wire import Body, Head

NONE = Duration()
MB, GB = 2**20, 2**30


def version(number: str) -> VersionMetrics:
    spent, waited, failed = Duration(2, 3_000_000), Duration(2, 1_000_000), Duration(1, 1)
    return VersionMetrics(
        VersionStatistics(
            *("m", number, 0, 9, 3, spent, failed, waited, NONE, NONE, NONE, (), {"queue full": 1}, 0, 0)
        )
    )


REPORT = MetricsReport(
    (version("1"), version("2")),
    machine=MachineUse(0.5, 4 * GB, GB, DiskUse(GB, 3 * GB)),
    gpus=(GpuUse(0, "u", 0.25, 8 * MB, 2 * MB),),
)
SERVED = {
    "Requests2XX": 7.0,
    "Requests4XX": 2.0,
    "Requests5XX": 4.0,
    "ts_inference_requests_total": 6.0,
    "ts_inference_latency_microseconds": 6000.0,
    "ts_queue_latency_microseconds": 2000.0,
    "CPUUtilization": 50.0,
    "MemoryUsed": 1024.0,
    "MemoryAvailable": 3072.0,
    "MemoryUtilization": 25.0,
    "DiskUsage": 1.0,
    "DiskAvailable": 3.0,
    "DiskUtilization": 25.0,
    "GPUMemoryUtilization": 25.0,
    "GPUMemoryUsed": 2.0,
    "GPUUtilization": 25.0,
}
OF_THE_LAST_REQUEST = {"QueueTime", "WorkerThreadTime", "WorkerLoadTime"}


def test_they_have_the_originals_names_kinds_and_labels() -> None:
    found = {family.name: family for family in families([0, 0, 7, 1, 2, 3, 0, 0, 0, 0], "h", REPORT)}
    values = {name: sum(one.value for one in family.series) for name, family in found.items()}
    assert values == SERVED
    assert found.keys() == DEFAULTS.server.keys() - OF_THE_LAST_REQUEST
    for name, family in found.items():
        metric = DEFAULTS.server[name]
        assert family.kind == metric.kind
        assert f"metric with unit: {metric.unit}" in family.help
        assert {label for series in family.series for label, _ in series.labels} == set(metric.dimensions)
    assert found["ts_inference_requests_total"].series[1].labels == (
        ("hostname", "h"),
        ("model_name", "m"),
        ("model_version", "2"),
    )


def test_what_is_not_measured_is_not_there() -> None:
    found = {family.name for family in families([0] * 10, "h", MetricsReport(()))}
    assert found == {"Requests2XX", "Requests4XX", "Requests5XX"}


def routes(profile: str, states: ByType, **options: object) -> dict[str, str]:
    config = from_process(CATALOGUE.schema, None, {"profile": profile, **options}).config
    listener = CATALOGUE.profiles[profile].listeners[0]
    protocols, _ = http_routes(Site(CATALOGUE, config, states=states), listener)
    ask = Head("POST", "/predictions/m", "", {})
    predictions = protocols["predictions"]
    _, encoder = predictions.decode(ask, predictions.head(ask), Body(b"x"))
    encoder.encode(ResponsePart(payload=Raw((RawPart(b"x"),)), final=False))
    encoder.encode(ResponsePart(payload=Raw((RawPart(b"y"),))))
    predictions.refuse(ServeError(Code.NOT_FOUND, "no"))
    told = {}
    head = Head("GET", "/metrics", "", {})
    scraped = protocols["metrics"]
    _, encoder = scraped.decode(head, scraped.head(head), Body(b""))
    answer = encoder.encode(ResponsePart(answer=REPORT))
    for line in b"".join(map(bytes, answer.buffers)).decode().splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            told[name.partition("{")[0]] = value
    return told


def test_they_stand_with_ours_and_answers_are_counted() -> None:
    states = ByType()
    told = routes("torchserve", states)
    assert states.of(AnswerCounts).by_digit == [
        0,
        0,
        2,
        0,
        1,
        0,
        0,
        0,
        0,
        0,
    ]  # the scrape counts, too, once it is written
    assert (told["Requests2XX"], told["Requests4XX"]) == ("1", "1")
    assert "nv_inference_count" in told


@pytest.mark.parametrize(("profile", "options"), [("djl", {}), ("native", {})])
def test_elsewhere_they_are_not_there_and_nobody_counts(profile: str, options: dict[str, object]) -> None:
    states = ByType()
    told = routes(profile, states, **options)
    assert not any(states.of(AnswerCounts).by_digit)
    assert not DEFAULTS.server.keys() & told.keys()


def test_a_server_that_keeps_its_own_tells_these_alone() -> None:
    states = ByType(TorchServeMeter(MeterSettings(), "h", lambda: 0.0, print, print))
    assert routes("torchserve-command", states) == {}
    assert not any(states.of(AnswerCounts).by_digit)
