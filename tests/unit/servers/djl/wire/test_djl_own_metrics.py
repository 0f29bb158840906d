"""Metrics under DJL's own names: at /server/metrics, and at /metrics of a server that stands in for DJL's."""

import re

import pytest

from trivium.app import Site, http_routes
from trivium.catalogue import CATALOGUE
from trivium.config.loading import from_process
from trivium.servers.djl.wire import http
from trivium.servers.djl.wire.config import DjlConfig
from trivium.servers.djl.wire.meter import DjlMeter
from trivium.servers.djl.wire.own_metrics import families
from trivium.types.by_type import ByType
from trivium.types.errors import Code, ServeError
from trivium.types.listeners import Role
from trivium.types.metrics import GpuUse
from trivium.types.operations import ResponsePart
from trivium.types.payload import Raw, RawPart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.statistics import (
    BatchStatistics,
    Duration,
    MetricsReport,
    VersionMetrics,
    VersionStatistics,
)
from trivium.types.wire import Body, Head

NONE = Duration()
INF = float("inf")


def version(number: str, **more: object) -> VersionMetrics:
    spent = Duration(2, 3_000_000)
    batches = (BatchStatistics(1, NONE, Duration(1, 1), NONE), BatchStatistics(4, NONE, Duration(2, 1), NONE))
    counts = VersionStatistics(
        *("m", number, 0, 9, 3, spent, NONE, spent, NONE, NONE, NONE, batches, {}, 0, 0),
        queue_wait_buckets=((0.001, 1), (INF, 1)),
        success_buckets=((0.002, 2), (INF, 0)),
        **more,  # type: ignore[arg-type]
    )
    return VersionMetrics(counts)


REPORT = MetricsReport(
    (
        version(
            "1", quantiles={"success": ((0.5, 0.001), (0.99, 1.0)), "compute_infer": ((0.9, INF - INF),)}
        ),
        version("2"),
    ),
    gpus=(GpuUse(0, "u", memory_used=7),),
)
EXPECTED = """
Response_2XX_total{Host="h"} 1
Response_4XX_total{Host="h"} 1
Response_5XX_total{Host="h"} 2
ServerError_total{Host="h"} 1
WlmError_total{Host="h"} 1
QueueTime_count{Model="m"} 4
QueueTime_sum{Model="m"} 6000
QueueTime_bucket{Model="m",le="1000"} 2
QueueTime_bucket{Model="m",le="+Inf"} 4
RequestLatency_count{Model="m"} 4
RequestLatency_bucket{Model="m",le="2000"} 4
DynamicBatchSize{Model="m",Version="1"} 3
Prediction_p50{Model="m",Version="1"} 1000
GPUMemory_0{Host="h"} 7
"""


def answered_meter() -> DjlMeter:
    meter = DjlMeter()
    meter.answered(200)
    meter.answered(424)
    for code in (Code.INTERNAL, Code.QUEUE_FULL):
        meter.refused(ServeError(code, "x"), 500)
    return meter


def written(protocol: http.WireProtocol, path: str, query: str = "") -> str:
    head = Head("GET", path, query, {})
    answer = protocol.decode(head, protocol.head(head), Body(b""))[1].encode(ResponsePart(answer=REPORT))
    assert answer.status == 200
    return b"".join(answer.buffers).decode()


@pytest.mark.parametrize("line", EXPECTED.split("\n")[1:-1])
def test_each_has_the_originals_name_and_its_first_dimension(line: str) -> None:
    context = ProtocolContext(
        own=ByType(DjlConfig(prometheus=True)), host="h", states=ByType(answered_meter())
    )
    said = written(http.make(context), "/server/metrics").split("\n")
    assert line in said
    assert not any(name in one for one in said for name in ("Inference_p90", "Prediction_p99"))


def test_a_request_may_name_some() -> None:
    context = ProtocolContext(own=ByType(DjlConfig(prometheus=True)), host="h")
    said = written(http.make(context), "/server/metrics", "name[]=WlmError&name[]=QueueTime")
    assert set(re.findall(r"^# TYPE (\w+)", said, re.MULTILINE)) == {"WlmError_total", "QueueTime"}


@pytest.mark.parametrize(("profile", "has_them"), [("djl", True), ("native", False), ("torchserve", False)])
def test_the_servers_metrics_have_them_where_it_stands_in_for_djls(profile: str, has_them: bool) -> None:
    config = from_process(CATALOGUE.schema, None, {"profile": profile}).config
    listener = next(each for each in CATALOGUE.profiles[profile].listeners if each.role is Role.INFERENCE)
    owners, fallback = http_routes(Site(CATALOGUE, config), listener)
    djl = owners.get("predictions", fallback)
    if profile == "djl":
        head = Head("POST", "/predictions/m", "", {})
        encoder = djl.decode(head, djl.head(head), Body(b""))[1]
        encoder.encode(ResponsePart(payload=Raw((RawPart(b"x"),))))
    said = written(owners["metrics"], "/metrics")
    assert ("Response_2XX_total" in said) is has_them
    assert "nv_inference_count" in said
    if has_them:
        assert re.search(r'^Response_2XX_total\{Host="[^"]+"\} 1$', said, re.MULTILINE)


def test_families_are_sorted_and_each_is_there_once() -> None:
    names = [family.name for family in families(DjlMeter(), "h", REPORT)]
    assert names == sorted(set(names))
