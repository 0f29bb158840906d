"""Who may run, where what instances need is bounded; and the books that the limiter keeps of it."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.core.instances.rate_limiter import RateLimiter
from trivium.core.instances.rate_policy import Contender, grants, limits, needs_on, parse_limits
from trivium.types.errors import Code, ServeError
from trivium.types.resources import EVERYWHERE, ResourceLimits, ResourceNeed, ResourceRequest

R, S = ("R", EVERYWHERE), ("S", "0")


def wish(who, passed=0, since=0, **needs):
    return Contender(who, {(name, EVERYWHERE): count for name, count in needs.items()}, passed, since)


@pytest.mark.parametrize(
    ("wishes", "free", "granted"),
    [
        ([], 4, ""),
        ([wish("a")], 0, "a"),
        ([wish("a", R=2), wish("b", since=1, R=2)], 4, "ab"),
        ([wish("a", since=1, R=3), wish("b", R=3)], 4, "b"),
        ([wish("a", passed=2, R=3), wish("b", passed=1, since=9, R=3)], 4, "b"),
        ([wish("a", R=5), wish("b", since=1, R=1)], 4, ""),  # it is held back for the first one
        ([wish("a", R=5), wish("b", since=1, T=1), wish("c", since=2)], 4, "c"),
        ([wish("a", R=5), wish("b", since=1)], 4, "b"),
    ],
)
def test_grants(wishes, free, granted):
    assert "".join(sorted(grants(wishes, {R: free}))) == granted


WISHES = st.lists(
    st.builds(
        lambda passed, since, r, s: Contender((since, r, s), {R: r, S: s}, passed, since),
        st.integers(0, 3), st.integers(0, 99), st.integers(0, 5), st.integers(0, 5),
    ),
    unique_by=lambda wish: wish.who,
)  # fmt: skip


@settings(max_examples=examples(300))
@given(WISHES, st.integers(0, 6), st.integers(0, 6))
def test_never_more_than_there_is_and_the_first_before_all(wishes, r, s):
    granted = grants(wishes, {R: r, S: s})
    of = {wish.who: wish for wish in wishes}
    assert sum(of[who].needs[R] for who in granted) <= r
    assert sum(of[who].needs[S] for who in granted) <= s
    if wishes:
        first = min(wishes, key=lambda wish: (wish.passed, wish.since))
        assert (first.who in granted) == (first.needs[R] <= r and first.needs[S] <= s)


def test_a_shared_need_is_one_for_all_devices():
    claim = ResourceRequest((ResourceNeed("R", 2, is_shared=True), ResourceNeed("S", 3)))
    assert needs_on(claim, "0") == {R: 2, S: 3}


def test_there_is_as_much_as_the_greediest_needs_unless_it_was_said():
    needs = [{R: 2}, {R: 5, S: 1}, {("S", "1"): 4}]
    assert limits(needs, ResourceLimits()) == {R: 5, S: 1, ("S", "1"): 4}
    assert limits(needs, parse_limits("R:9,S:6,S:7:1")) == {R: 9, S: 6, ("S", "1"): 7}
    assert limits([], parse_limits("")) == {}


@pytest.mark.parametrize(
    ("needs", "supply", "text"),
    [([{R: 4}], "R:3", "There is 3 .* needs 4"), ([{R: 1}, {("R", "0"): 1}], "", "global for one model")],
)
def test_what_can_never_run_does_not_load(needs, supply, text):
    with pytest.raises(ServeError, match=text) as caught:
        limits(needs, parse_limits(supply))
    assert caught.value.code is Code.LOAD_FAILED


@pytest.mark.parametrize("text", ["R", "R:", "R:-1", ":4", "R:1:x", "R:1.5", "R:²"])
def test_a_supply_that_says_nothing(text):
    with pytest.raises(ServeError, match="NAME:COUNT"):
        parse_limits(text)


class Model:
    """With so many instances of one need each, and work without end."""

    def __init__(self, limiter, instances, need, weight):
        self.needs = {number: {R: need} for number in range(instances)}
        self.weight = weight
        self.on_look_again = lambda: None
        self.member = limiter.join(
            list(self.needs.values()), lambda: 9, lambda: self.on_look_again(), lambda: None
        )
        self.running = set()
        self.runs = 0

    def look(self):
        free = {number: needs for number, needs in self.needs.items() if number not in self.running}
        for number in self.member.select(free):
            self.member.acquire(number, self.needs[number], self.weight)
            self.running.add(number)
            self.runs += 1

    def end(self, number):
        self.running.discard(number)
        self.member.release(number)


KINDS = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3))


@settings(max_examples=examples(60))
@given(st.lists(KINDS, min_size=1, max_size=4), st.integers(0, 999))
def test_nobody_starves_and_nothing_is_exceeded(kinds, seed):
    """Models look when they begin, when something of theirs ends, and when they are told to; never otherwise."""
    limiter, dice = RateLimiter(ResourceLimits({R: 5})), random.Random(seed)
    models = [Model(limiter, *kind) for kind in kinds]
    looking = list(models)
    for model in models:
        model.on_look_again = lambda model=model: looking.append(model)
    for _ in range(300):
        while looking:
            looking.pop(0).look()
        busy = [(model, number) for model in models for number in model.running]
        assert 0 < sum(model.needs[number][R] for model, number in busy) <= 5
        model, number = dice.choice(busy)
        model.end(number)
        looking.append(model)
    assert all(model.runs > 5 for model in models)


def test_who_comes_late_has_no_arrears():
    limiter = RateLimiter(ResourceLimits({R: 1}))
    old = Model(limiter, 1, 1, 1)
    for _ in range(1000):
        old.look()
        old.end(0)
    new = Model(limiter, 1, 1, 1)
    for _ in range(200):
        for model in (new, old):
            model.look()
        for model in (new, old):
            if model.running:
                model.end(0)
    assert abs((old.runs - 1000) - new.runs) <= 2


def test_what_leaves_gives_back_and_others_look_again():
    limiter = RateLimiter(ResourceLimits({R: 1}))
    one, two = Model(limiter, 1, 1, 1), Model(limiter, 1, 1, 1)
    looked = []
    two.on_look_again = lambda: looked.append(1)
    one.look()
    two.look()
    assert two.running == set()
    one.member.closed(0)
    assert looked == [1]
    two.look()
    assert two.running == {0}
    one.look()
    two.member.close()
    assert limiter.free() == {R: 1}
    two.member.close()
