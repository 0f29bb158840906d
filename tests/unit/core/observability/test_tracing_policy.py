import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.core.observability.tracing_policy import Sampler, TraceBook, is_context
from trivium.types.errors import Code, ServeError
from trivium.types.tracing import Detail, TraceChange, TraceSettings

TIMES = frozenset({Detail.TIMES})
BOTH = frozenset(Detail)


def settings(every=1, left=None, per_file=0, details=TIMES):
    return TraceSettings(details, every, left, per_file)


def taken(sampler, count, is_followed=False):
    return [i for i in range(1, count + 1) if sampler.takes(is_followed)]


@pytest.mark.parametrize(
    ("every", "left", "hits"),
    [
        (1, None, [1, 2, 3, 4, 5, 6]),
        (3, None, [3, 6]),
        (7, None, []),
        (2, 2, [2, 4]),
        (1, 0, []),
        (0, None, []),
    ],
)
def test_every_nth_so_many_in_all(every, left, hits):
    assert taken(Sampler(settings(every, left)), 6) == hits


def test_nothing_without_a_level():
    assert taken(Sampler(settings(details=frozenset())), 3, is_followed=True) == []


def test_what_is_followed_is_always_traced_and_counts_where_it_is_hit():
    sampler = Sampler(settings(2, 1))
    assert [sampler.takes(True), sampler.takes(True), sampler.takes(True), sampler.takes(False)] == [
        True,
        True,
        True,
        False,
    ]
    assert sampler.settings.left == 0
    assert taken(Sampler(settings(0)), 2, is_followed=True) == [1, 2]


@given(st.integers(0, 50), st.one_of(st.none(), st.integers(0, 20)), st.lists(st.booleans(), max_size=200))
def test_never_more_than_are_left_beside_those_that_are_followed(every, left, followed):
    sampler = Sampler(settings(every, left))
    hits = [sampler.takes(is_followed) for is_followed in followed]
    assert all(hit for hit, is_followed in zip(hits, followed, strict=True) if is_followed)
    sampled = sum(hit and not is_followed for hit, is_followed in zip(hits, followed, strict=True))
    assert left is None or sampled <= left
    assert not every or sampled <= len(followed) // every
    assert sampler.settings.left is None or sampler.settings.left >= 0


def written(sampler, count):
    """What is written after each of so many traces."""
    out = []
    for i in range(count):
        if sampler.takes(False):
            traces, is_whole = sampler.finished(i)
            out.append((list(traces), is_whole))
    return out


def test_without_files_of_their_own_each_goes_at_once():
    assert written(Sampler(settings()), 2) == [([0], False), ([1], False)]


def test_files_of_so_many():
    sampler = Sampler(settings(per_file=2))
    assert written(sampler, 5) == [([], False), ([0, 1], True), ([], False), ([2, 3], True), ([], False)]
    assert sampler.rest() == [4]
    assert sampler.rest() == []


def test_the_last_that_is_left_ends_the_file():
    assert written(Sampler(settings(left=3)), 9) == [([], False), ([], False), ([0, 1, 2], True)]


def test_the_file_waits_for_those_that_are_still_open():
    sampler = Sampler(settings(left=2))
    assert sampler.takes(False)
    assert sampler.takes(False)
    assert sampler.finished("b") == ((), False)
    assert sampler.finished("a") == (["b", "a"], True)


def settled(book, model=""):
    now = book.of(model).settings
    return now.details, now.every, now.left, now.per_file


def test_settings_of_a_model_over_those_of_the_server_over_the_first():
    book = TraceBook(settings(1), True)
    book.change("m", TraceChange(every=12, per_file=34))
    book.change("", TraceChange(every=56, left=78, details=frozenset()))
    assert settled(book) == (frozenset(), 56, 78, 0)
    assert settled(book, "m") == (frozenset(), 12, 78, 34)
    assert settled(book, "other") == settled(book)
    book.change("", TraceChange(every=None, left=None))
    assert settled(book) == (frozenset(), 1, None, 0)
    assert settled(book, "m") == (frozenset(), 12, None, 34)
    book.change("m", TraceChange(every=None, details=None))
    assert settled(book, "m") == (frozenset(), 1, None, 34)
    book.change("m", TraceChange(per_file=None))
    assert book.of("m") is book.of("")


def test_how_many_are_left_outlasts_a_change_of_something_else():
    book = TraceBook(settings(1), True)
    book.change("", TraceChange(left=5))
    taken(book.of(""), 2)
    book.change("", TraceChange(details=BOTH))
    assert settled(book) == (BOTH, 1, 3, 0)
    book.change("", TraceChange(left=-1))
    assert settled(book) == (BOTH, 1, None, 0)


def test_a_change_tells_what_it_replaces():
    book = TraceBook(settings(1), True)
    before = book.of("")
    assert list(book.change("m", TraceChange(every=2))) == []
    own = book.of("m")
    assert set(map(id, book.change("", TraceChange(every=3)))) == {id(before), id(own)}


@pytest.mark.parametrize(
    ("change", "can_write", "words"),
    [
        (TraceChange(details=TIMES), False, "--trace-file"),
        (TraceChange(details=TIMES, every=0), True, "One request in 0"),
        (TraceChange(details=TIMES, left=0), True, "more than nothing"),
    ],
)
@pytest.mark.parametrize("model", ["", "m"])
def test_what_cannot_be_traced_changes_nothing(change, can_write, words, model):
    book = TraceBook(TraceSettings(), can_write)
    with pytest.raises(ServeError, match=words) as caught:
        book.change(model, change)
    assert caught.value.code is Code.INVALID
    assert not book.is_on
    assert settled(book, model) == (frozenset(), 1000, None, 0)


def test_without_a_place_nothing_is_on_whatever_it_was_started_with():
    book = TraceBook(settings(1), False)
    assert not book.is_on
    assert settled(book) == (TIMES, 1, None, 0)
    book.change("", TraceChange(details=frozenset()))


def test_on_for_one_model_alone():
    book = TraceBook(TraceSettings(every=1), True)
    book.change("m", TraceChange(details=TIMES))
    assert book.is_on
    assert (book.of("m").takes(False), book.of("n").takes(False)) == (True, False)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", True),
        ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", True),
        ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", False),
        ("00-00000000000000000000000000000000-b7ad6b7169203331-01", False),
        ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", False),
        ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", False),
        ("", False),
        ("00-0af7", False),
    ],
)
def test_trace_contexts(text, is_one):
    assert is_context(text) is is_one
