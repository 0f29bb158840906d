"""Which kept answers make room for others: of the client that has more than its share, at a cost that does not grow."""

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trivium.core.queueing import deferred
from trivium.core.queueing.deferred import DeferredAnswers
from trivium.core.queueing.kept_payload import PER_PART, kept_bytes
from trivium.types.core_config import DeferredLimits
from trivium.types.errors import ServeError
from trivium.types.interfaces import Sink
from trivium.types.operations import Defer, Fetch, Infer, ResponsePart
from trivium.types.payload import Raw, RawPart
from trivium.types.shares import share_of

SIZE = 1000
COST = SIZE + PER_PART


class Run:
    """A run that goes on until it is answered. Nobody is told of what becomes of it."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def cancel(self, why: ServeError) -> None:
        """Nothing listens."""

    def hold(self) -> None:
        """Nothing is held."""

    def resume(self) -> None:
        """Nothing goes on."""


class Keeping:
    """A store of answers, and who has which token."""

    def __init__(self, count: int, size: int = 10**9) -> None:
        self.runs: list[Run] = []
        self.owners: dict[str, str] = {}
        numbers = iter(range(10**9))
        self.store = DeferredAnswers(
            DeferredLimits(count, size, 60.0),
            lambda: 0.0,
            lambda: f"t{next(numbers)}",
            self.submit,
            self.offload,
        )

    def submit(self, infer: Infer, sink: Sink) -> Run:
        self.runs.append(Run(sink))
        return self.runs[-1]

    def offload(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        done(work())

    def keep(self, client: str, size: int = SIZE, is_whole: bool = True) -> str:
        token = self.store.begin(Defer(Infer("m", Raw((RawPart(b"in"),))), None, client)).token
        self.owners[token] = client
        if is_whole:
            self.runs.pop().sink(ResponsePart(Raw((RawPart(bytes(size)),)), final=True))
        return token

    def has(self, token: str) -> bool:
        try:
            return bool(self.store.fetch(Fetch(token)))
        except ServeError:
            return False

    def kept(self) -> Counter[str]:
        return Counter(client for token, client in self.owners.items() if self.has(token))

    def bytes_of(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for token, client in self.owners.items():
            if self.has(token):
                found[client] += sum(
                    kept_bytes(part.payload) for part in self.store.fetch(Fetch(token)).parts
                )
        return found


def test_one_client_cannot_push_out_what_others_have() -> None:
    stage = Keeping(100)
    others = [stage.keep(f"10.0.0.{i % 5}") for i in range(50)]
    for _ in range(1000):
        stage.keep("greedy")
    assert all(map(stage.has, others))
    assert stage.kept()["greedy"] == 50


def test_who_comes_later_gets_room_from_who_has_most() -> None:
    stage = Keeping(100)
    greedy = [stage.keep("greedy") for _ in range(100)]
    others = [stage.keep(f"10.0.0.{i % 5}") for i in range(50)]
    assert all(map(stage.has, others))
    assert [stage.has(token) for token in greedy] == [False] * 50 + [True] * 50


def test_alone_a_client_has_all_and_loses_its_oldest() -> None:
    stage = Keeping(100)
    tokens = [stage.keep("one") for _ in range(130)]
    assert [stage.has(token) for token in tokens] == [False] * 30 + [True] * 100


def test_large_answers_push_out_their_own_clients_alone() -> None:
    stage = Keeping(1000, 100 * COST)
    others = [stage.keep(f"10.0.0.{i % 4}") for i in range(60)]
    large = [stage.keep("greedy", 10 * COST - PER_PART) for _ in range(50)]
    assert all(map(stage.has, others))
    assert [stage.has(token) for token in large] == [False] * 46 + [True] * 4
    assert stage.store.size <= 100 * COST


def test_bytes_come_from_who_has_most_of_them() -> None:
    stage = Keeping(1000, 100 * COST)
    large = [stage.keep("greedy", 10 * COST - PER_PART) for _ in range(10)]
    others = [stage.keep(f"10.0.0.{i % 4}") for i in range(60)]
    assert all(map(stage.has, others))
    assert [stage.has(token) for token in large] == [False] * 6 + [True] * 4


def test_an_answer_beyond_a_share_says_so_where_all_the_rest_is_others() -> None:
    stage = Keeping(1000, 100 * COST)
    others = [stage.keep(f"10.0.0.{i % 10}", 9 * COST - PER_PART) for i in range(10)]
    token = stage.keep("large", 30 * COST)
    assert all(map(stage.has, others))
    (part,) = stage.store.fetch(Fetch(token)).parts
    assert part.error is not None
    assert "--deferred-bytes" in part.error.message


@example([(0, 1, True)] * 3 + [(0, 16, True), (0, 40, True), (1, 16, True), (2, 16, True), (3, 16, True)])
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 40), st.booleans()), max_size=120))
def test_bounds_hold_and_nobody_below_a_share_loses_to_who_is_above(
    steps: list[tuple[int, int, bool]],
) -> None:
    count, size = 40, 60 * COST
    stage = Keeping(count, size)
    for client, cost, is_whole in steps:
        before, had = stage.kept(), stage.bytes_of()
        stage.keep(str(client), cost * COST - PER_PART, is_whole)
        after = stage.kept()
        assert len(stage.store) <= count
        assert stage.store.size <= size
        over = {one for one in before if before[one] > share_of(count) or had[one] > share_of(size)}
        losers = {one for one in before if one != str(client) and after[one] < before[one]}
        assert losers <= over or not over, (before, had, after)


@pytest.mark.parametrize("is_whole", [True, False])
def test_what_one_costs_does_not_grow_with_what_is_kept(is_whole: bool) -> None:
    def lines(kept: int) -> int:
        stage = Keeping(kept, kept * COST * 10)
        for i in range(kept):
            stage.keep(f"client {i % 100}", is_whole=is_whole)
        count = 0

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal count
            if frame.f_code.co_filename != deferred.__file__:
                return None
            count += event == "line"
            return trace

        sys.settrace(trace)
        try:
            for i in range(10):
                stage.keep(f"client {i}", is_whole=is_whole)
        finally:
            sys.settrace(None)
        return count

    assert lines(10_000) <= 2 * lines(200)
