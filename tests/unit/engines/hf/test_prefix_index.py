"""Which beginnings of texts are kept and found, and which go: by tables, and beside a list that is searched whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.engines.hf.memory import BLOCK
from trivium.engines.hf.prefix_index import LEAST, PrefixIndex, PrefixKey, PrefixMatch

KEY = PrefixKey("fp32")


def row(count, start=0):
    return tuple(range(start, start + count))


def filled(*rows, places=4, key=KEY):
    index = PrefixIndex(range(10, 10 + places))
    for one in rows:
        index.keep(key, one)
    return index


@pytest.mark.parametrize(
    ("kept", "wanted", "expected"),
    [
        pytest.param([], row(50), None, id="nothing is there"),
        pytest.param([row(50)], row(50), (10, 50), id="all of it"),
        pytest.param([row(50)], row(80), (10, 50), id="the whole of what is kept"),
        pytest.param([row(100)], row(70), (10, 70), id="a beginning of what is kept"),
        pytest.param([row(100)], row(70) + row(30, 500), (10, 70), id="up to the token that differs"),
        pytest.param([row(100)], row(LEAST - 1) + row(30, 500), None, id="too few to be worth a copy"),
        pytest.param([row(100)], row(LEAST) + row(30, 500), (10, LEAST), id="just worth it, within a block"),
        pytest.param([row(100)], row(BLOCK) + row(9, 500), (10, BLOCK), id="to the end of a block"),
        pytest.param([row(100)], row(100, 1), None, id="the same tokens elsewhere are others"),
        pytest.param(
            [row(70) + row(30, 500), row(80) + row(30, 600)], row(100), (11, 80), id="the longest of several"
        ),
    ],
)
def test_the_longest_common_beginning_is_found(kept, wanted, expected):
    found = filled(*kept).find(KEY, wanted, len(wanted))
    assert found == (None if expected is None else PrefixMatch(*expected))


def test_no_more_is_found_than_is_asked_for():
    assert filled(row(100)).find(KEY, row(100), 99) == PrefixMatch(10, 99)


@pytest.mark.parametrize(
    "other", [PrefixKey("bf16"), PrefixKey("fp32", adapter="a"), PrefixKey("fp32", salt="s")]
)
def test_nothing_is_found_under_another_key(other):
    index = filled(row(100))
    assert index.find(other, row(100), 100) is None
    assert index.keep(other, row(100)) == PrefixMatch(11, 0)
    assert index.find(other, row(100), 100) == PrefixMatch(11, 100)


@pytest.mark.parametrize(
    ("before", "tokens", "expected", "places"),
    [
        pytest.param([], row(LEAST - 1), None, (), id="too few"),
        pytest.param([], row(LEAST), (10, 0), (10,), id="a first one"),
        pytest.param([row(100)], row(60), None, (10,), id="what is there already"),
        pytest.param([row(60)], row(100), (10, 60), (10,), id="one that goes on takes its place"),
        pytest.param([row(60)], (*row(59), 7), (10 + 1, 0), (10, 11), id="one that differs has its own"),
        pytest.param(
            [row(40, 100 * k) for k in range(4)],
            row(40, 900),
            (10, 0),
            (11, 12, 13, 10),
            id="the oldest goes for it",
        ),
        pytest.param(
            [row(40), row(40, 100), row(20), row(40, 200), row(40, 300)],
            row(40, 900),
            (11, 0),
            (10, 12, 13, 11),
            id="but one that came again has been used",
        ),
    ],
)
def test_what_is_kept_where(before, tokens, expected, places):
    index = filled(*before)
    found = index.keep(KEY, tokens)
    assert found == (None if expected is None else PrefixMatch(*expected))
    assert index.places == places


def test_one_that_was_used_goes_last():
    index = filled(*(row(40, 100 * k) for k in range(4)))
    index.touch(10)
    assert index.places == (11, 12, 13, 10)


def test_what_was_dropped_is_not_found_and_its_place_is_free():
    index = filled(row(100), row(40) + row(60, 500))
    index.drop(10)
    assert index.find(KEY, row(100), 100) == PrefixMatch(11, 40)
    assert index.keep(KEY, row(100)) == PrefixMatch(10, 0)
    index.clear()
    assert index.places == ()
    assert index.find(KEY, row(100), 100) is None


def test_without_places_nothing_is_kept():
    index = filled(places=0)
    assert index.keep(KEY, row(100)) is None
    assert index.find(KEY, row(100), 100) is None


class Hashed(PrefixKey):
    """A key that has the same hash as all others of its kind."""

    def __hash__(self):
        return 1


def test_tokens_decide_where_hashes_are_the_same():
    index = filled(row(100), key=Hashed("fp32"))
    assert index.find(Hashed("bf16"), row(100), 100) is None
    # -1 and -2 have the same hash
    index = filled((-1,) * BLOCK + row(10))
    assert index.find(KEY, (-2,) * BLOCK + row(10), 42) is None


tokens = st.lists(st.integers(0, 1), min_size=1, max_size=4).flatmap(
    lambda turns: st.just(tuple(bit for bit in turns for _ in range(BLOCK // 2 + 5)))
)
acts = st.one_of(
    st.tuples(st.just("keep"), tokens),
    st.tuples(st.just("find"), tokens),
    st.tuples(st.just("drop"), st.integers(0, 3)),
)


def common(one, other):
    return next((at for at, pair in enumerate(zip(one, other, strict=False)) if len(set(pair)) > 1), None)


@given(st.lists(acts, max_size=40))
def test_any_use_finds_what_a_search_of_everything_finds(told):
    index = PrefixIndex(range(3))
    kept: dict[int, tuple[int, ...]] = {}
    for act, what in told:
        if act == "keep":
            to = index.keep(KEY, what)
            if to is None:
                assert any(one[: len(what)] == what for one in kept.values())
            else:
                assert kept.get(to.place, ())[: to.size] == what[: to.size], "what it has is the beginning"
                kept[to.place] = what
        elif act == "drop" and what in kept:
            index.drop(what)
            del kept[what]
        elif act == "find":
            sizes = [
                min(len(one), len(what)) if (at := common(one, what)) is None else at for one in kept.values()
            ]
            best = max(sizes, default=0)
            found = index.find(KEY, what, len(what))
            assert (found.size if found else 0) == (best if best >= LEAST else 0)
            if found:
                assert kept[found.place][: found.size] == what[: found.size]
        assert set(index.places) == set(kept)
        rows = list(kept.values())
        assert not any(a is not b and b[: len(a)] == a for a in rows for b in rows), "none is one of another"


def test_places_of_an_adapter():
    index = PrefixIndex(range(4))
    for adapter in ("", "a", "b", "a"):
        index.keep(PrefixKey("fp32", adapter, salt=str(len(index.places))), tuple(range(64)))
    assert index.places_of("a") == (index.places[1], index.places[3])
    assert index.places_of("none") == ()
    assert index.find(PrefixKey("fp32", "b", "0"), tuple(range(64)), 64) is None
