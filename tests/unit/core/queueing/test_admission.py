"""When a queue is full: at its bound, or one place earlier where nobody is free and nobody comes."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from tests.harness.fake_models import spec

from trivium.core.observability.statistics import VersionCounters
from trivium.core.queueing.admission import AdmissionController, PriorityRules
from trivium.types.errors import Code, ServeError
from trivium.types.spec import Dynamic, Limits


@dataclass
class Counts:
    """Instances as admission counts them."""

    is_busy: bool
    places: int = 1
    ahead: int = 0
    startable: int = 0

    def run_ages(self) -> list[float]:
        return [1.0] if self.is_busy else []


@pytest.mark.parametrize(
    ("places", "fills_early", "waiting", "is_busy", "is_growing", "is_full"),
    [
        (2, False, 1, True, False, False),
        (2, False, 2, False, False, True),
        (2, True, 0, True, False, False),
        (2, True, 1, True, False, True),
        (2, True, 1, False, False, False),
        (2, True, 1, True, True, False),
        (1, True, 0, True, False, True),
        (1, True, 0, False, False, False),
        (1, True, 1, False, True, True),
    ],
)
def test_the_last_place_is_for_a_time_when_somebody_is_free(
    places: int, fills_early: bool, waiting: int, is_busy: bool, is_growing: bool, is_full: bool
) -> None:
    """Sharp edge 7 of DJL: full is one place left and all workers busy."""
    limited = spec(limits=Limits(queue_items=places, fills_early=fills_early))
    queue = SimpleNamespace(count=waiting, rows=waiting)
    rules = PriorityRules(Dynamic())
    admission = AdmissionController(limited, rules, queue, Counts(is_busy), VersionCounters())  # type: ignore[arg-type]
    assert admission.limit == places - fills_early
    if not is_full:
        admission.check_room(1, None, is_growing)
        return
    with pytest.raises(ServeError) as caught:
        admission.check_room(1, None, is_growing)
    assert caught.value.code is Code.QUEUE_FULL


@pytest.mark.parametrize(
    ("waiting", "startable", "is_full"), [(0, 1, False), (0, 0, True), (1, 2, False), (2, 2, True)]
)
def test_where_one_has_to_be_free_nobody_waits(waiting: int, startable: int, is_full: bool) -> None:
    limited = spec(limits=Limits(queue_items=100, needs_free=True))
    queue = SimpleNamespace(count=waiting, rows=waiting)
    counts = Counts(is_busy=not startable, startable=startable)
    admission = AdmissionController(limited, PriorityRules(Dynamic()), queue, counts, VersionCounters())  # type: ignore[arg-type]
    assert admission.limit == 0
    if not is_full:
        admission.check_room(1, None)
        return
    with pytest.raises(
        ServeError, match="No instance of model 'm' is free, and requests to it do not wait"
    ) as caught:
        admission.check_room(1, None, is_growing=True)
    assert caught.value.code is Code.QUEUE_FULL
