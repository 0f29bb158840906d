"""How a recorder hears of items that end before, with or without their execution."""

from dataclasses import dataclass, field

from tests.harness.virtual_models import make_spec

from trivium.core.observability.recording import RecordedItems, item_log
from trivium.core.observability.statistics import MOST_EARLY, DurationLog, VersionCounters
from trivium.core.request import Item
from trivium.types.errors import Code, ServeError
from trivium.types.metrics import ModelMetrics
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.running import Executed


@dataclass
class Heard:
    said: list[tuple[object, ...]] = field(default_factory=list)

    def answered(self, request: Infer, waited: float, spent: float) -> None:
        self.said.append((request.id, waited, spent))

    def failed(self, request: Infer, code: Code, spent: float) -> None:
        self.said.append((request.id, code, spent))

    def ran(self, lingered: float) -> None:
        self.said.append(("ran", lingered))


def item(number: int, since: float) -> Item:
    infer = Infer(model="m", payload=Tensors(()), id=str(number))
    return Item(number, infer, lambda part: None, since, None)  # type: ignore[arg-type]


def test_items_of_an_execution_are_recorded_with_it() -> None:
    heard = Heard()
    counted = VersionCounters(log=RecordedItems(heard))  # type: ignore[arg-type]
    run = Executed([1, 2], [], 3.0, 3.0, 5.0, 6.0)
    counted.executed(run, 2, [item(1, 1.0), item(2, 2.5)], 8.0)
    assert heard.said == [("1", 2.0, 7.0), ("2", 0.5, 5.5), ("ran", 2.0)]
    counted.failed(item(3, 1.0), ServeError(Code.EXPIRED, "Late."), 2.0)
    counted.cached(item(4, 2.0), 0.1, 2.5)
    assert heard.said[3:] == [("3", Code.EXPIRED, 1.0), ("4", 0.0, 0.5)]


def test_one_that_ends_by_parts_is_recorded_once_its_execution_is_over() -> None:
    heard = Heard()
    counted = VersionCounters(log=RecordedItems(heard))  # type: ignore[arg-type]
    counted.streamed(item(1, 1.0), 4.0)
    assert not heard.said
    counted.executed(Executed([], [], 2.0, 2.0, 5.0, 5.0, 1, (1,)), 1, [], 5.0)
    assert heard.said == [("1", 1.0, 3.0)]
    known = item(2, 1.0)
    known.run = Executed([], [], 1.5, 1.5, 2.0, 2.0, 1, (2,))
    counted.streamed(known, 4.0)
    assert heard.said[1:] == [("2", 0.5, 3.0)]


def test_a_handlers_answer_is_one_whatever_its_status() -> None:
    heard = Heard()
    counted = VersionCounters(log=RecordedItems(heard))  # type: ignore[arg-type]
    counted.answered_ill(item(1, 1.0), 4.0)
    counted.executed(Executed([1, 2], [], 2.0, 2.0, 3.0, 3.0), 2, [item(2, 1.5)], 4.0)
    assert heard.said == [("1", 1.0, 3.0), ("2", 0.5, 2.5), ("ran", 1.0)]
    report = counted.report("m", "1", 0)
    assert (report.fail.count, report.failures, report.success.count) == (1, {"model failed": 1}, 1)


def test_items_whose_execution_never_ends_are_not_kept_for_ever() -> None:
    heard = Heard()
    recorded = RecordedItems(heard)  # type: ignore[arg-type]
    for number in range(MOST_EARLY + 5):
        recorded.ended(item(number, 1.0), 2.0)
    assert [said[0] for said in heard.said] == [str(number) for number in range(5)]


def test_there_is_a_log_only_where_somebody_wants_it() -> None:
    plain, timed = make_spec(), make_spec(metrics=ModelMetrics(log_every=10))
    assert item_log(plain, None) is None
    assert isinstance(item_log(timed, None), DurationLog)
    both = item_log(timed, Heard())  # type: ignore[arg-type]
    assert both is not None
    both.failed(item(1, 1.0), ServeError(Code.EXPIRED, "Late."), 2.0)
