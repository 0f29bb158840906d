"""`GET /metrics`: Triton's families as a scrape of 2.51.0 had them, ours behind them, and what is refused."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from trivium.types.errors import Code, ServeError
from trivium.types.metrics import CacheUse, GpuUse, MachineUse, MetricFamily, MetricSeries
from trivium.types.operations import CollectMetrics, Listing, ResponsePart
from trivium.types.statistics import (
    BatchStatistics,
    Duration,
    GenerationStatistics,
    MetricsReport,
    VersionMetrics,
    VersionStatistics,
)
from trivium.types.wire import Body, Head
from trivium.wires.prometheus.http import MetricsOptions, PrometheusHttp, ReportEncoder

INF = math.inf
SECOND = 10**9
FAILURES = {"expired": 1, "cancelled": 2, "model failed": 3, "worker died": 4, "invalid": 5}
COUNTS = VersionStatistics(
    model="m",
    version="1",
    last=0,
    rows=7,
    executions=4,
    success=Duration(3, 91_402_999),
    fail=Duration(15, SECOND),
    queue=Duration(3, 757_000),
    compute_input=Duration(3, 1_327_000),
    compute_infer=Duration(3, 87_140_000),
    compute_output=Duration(3, 2_128_000),
    batches=(
        BatchStatistics(1, Duration(1), Duration(1, 5), Duration(1)),
        BatchStatistics(3, Duration(2), Duration(2, 9), Duration(2)),
        BatchStatistics(300, Duration(1), Duration(1, 9), Duration(1)),
    ),
    failures=FAILURES,
    wasted=2,
    queued_items=6,
    queue_wait_buckets=((0.001, 2), (INF, 1)),
    success_buckets=((0.05, 3), (INF, 0)),
    quantiles={"success": ((0.5, 0.001009), (0.99, math.nan))},
    first_part=Duration(1, 147 * 10**6),
    first_part_buckets=((0.1, 0), (0.5, 1), (INF, 0)),
    cache_hit=Duration(5, 60_000),
    cache_miss=Duration(1, 9_000),
)
CACHING = VersionMetrics(COUNTS, {"team": "red"}, 0, caches=True)
GPU = GpuUse(0, "GPU-1", 0.4, 1000, 300, 75.5, 300.0, 2.5)
REPORT = MetricsReport((CACHING,), (), MachineUse(0.25, 1000, 400), (GPU, GpuUse(1, "GPU-2")))
ALL = MetricsOptions(True, True, True)
LABELS = '{_team="red",gpu_uuid="GPU-1",model="m",version="1"}'


def written(report=REPORT, which=ALL):
    answer = ReportEncoder(which).encode(ResponsePart(answer=report))
    assert (answer.status, answer.fields) == (200, b"Content-Type: text/plain; charset=utf-8\r\n")
    body = b"".join(answer.buffers)
    assert len(body) == answer.size
    return body.decode()


def names(text):
    return [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]


def values(text, name):
    return {line.rpartition(" ")[0].removeprefix(name): line.rpartition(" ")[2] for line in text.splitlines()
            if line.startswith((f"{name} ", f"{name}{{"))}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nv_inference_request_success", "3"),
        ("nv_inference_count", "7"),
        ("nv_inference_exec_count", "4"),
        ("nv_inference_request_duration_us", "91402"),
        ("nv_inference_queue_duration_us", "757"),
        ("nv_inference_compute_input_duration_us", "1327"),
        ("nv_inference_compute_infer_duration_us", "87140"),
        ("nv_inference_compute_output_duration_us", "2128"),
        ("nv_inference_pending_request_count", "6"),
        ("nv_cache_num_hits_per_model", "5"),
        ("nv_cache_hit_duration_per_model", "60"),
        ("nv_cache_num_misses_per_model", "1"),
        ("nv_cache_miss_duration_per_model", "9"),
        ("trivium_wasted_items_total", "2"),
    ],
)
def test_each_counter_of_a_version(name, value):
    assert values(written(), name) == {LABELS: value}


def test_failures_have_four_reasons_that_add_up():
    found = values(written(), "nv_inference_request_failure")
    inside = '{{_team="red",gpu_uuid="GPU-1",model="m",reason="{}",version="1"}}'
    assert found == {
        inside.format("REJECTED"): "1",
        inside.format("CANCELED"): "2",
        inside.format("BACKEND"): "7",
        inside.format("OTHER"): "5",
    }
    assert sum(map(int, found.values())) == COUNTS.fail.count


def test_they_are_there_from_the_start():
    fresh = VersionStatistics("m", "1", 0, 0, 0, *[Duration()] * 6, (), {}, 0, 0)
    found = values(written(MetricsReport((VersionMetrics(fresh),))), "nv_inference_request_failure")
    assert list(found.values()) == ["0"] * 4


def test_the_machine_and_its_gpus():
    text = written()
    assert values(text, "nv_cpu_utilization") == {"": "0.25"}
    assert values(text, "nv_cpu_memory_total_bytes") == {"": "1000"}
    assert values(text, "nv_cpu_memory_used_bytes") == {"": "400"}
    assert values(text, "nv_pinned_memory_pool_used_bytes") == {"": "0"}
    first = '{gpu_uuid="GPU-1"}'
    for name, value in {
        "nv_gpu_utilization": "0.4",
        "nv_gpu_memory_total_bytes": "1000",
        "nv_gpu_memory_used_bytes": "300",
        "nv_gpu_power_usage": "75.5",
        "nv_gpu_power_limit": "300",
        "nv_energy_consumption": "2.5",
    }.items():
        assert values(text, name) == {first: value}


def test_the_cache_of_all_models():
    use = CacheUse(
        limit=1000,
        used=250,
        entries=3,
        hits=5,
        misses=4,
        evictions=1,
        lookup_seconds=0.002,
        insertion_seconds=1e-5,
    )
    text = written(MetricsReport((), cache=use))
    found = {name: values(text, f"nv_cache_{name}")[""] for name in (
        "util", "num_entries", "num_lookups", "num_hits", "num_misses", "num_evictions",
        "lookup_duration", "insertion_duration",
    )}  # fmt: skip
    assert list(found.values()) == ["0.25", "3", "9", "5", "4", "1", "2000", "10"]
    assert "nv_cache_util" not in names(written())


def test_what_is_not_read_has_no_family():
    found = names(written(MetricsReport((CACHING,))))
    assert not [name for name in found if name.startswith(("nv_cpu", "nv_gpu", "nv_energy"))]


def test_without_models_the_families_are_named_all_the_same():
    found = names(written(MetricsReport(()), MetricsOptions()))
    assert found[:3] == ["nv_inference_request_success", "nv_inference_request_failure", "nv_inference_count"]
    assert "nv_cache_num_hits_per_model" in found


def test_what_was_not_asked_for_is_not_shown():
    plain = set(names(written(which=MetricsOptions())))
    assert set(names(written(which=MetricsOptions(durations=False)))) == plain - {
        name for name in plain if name.startswith("nv_") and "duration" in name
    }
    assert set(names(written())) - plain == {
        "nv_inference_first_response_histogram_ms",
        *(f"nv_inference_{part}_summary_us" for part in
          ("request", "queue", "compute_input", "compute_infer", "compute_output")),
    }  # fmt: skip


def test_quantiles_are_microseconds():
    lines = [line for line in written().splitlines() if line.startswith("nv_inference_request_summary_us")]
    inside = '{_team="red",gpu_uuid="GPU-1",model="m",version="1"'
    assert lines == [
        f"nv_inference_request_summary_us_count{inside}}} 3",
        f"nv_inference_request_summary_us_sum{inside}}} 91402",
        f'nv_inference_request_summary_us{inside},quantile="0.5"}} 1009',
        f'nv_inference_request_summary_us{inside},quantile="0.99"}} Nan',
    ]


def test_first_parts_are_milliseconds():
    found = values(written(), "nv_inference_first_response_histogram_ms_bucket")
    assert [label.rpartition("le=")[2] for label in found] == ['"100"}', '"500"}', '"+Inf"}']
    assert list(found.values()) == ["0", "1", "1"]


def test_our_histograms():
    text = written()
    assert list(values(text, "trivium_queue_wait_seconds_bucket").values()) == ["2", "3"]
    assert list(values(text, "trivium_request_seconds_bucket").values()) == ["3", "3"]
    assert list(values(text, "trivium_batch_rows_bucket").values()) == ["1", "1", *["3"] * 7, "4"]
    assert values(text, "trivium_batch_rows_sum") == {LABELS: "307"}
    codes = {label.partition('code="')[2].partition('"')[0]: n for label, n in
             values(text, "trivium_request_failures_total").items()}  # fmt: skip
    assert codes == {
        "cancelled": "2",
        "expired": "1",
        "invalid": "5",
        "model_failed": "3",
        "worker_died": "4",
    }


CUSTOM = (
    MetricFamily("my_counter", "counter", "mine", (MetricSeries((("a", 'q"\\\n'), ("b", "2")), 2.5),)),
    MetricFamily("my_hist", "histogram", "h", (MetricSeries((("le", "x"),), 20.5, 2, ((1.0, 1), (INF, 1))),)),
    MetricFamily("my_gauge", "gauge", "g", (MetricSeries((), -1.0),)),
)


def test_custom_metrics_stand_behind_the_servers_of_their_kind():
    text = written(MetricsReport((CACHING,), CUSTOM))
    order = names(text)
    assert order.index("my_counter") == order.index("nv_inference_pending_request_count") - 1
    assert order.index("my_gauge") == order.index("nv_pinned_memory_pool_used_bytes") + 1
    assert order.index("my_hist") == order.index("nv_inference_first_response_histogram_ms") + 1
    assert 'my_counter{a="q\\"\\\\\\n",b="2"} 2.5' in text
    assert 'my_hist_bucket{le_="x",le="+Inf"} 2' in text


NAMES = st.sampled_from(
    ["x", "x_count", "x y", "nv_inference_count", "1", "le", "trivium_request_seconds_sum"]
)
LABEL_SETS = st.lists(st.tuples(NAMES, NAMES), max_size=2, unique_by=lambda pair: pair[0]).map(tuple)
SERIES = st.builds(lambda labels: MetricSeries(labels, 1.0, 1, ((INF, 1),)), LABEL_SETS)
FAMILIES = st.builds(
    MetricFamily,
    NAMES,
    st.sampled_from(["counter", "gauge", "histogram"]),
    NAMES,
    st.lists(SERIES, max_size=3, unique_by=lambda series: series.labels).map(tuple),
)


@given(st.lists(FAMILIES, max_size=4, unique_by=lambda family: family.name).map(tuple))
def test_whatever_models_count_the_text_can_be_read(families):
    text = written(MetricsReport((CACHING,), families))
    found = names(text)
    assert len(found) == len(set(found))
    samples = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(samples) == len(set(samples))
    custom = sum(len(family.series) * (4 if family.kind == "histogram" else 1) - (family.kind == "histogram")
                 * len(family.series) for family in families)  # fmt: skip
    assert len(samples) == custom + len(written(MetricsReport((CACHING,))).splitlines()) - 2 * len(
        names(written(MetricsReport((CACHING,))))
    )
    assert len(list(text_string_to_metric_families(text))) >= len(found)


def head(path="/metrics", method="GET"):
    return Head(method, path, "", {})


@pytest.mark.parametrize("path", ["/metrics", "/metrics/"])
def test_the_route(path):
    protocol = PrometheusHttp(MetricsOptions())
    target = protocol.head(head(path))
    assert not target.takes_body
    operation, _ = protocol.decode(head(path), target, Body(b""))
    assert operation == CollectMetrics()
    assert not protocol.is_costly(head(path), bytes(10**6))


@pytest.mark.parametrize(
    ("path", "method", "status"), [("/", "GET", 404), ("/metricsx", "GET", 404), ("/metrics", "POST", 405)]
)
def test_all_else_is_refused(path, method, status):
    protocol = PrometheusHttp(MetricsOptions())
    with pytest.raises(ServeError) as caught:
        protocol.head(head(path, method))
    answer = protocol.refuse(caught.value)
    assert answer.status == status
    assert json.loads(b"".join(answer.buffers))["error"]
    assert (b"Allow: GET, HEAD\r\n" in answer.fields) == (status == 405)


def test_an_error_instead_of_a_report():
    encoder = ReportEncoder(MetricsOptions())
    answer = encoder.encode(ResponsePart(error=ServeError(Code.DRAINING, "going \udc80 down")))
    assert answer.status == 503
    assert json.loads(b"".join(answer.buffers)) == {"error": "going \\udc80 down"}
    assert encoder.encode(ResponsePart(answer=Listing(()))).status == 500


def test_help_and_types_are_the_originals():
    text = written(MetricsReport((CACHING,), (), MachineUse(0, 0, 0)))
    ours = dict(zip(*[iter(line for line in text.splitlines() if line.startswith("# "))] * 2, strict=True))
    scraped = (Path(__file__).parent / "scrape-2.51.txt").read_text().splitlines()
    theirs = dict(zip(*[iter(scraped)] * 2, strict=True))
    assert len(theirs) > 20
    assert {line: ours.get(line) for line in theirs} == theirs


def test_the_manual_has_every_family():
    use = CacheUse(1, 0, 0, 0, 0, 0, 0.0, 0.0)
    manual = (Path(__file__).parents[4] / "docs" / "metrics.md").read_text()
    for name in names(written(MetricsReport((CACHING,), (), MachineUse(0, 0, 0), (GPU,), use))):
        assert f"`{name}`" in manual


def test_tokens_are_counted_of_versions_that_generate_alone():
    def told(report):
        answer = ReportEncoder(ALL).encode(ResponsePart(answer=report))
        text = b"".join(answer.buffers).decode()
        return {family.name: family for family in text_string_to_metric_families(text)}

    counts = GenerationStatistics(
        3,
        40,
        2,
        Duration(20, SECOND),
        Duration(2, SECOND // 2),
        ((0.1, 1), (INF, 1)),
        Duration(38, SECOND),
        4,
        0.25,
        2**31,
        queried_tokens=9,
        cached_tokens=6,
    )
    assert not [name for name in told(REPORT) if "token" in name or "generation" in name]
    generating = VersionMetrics(structs.replace(COUNTS, generation=counts))
    found = told(MetricsReport((generating, CACHING)))
    values = {
        sample.name: sample.value
        for family in found.values()
        for sample in family.samples
        if ("token" in sample.name or "generation" in sample.name) and "le" not in sample.labels
    }
    assert values == {
        "trivium_prompt_tokens_total": 3,
        "trivium_generated_tokens_total": 40,
        "trivium_wasted_tokens_total": 2,
        "trivium_prefix_cache_queried_tokens_total": 9,
        "trivium_prefix_cache_hit_tokens_total": 6,
        "trivium_generation_steps_total": 20,
        "trivium_generation_step_seconds_total": 1,
        "trivium_generation_running": 4,
        "trivium_generation_waiting": 6,
        "trivium_generation_cache_share": 0.25,
        "trivium_generation_cache_used_bytes": 2**29,
        "trivium_generation_cache_bytes": 2**31,
        "trivium_first_token_seconds_count": 2,
        "trivium_first_token_seconds_sum": 0.5,
        "trivium_between_tokens_seconds_count": 38,
        "trivium_between_tokens_seconds_sum": 1,
    }


def scraped(report, **which):
    answer = ReportEncoder(MetricsOptions(**which)).encode(ResponsePart(answer=report))
    text = b"".join(answer.buffers).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


GENERATION = GenerationStatistics(
    30,
    40,
    2,
    Duration(20, SECOND),
    Duration(2, SECOND // 2),
    ((0.1, 1), (INF, 1)),
    Duration(38, SECOND),
    4,
    0.25,
    2**20,
    ((0.05, 38), (INF, 0)),
    ((16.0, 2), (INF, 0)),
    ((32.0, 2), (INF, 0)),
    {"eos": 1, "stop": 1, "length": 3},
    50,
    20,
)


def test_the_names_of_vllm_are_there_where_they_are_asked_for():
    generating = VersionMetrics(structs.replace(COUNTS, generation=GENERATION))
    other = VersionMetrics(structs.replace(COUNTS, version="2", generation=GENERATION))
    report = MetricsReport((generating, other, CACHING))
    assert not [name for name in scraped(report) if name.startswith("vllm")]
    assert not [name for name in scraped(REPORT, vllm=True) if name.startswith("vllm")]
    found = scraped(report, vllm=True)
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for name, family in found.items()
        if name.startswith("vllm")
        for sample in family.samples
    }
    labels = (("engine", "0"), ("model_name", COUNTS.model))
    assert samples["vllm:num_requests_running", *labels] == 4
    assert samples["vllm:num_requests_waiting", *labels] == COUNTS.queued_items
    assert samples["vllm:kv_cache_usage_perc", *labels] == 0.25
    assert samples["vllm:generation_tokens_total", *labels] == 40
    assert samples["vllm:time_to_first_token_seconds_bucket", labels[0], ("le", "0.1"), labels[1]] == 1
    assert samples["vllm:inter_token_latency_seconds_count", *labels] == 38
    assert samples["vllm:request_prompt_tokens_sum", *labels] == 50
    assert samples["vllm:prompt_tokens_total", *labels] == 50
    assert samples["vllm:prefix_cache_queries_total", *labels] == 50
    assert samples["vllm:prefix_cache_hits_total", *labels] == 20
    reasons = {key[2][1]: value for key, value in samples.items() if key[0] == "vllm:request_success_total"}
    assert reasons == {"stop": 2, "length": 3, "abort": 0, "error": 0}
    assert samples["vllm:num_requests_running", ("engine", "1"), ("model_name", COUNTS.model)] == 4
    manual = (Path(__file__).parents[4] / "docs" / "metrics.md").read_text()
    for name in filter(lambda one: one.startswith("vllm"), found):
        kind = found[name].type
        assert f"`{name}_total`" in manual if kind == "counter" else f"`{name}`" in manual


def test_fields_without_effect_are_counted_by_model():
    assert "trivium_ignored_fields" not in scraped(REPORT)
    (sample,) = scraped(REPORT, ignored=lambda: {"m": 3})["trivium_ignored_fields"].samples
    assert (sample.name, sample.labels, sample.value) == ("trivium_ignored_fields_total", {"model": "m"}, 3)
