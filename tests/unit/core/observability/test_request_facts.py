"""What a log says of a request: how it waited, with whom it ran, how it failed; and of one that ends before its run."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.harness.fake_models import spec

from trivium.core.observability.request_facts import FactsLog
from trivium.core.request import Item
from trivium.types.errors import Code, ServeError
from trivium.types.observing import RequestFacts
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.running import Executed
from trivium.types.tracing import RequestOrigin

TRACE = "0af7651916cd43dd8448eb211c80319c"


def item(number: int, came: float, run: Executed | None = None, context: str = "") -> Item:
    origin = RequestOrigin("HTTP", 0.0, 0.0, facts=RequestFacts(f"r{number}", "m", ""))
    infer = Infer("m", Tensors(()), id=f"r{number}", origin=origin, context=context)
    made = SimpleNamespace(item=number, operation=infer, enqueued_at=came, run=run, instance=1)
    return cast(Item, made)


def facts(of: Item) -> RequestFacts:
    origin = of.operation.origin
    assert origin is not None
    assert origin.facts is not None
    return origin.facts


def run(*numbers: int, batch: tuple[int, ...] = ()) -> Executed:
    items: Any = list(numbers)
    return Executed(items, [], 5.0, 5.5, 6.5, 7.0, 0, cast(Any, batch))


@pytest.fixture
def log() -> FactsLog:
    return FactsLog(spec("m"))


def test_a_batch(log: FactsLog):
    first, second = item(1, 3.0), item(2, 4.0, context=f"00-{TRACE}-b7ad6b7169203331-01")
    log.ran(run(1, 2), [first, second], 8.0)
    assert facts(first) == RequestFacts("r1", "m", "1", "", 2, 2.0, 2.0)
    assert facts(second) == RequestFacts("r2", "m", "1", TRACE, 2, 1.0, 2.0)


def test_one_that_ends_before_its_run_waits_for_that(log: FactsLog):
    early = item(1, 3.0)
    log.ended(early, 6.0)
    assert facts(early).waits
    log.over(run(batch=(1, 2)))
    assert facts(early) == RequestFacts("r1", "m", "1", "", 2, 2.0, 2.0)


def test_failures(log: FactsLog):
    waiting, running, dead = item(1, 3.0), item(2, 3.0), item(3, 3.0)
    cast(Any, waiting).instance = 0
    log.failed(waiting, ServeError(Code.EXPIRED, "late"), 4.5)
    assert facts(waiting) == RequestFacts("r1", "m", "1", queued=1.5, code="expired")
    log.failed(running, ServeError(Code.MODEL_FAILED, "bad"), 6.0)
    log.over(run(2))
    assert facts(running) == RequestFacts("r2", "m", "1", "", 1, 2.0, 2.0, "model failed")
    log.failed(dead, ServeError(Code.WORKER_DIED, "dead"), 6.0)
    assert facts(dead) == RequestFacts("r3", "m", "1", code="worker died")


def test_a_request_of_which_nobody_collects_anything_is_left_alone(log: FactsLog):
    infer = Infer("m", Tensors(()))
    plain = cast(Item, SimpleNamespace(item=1, operation=infer, enqueued_at=0.0, run=None, instance=1))
    log.ran(run(1), [plain], 8.0)
    log.ended(plain, 8.0)
    log.failed(plain, ServeError(Code.MODEL_FAILED, "bad"), 8.0)
    assert plain.operation is infer
