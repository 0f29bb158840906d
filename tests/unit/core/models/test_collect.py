"""A scrape: the counters of what serves, custom metrics and the machine, in one answer; the time to a first part."""

import asyncio

import pytest
from tests.harness.fake_models import serving, spec
from tests.harness.virtual_models import make_infer, make_spec

from trivium.core.models.collect import gpu_of, use_of
from trivium.core.observability.custom_metrics import CustomMetrics
from trivium.core.queueing.payload_adapter import PayloadAdapter
from trivium.core.queueing.response_cache import ResponseCache
from trivium.core.queueing.responses import ResponseDispatcher, TimedResponseDispatcher, answering
from trivium.core.request import Item
from trivium.types.errors import Code, ServeError
from trivium.types.metrics import CacheUse, Measurements, MetricSeries, ModelMetrics
from trivium.types.operations import CollectMetrics, Load, Unload
from trivium.types.payload import PayloadKind, Tensors
from trivium.types.running import Part
from trivium.types.spec import Device, InstanceGroup
from trivium.types.statistics import Duration


def test_a_report_of_all_that_serves():
    async def scene():
        marked = spec("b", metrics=ModelMetrics({"team": "red"}), caches=True)
        async with serving(spec("a"), marked) as scene:
            await scene.stamp("a")
            scene.server.metrics.take("a", {"kind": "gauge", "name": "g", "set": 2.0})
            report = (await scene.server.execute(CollectMetrics())).answer
            assert [(row.statistics.model, row.statistics.success.count) for row in report.versions] == [
                ("a", 1),
                ("b", 0),
            ]
            assert [(row.labels, row.caches, row.gpu) for row in report.versions] == [
                ({}, False, None),
                ({"team": "red"}, True, None),
            ]
            assert [family.name for family in report.custom] == ["g"]
            assert report.machine is None or 0 <= report.machine.cpu <= 1

    asyncio.run(scene())


def test_what_a_model_counts_goes_when_it_is_unloaded_and_not_before():
    async def scene():
        async with serving(spec("a"), spec("b")) as scene:
            for model in ("a", "b"):
                scene.server.metrics.take(model, {"kind": "counter", "name": model, "add": 1})
            await scene.server.execute(Load("a"))
            await scene.until(lambda: scene.engine.closed)
            assert [family.name for family in scene.server.metrics.report()] == ["a", "b"]
            await scene.server.execute(Unload("a"))
            await scene.until(lambda: [family.name for family in scene.server.metrics.report()] == ["b"])

    asyncio.run(scene())


def test_a_server_that_goes_down_answers_those_who_wait():
    async def scene():
        async with serving(spec()) as scene:
            waiting = asyncio.ensure_future(scene.server.execute(CollectMetrics()))
            await asyncio.sleep(0)
            await scene.server.close()
            with pytest.raises(ServeError) as caught:
                await waiting
            assert caught.value.code is Code.DRAINING

    asyncio.run(scene())


def test_the_cache_is_in_it():
    cache = ResponseCache(100)
    cache.kept.put("a", (Tensors(()), {}), 30)
    cache.kept.put("b", (Tensors(()), {}), 80)
    cache.hits, cache.misses = 2, 3
    assert use_of(cache) == CacheUse(100, 80, 1, 2, 3, 1, 0.0, 0.0)


@pytest.mark.parametrize(
    ("groups", "gpu"),
    [
        ((), None),
        ((InstanceGroup("c"),), None),
        ((InstanceGroup("g", device=Device.GPU, device_ids=(1,)),), 1),
        ((InstanceGroup("g", device=Device.GPU),), 0),
        ((InstanceGroup("g", device=Device.GPU, device_ids=(0, 1)),), None),
        ((InstanceGroup("g", device=Device.GPU), InstanceGroup("c")), None),
    ],
)
def test_the_gpu_of_a_model_if_it_is_just_one(groups, gpu):
    assert gpu_of(make_spec(groups=groups)) == gpu


def test_custom_metrics_frozen():
    metrics = CustomMetrics()
    metrics.take("m", {"kind": "counter", "name": "n", "add": 2, "labels": {"b": "1", "a": "2"}})
    steps = {"kind": "histogram", "name": "h", "buckets": [1, 10, float("inf")]}
    for value in (0.5, 5, 50):
        metrics.take("m", {**steps, "observe": value})
    histogram, counter = metrics.report()
    assert histogram.series == (MetricSeries((), 55.5, 3, ((1.0, 1), (10.0, 1), (float("inf"), 1))),)
    assert (counter.name, counter.kind, counter.series[0].labels) == (
        "n",
        "counter",
        (("a", "2"), ("b", "1")),
    )


class Times:
    """ResponseDispatcher of a model in parts, on a clock that the test sets."""

    def __init__(self, measures, bounds=()):
        self.now = 10.0
        model = make_spec(metrics=ModelMetrics(first_part_bounds=bounds))
        self.counters, self.answers = answering(
            model, PayloadAdapter(model, frozenset({PayloadKind.TENSORS})), lambda: self.now, measures
        )
        self.items = 0

    def item(self):
        self.items += 1
        return Item(self.items, make_infer(), lambda part: None, self.now, None)

    def part(self, item, after, final=False, payload=Tensors(())):  # noqa: B008
        self.now += after
        return self.answers.part(item, Part(item.item, payload, final=final))

    @property
    def firsts(self):
        report = self.counters.report("m", "1", 0)
        return report.first_part, [count for _, count in report.first_part_buckets]


def test_the_first_part_is_timed_and_no_other():
    times = Times(Measurements(first_parts=True), bounds=(0.5, 1.0))
    item = times.item()
    times.part(item, 0.25)
    times.part(item, 5.0)
    times.part(item, 5.0, final=True, payload=None)
    other = times.item()
    times.part(other, 1.0, final=True)
    assert times.firsts == (Duration(2, 1_250_000_000), [1, 1, 0])
    assert not times.answers.begun


def test_a_whole_answer_is_its_own_first_part():
    """Source: `infer_response.cc` of Triton 2.73; 2.51 counted models that answer in parts alone."""
    times = Times(Measurements(first_parts=True), bounds=(0.5, 1.0))
    item = times.item()
    times.now += 0.75
    assert times.answers.answer(item, Tensors(()))
    failing = times.item()
    times.answers.end(failing, ServeError(Code.MODEL_FAILED, "by the test"))
    assert times.firsts == (Duration(1, 750_000_000), [0, 1, 0])
    assert not times.answers.begun


def test_an_answer_without_parts_has_no_first_one():
    times = Times(Measurements(first_parts=True))
    times.part(times.item(), 1.0, final=True, payload=None)
    assert times.firsts[0] == Duration()


def test_an_item_that_ended_leaves_nothing_behind():
    times = Times(Measurements(first_parts=True))
    item = times.item()
    times.part(item, 1.0)
    times.answers.end(item, ServeError(Code.CANCELLED, "by the test"))
    times.part(item, 1.0)
    assert not times.answers.begun
    assert times.firsts[0].count == 1


def test_what_was_not_asked_for_costs_nothing():
    assert type(Times(Measurements()).answers) is ResponseDispatcher
    assert type(Times(Measurements(first_parts=True)).answers) is TimedResponseDispatcher
