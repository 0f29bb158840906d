"""How many replicas an application on Ray gets, by how full they are."""

from types import SimpleNamespace

import pytest

from trivium.ray.scaling_policy import METRIC, by_saturation, wanted


@pytest.mark.parametrize(
    ("saturations", "running", "now", "number"),
    [
        pytest.param([], 0, 1, 1, id="nobody has reported: as many as there shall be"),
        pytest.param([], 2, 3, 3, id="nobody of those that run has reported"),
        pytest.param([1.0], 1, 1, 1, id="just full"),
        pytest.param([2.5], 1, 1, 2.5, id="a queue of one and a half rounds"),
        pytest.param([2.0, 0.0], 2, 2, 2, id="one is full, the other idle"),
        pytest.param([0.25, 0.25, 0.25, 0.25], 4, 4, 1, id="four that one could be"),
        pytest.param([3.0], 2, 2, 6, id="who has not reported is like those that have"),
        pytest.param([0.0], 3, 3, 0, id="idle: down to the least, which Ray keeps"),
        pytest.param([2.0], 1, 4, 2, id="by those that run, not by those that start"),
    ],
)
def test_so_many_are_wanted(saturations: list[float], running: int, now: int, number: float) -> None:
    assert wanted(saturations, running, now) == pytest.approx(number)


@pytest.mark.parametrize("reported", [None, {}, {"other": {"a": 9.0}}, {METRIC: {}}])
def test_without_a_report_nothing_changes(reported: object) -> None:
    context = SimpleNamespace(aggregated_metrics=reported, current_num_replicas=2, target_num_replicas=3)
    assert by_saturation(context) == (3, {})


def test_it_reads_what_replicas_report() -> None:
    context = SimpleNamespace(
        aggregated_metrics={METRIC: {"a": 2.0, "b": 4.0}}, current_num_replicas=2, target_num_replicas=2
    )
    assert by_saturation(context) == (6, {})
