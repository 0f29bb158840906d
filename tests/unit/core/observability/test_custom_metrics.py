"""Custom metrics: sums of what all instances count; what contradicts them is refused and leaves nothing behind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.core.observability import custom_metrics as metrics
from trivium.core.observability.custom_metrics import CustomMetrics


def step(kind="counter", name="n", **fields):
    return {"kind": kind, "name": name, **fields}


def value(taken, name="n", **labels):
    return taken.families[name].series[tuple(sorted(labels.items()))].value


@pytest.fixture
def taken():
    return CustomMetrics()


def test_counters_add_up_by_labels(taken):
    for number in (1, 2.5):
        taken.take("m", step(add=number, help="how many"))
    taken.take("other", step(add=1, labels={"b": "2", "a": 1}))
    taken.take("m", step(add=1, labels={"a": "1", "b": "2"}))
    assert value(taken) == 3.5
    assert value(taken, a="1", b="2") == 2
    assert taken.families["n"].help == "how many"


def test_gauges_are_set_and_moved(taken):
    for one in (step("gauge", set=5), step("gauge", add=-7), step("gauge", add=1.5)):
        taken.take("m", one)
    assert value(taken) == -0.5
    taken.take("m", step("gauge", set=float("inf")))
    assert value(taken) == float("inf")


def test_histograms_count_by_bucket(taken):
    for number in (0.5, 1, 1.5, 99):
        taken.take("m", step("histogram", observe=number, buckets=[10, 1, 1]))
    taken.take("m", step("histogram", observe=2))
    family = taken.families["n"]
    (series,) = family.series.values()
    assert family.bounds == (1.0, 10.0)
    assert (series.count, series.value, series.buckets) == (5, 104.0, [2, 2, 1])


def test_without_buckets_there_is_one(taken):
    taken.take("m", step("histogram", observe=3))
    assert next(iter(taken.families["n"].series.values())).buckets == [1]


REFUSED = {
    "no kind": ({"name": "n", "add": 1}, "its kind is 'None'; it must be one of counter, gauge, histogram"),
    "an unknown kind": (step("dial", add=1), "its kind is 'dial'"),
    "no name": ({"kind": "counter", "add": 1}, "needs a name"),
    "an empty name": (step(name="", add=1), "needs a name"),
    "a name that is no text": (step(name=["n"], add=1), "needs a name"),
    "no verb": (step(), "a counter takes one of: add"),
    "the wrong verb": (step(set=1), "a counter takes one of: add"),
    "a counter that falls": (step(add=-1), "a counter only grows"),
    "a counter that is endless": (step(add=float("inf")), "a counter only grows"),
    "no number": (step(add="1"), "'1' is no number"),
    "a truth value": (step(add=True), "'True' is no number"),
    "none at all": (step("gauge", set=None), "'None' is no number"),
    "not a number": (step("gauge", set=float("nan")), "'nan' is no number"),
    "a number beyond all": (step(add=10**400), "beyond what a metric can hold"),
    "labels that are none": (step(add=1, labels=5), "labels are a mapping"),
    "buckets that are none": (step("histogram", observe=1, buckets="12"), "buckets are a list"),
    "buckets without numbers": (step("histogram", observe=1, buckets=["a"]), "'a' is no number"),
    "too many buckets": (step("histogram", observe=1, buckets=list(range(1000))), "at most 200"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_leaves_nothing(taken, name):
    refused, words = REFUSED[name]
    with pytest.raises(ValueError, match="of model 'm': ") as caught:
        taken.take("m", refused)
    assert words in str(caught.value)
    assert taken.families == {}


def test_a_metric_stays_what_it_is(taken):
    taken.take("m", step(add=1))
    with pytest.raises(ValueError, match="metric 'n' of model 'm': it is a counter, not a gauge"):
        taken.take("m", step("gauge", set=1))
    assert value(taken) == 1


def test_series_are_bounded_and_those_there_are_go_on(taken, monkeypatch):
    monkeypatch.setattr(metrics, "MOST_SERIES", 3)
    for number in range(3):
        taken.take("m", step(add=1, labels={"id": number}))
    for refused in (step(add=1, labels={"id": 3}), step(name="new", add=1)):
        with pytest.raises(ValueError, match="there are 3 series already"):
            taken.take("m", refused)
    taken.take("m", step(add=1, labels={"id": 2}))
    assert value(taken, id="2") == 2
    assert list(taken.families) == ["n"]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
keys = st.sampled_from(["kind", "name", "help", "labels", "add", "set", "observe", "buckets"])


@given(st.lists(st.dictionaries(keys, anything | st.sampled_from(["counter", "histogram"])), max_size=4))
def test_whatever_comes_is_taken_or_refused(steps):
    taken = CustomMetrics()
    for one in steps:
        try:
            taken.take("m", one)
        except ValueError:
            continue
    assert all(family.series for family in taken.families.values())


def test_what_a_model_counted_goes_with_it_unless_others_count_it_too(taken):
    taken.take("m", step(add=1))
    taken.take("other", step(add=2))
    taken.take("m", step(name="alone", add=1, labels={"a": "1"}))
    taken.take("m", step("gauge", name="both", set=1, labels={"of": "m"}))
    taken.take("other", step("gauge", name="both", set=2, labels={"of": "other"}))
    taken.forget("m")
    assert value(taken) == 3
    assert set(taken.families) == {"n", "both"}
    assert list(taken.families["both"].series) == [(("of", "other"),)]
    taken.forget("nobody")
    taken.forget("other")
    assert taken.families == {}


def test_those_that_were_forgotten_make_room(taken, monkeypatch):
    monkeypatch.setattr(metrics, "MOST_SERIES", 1)
    for _ in range(3):
        taken.take("m", step(add=1))
        taken.forget("m")
    taken.take("m", step("gauge", set=1))
    with pytest.raises(ValueError, match="already"):
        taken.take("m", step(name="another", add=1))
