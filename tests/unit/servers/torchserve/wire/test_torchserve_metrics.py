"""TorchServe's text for Prometheus, as prometheus-client's parser reads it, and the ways to ask for it."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from trivium.servers.torchserve.wire.metrics import exposed, make
from trivium.servers.torchserve.words.meter import MeterSettings, MetricsMode, TorchServeMeter
from trivium.servers.torchserve.words.metrics_config import DEFAULTS, DeclaredMetric, MetricsDeclarations
from trivium.types.by_type import ByType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Readiness, ResponsePart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head

SIZES = DeclaredMetric("Sizes of.things", "histogram", "B", ("le", "Hostname"))


def metered() -> TorchServeMeter:
    declared = MetricsDeclarations(DEFAULTS.server, {**DEFAULTS.models, SIZES.name: SIZES})
    meter = TorchServeMeter(MeterSettings(declared, MetricsMode.PROMETHEUS), "h", lambda: 0.0, print, print)
    meter.answered(200)
    meter.update("ts_inference_latency_microseconds", ('a"b\\c\nd', "default"), 5.7e7)
    for value in (0.3, 20):
        meter.measured({"kind": "histogram", "name": SIZES.name, "labels": {"le": "x"}, "observe": value})
    return meter


def ask(meter: TorchServeMeter, path: str = "/metrics", query: str = "", method: str = "GET") -> str:
    protocol = make(ProtocolContext(states=ByType(meter)))
    head = Head(method, path, query, {})
    _, encoder = protocol.decode(head, protocol.head(head), Body(b""))
    answer = encoder.encode(ResponsePart(answer=Readiness(True)))
    assert answer.status == 200
    assert b"Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n" in answer.fields
    assert b"x-request-id: " in answer.fields.lower()
    return b"".join(map(bytes, answer.buffers)).decode()


def test_the_parser_reads_names_kinds_labels_and_values() -> None:
    families = {family.name: family for family in text_string_to_metric_families(ask(metered()))}
    for metric in (*DEFAULTS.server.values(), *DEFAULTS.models.values()):
        family = families[metric.name.removesuffix("_total")]
        assert (family.type, family.documentation) == (
            metric.kind,
            f"Torchserve prometheus {metric.kind} metric with unit: {metric.unit}",
        )
    latency = families["ts_inference_latency_microseconds"].samples[0]
    assert latency.labels == {"model_name": 'a"b\\c\nd', "model_version": "default", "hostname": "h"}
    assert latency.value == 5.7e7
    samples = families["Sizes_of_things"].samples
    assert {sample.labels["le_"] for sample in samples} == {"x"}
    buckets = [(each.labels["le"], each.value) for each in samples if each.name.endswith("_bucket")]
    assert buckets[5:7] == [("0.1", 0), ("0.25", 0)]
    assert buckets[7] == ("0.5", 1)
    assert buckets[-1] == ("+Inf", 2)
    assert [each.value for each in samples if each.name.endswith(("_sum", "_count"))] == [2, 20.3]


def test_a_handlers_metric_with_the_name_of_the_servers_own_is_of_one_family_with_it() -> None:
    """As the original's page on metrics names one; a text with two families of one name is none."""
    settings = MeterSettings(mode=MetricsMode.PROMETHEUS, detects=True)
    meter = TorchServeMeter(settings, "h", lambda: 0.0, print, print)
    meter.update("MemoryUtilization", ("Host",), 2.5)
    labels = {"ModelName": "m", "Level": "Model"}
    step = {"kind": "gauge", "name": "MemoryUtilization", "unit": "Percent", "labels": labels}
    meter.measured({**step, "set": 5})
    with pytest.raises(ValueError, match="'MemoryUtilization' is a gauge of the server's own"):
        TorchServeMeter(settings, "h", lambda: 0.0, print, print).measured(
            {**step, "kind": "counter", "add": 5}
        )
    text = ask(meter)
    assert text.count("# TYPE MemoryUtilization ") == text.count("# HELP MemoryUtilization ") == 1
    (family,) = (one for one in text_string_to_metric_families(text) if one.name == "MemoryUtilization")
    assert [sample.value for sample in family.samples] == [2.5, 5]


def test_lines_are_the_originals() -> None:
    lines = exposed(metered()).decode().splitlines()
    assert 'Requests2XX{Level="Host",Hostname="h",} 1.0' in lines
    assert "# HELP CPUUtilization Torchserve prometheus gauge metric with unit: Percent" in lines
    assert "# TYPE CPUUtilization gauge" in lines
    assert any(line.endswith('model_version="default",hostname="h",} 5.7E7') for line in lines)


def test_samples_are_chosen_by_name() -> None:
    text = ask(metered(), query="name[]=Requests2XX&name%5B%5D=Requests4XX&name[]=nothing&other=1")
    assert text.splitlines()[2:] == ['Requests2XX{Level="Host",Hostname="h",} 1.0']
    assert text.count("# TYPE") == 1
    text = ask(metered(), query="name[]=Sizes_of_things_count")
    assert text.splitlines()[2:] == ['Sizes_of_things_count{le_="x",Hostname="h",} 2.0']


@pytest.mark.parametrize("mode", [MetricsMode.LOG, MetricsMode.LEGACY])
def test_other_modes_tell_nothing_or_the_three_oldest(mode: MetricsMode) -> None:
    lines: list[str] = []
    meter = TorchServeMeter(
        MeterSettings(mode=mode), "h", lambda: 0.0, *[lambda line, _: lines.append(line)] * 2
    )
    meter.answered(200)
    text = ask(meter)
    assert lines
    assert text.count("# TYPE") == (3 if mode is MetricsMode.LEGACY else 0)


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS", "BREW"])
def test_any_method_and_anything_behind_the_path(method: str) -> None:
    assert ask(metered(), "/metrics/more", method=method) == ask(metered())


def test_other_paths_and_queries_without_end_are_refused() -> None:
    protocol = make(ProtocolContext(states=ByType(metered())))
    for path in ("/", "", "/metric", "/v1/metrics"):
        with pytest.raises(ServeError) as caught:
            protocol.head(Head("GET", path, "", {}))
        assert caught.value.code is Code.NOT_FOUND
    head = Head("GET", "/metrics", "&".join(["name[]=a"] * 2000), {})
    with pytest.raises(ServeError) as caught:
        protocol.decode(head, protocol.head(head), Body(b""))
    assert caught.value.code is Code.INVALID
    assert protocol.refuse(caught.value).status == 400
