"""Prometheus' text format: another reader finds in it what was put in, whatever names and values there are."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from trivium.codecs.exposition import ExposedMetric, fit_labels, fit_name, number, text, written


def parsed(*families):
    return {
        family.name: {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in family.samples
        }
        for family in text_string_to_metric_families(text(families).decode())
    }


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (3, "3"),
        (3.0, "3"),
        (2.5, "2.5"),
        (-0.5, "-0.5"),
        (2**40, "1099511627776"),
        (0.6373056994818653, "0.6373056994818653"),
        (1e300, "1e+300"),
        (math.nan, "Nan"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
    ],
)
def test_numbers_as_the_original_writes_them(value, written):
    assert number(value) == written


@given(st.floats())
def test_a_number_is_read_back_exactly(value):
    read = float(number(value))
    assert read == value or (math.isnan(read) and math.isnan(value))


def test_labels_are_sorted():
    family = ExposedMetric("x", "counter", "words")
    family.add(written({"version": "1", "model": "m", "_team": "red"}), 2)
    family.add("", 3)
    assert family.lines == ['x{_team="red",model="m",version="1"} 2', "x 3"]


def test_a_family_without_samples_is_named():
    assert text([ExposedMetric("x", "gauge", "two\nlines")]) == b"# HELP x two\\nlines\n# TYPE x gauge\n"


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=20)


@given(TEXTS, TEXTS)
def test_any_text_is_a_value_of_a_label(one, other):
    family = ExposedMetric("x", "gauge", "")
    family.add(written({"a": one, "b": other}), 1.5)
    assert parsed(family) == {"x": {("x", (("a", one), ("b", other))): 1.5}}


def test_a_histogram_counts_upwards():
    family = ExposedMetric("h", "histogram", "")
    family.add_histogram('m="1"', 20.5, ((0.1, 0), (1.0, 1), (10.0, 0), (math.inf, 1)))
    assert family.lines == [
        'h_count{m="1"} 2',
        'h_sum{m="1"} 20.5',
        'h_bucket{m="1",le="0.1"} 0',
        'h_bucket{m="1",le="1"} 1',
        'h_bucket{m="1",le="10"} 1',
        'h_bucket{m="1",le="+Inf"} 2',
    ]


def test_without_labels_a_histogram_has_its_bounds_alone():
    family = ExposedMetric("h", "histogram", "")
    family.add_histogram("", 3, ((0.5, 1), (math.inf, 1)), 1000.0)
    assert family.lines == ["h_count 2", "h_sum 3", 'h_bucket{le="500"} 1', 'h_bucket{le="+Inf"} 2']


def test_a_summary_has_a_line_per_quantile():
    family = ExposedMetric("s", "summary", "")
    family.add_summary('m="1"', 3, 91402, ((0.5, 1009), (0.999, math.nan)))
    assert family.lines == [
        's_count{m="1"} 3',
        's_sum{m="1"} 91402',
        's{m="1",quantile="0.5"} 1009',
        's{m="1",quantile="0.999"} Nan',
    ]


@pytest.mark.parametrize(
    ("name", "fit"),
    [("ok:name_1", "ok:name_1"), ("has space", "has_space"), ("1st", "_1st"), ("", "_"), ("é", "_")],
)
def test_names_are_made_fit(name, fit):
    assert fit_name(name) == fit


def test_labels_are_made_fit_and_stay_apart():
    assert fit_labels([("a b", "1"), ("a_b", "2"), ("le", "3")], ("le",)) == {
        "a_b": "1",
        "a_b_": "2",
        "le_": "3",
    }
