import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.codecs.rows import Stacker, split
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensors


def item(rows, start=0, dtype="<f4"):
    return Tensors.of({"a": np.arange(start, start + rows * 3).reshape(rows, 3).astype(dtype)})


@settings(max_examples=examples(50))
@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=5), min_size=1, max_size=6))
def test_stacked_and_split_are_the_items(batches):
    stacker = Stacker()
    for rows in batches:
        items = [item(count, 10 * index) for index, count in enumerate(rows)]
        stacked = stacker.stack(items, ["a"])
        again = split(Tensors.of(stacked), rows)
        assert [part["a"].tolist() for part in again] == [part["a"].tolist() for part in items]
        assert [part.items[0].shape for part in again] == [(count, 3) for count in rows]


def test_a_batch_of_one_is_not_copied():
    one = item(2)
    assert Stacker().stack([one], ["a"])["a"] is one["a"]
    assert split(one, [2]) == [one]


def test_the_buffer_is_kept_and_grows_by_doubling():
    stacker = Stacker()
    first = stacker.stack([item(2), item(2)], ["a"])["a"]
    smaller = stacker.stack([item(1), item(1)], ["a"])["a"]
    assert np.shares_memory(first, smaller)
    bigger = stacker.stack([item(2), item(3)], ["a"])["a"]
    assert not np.shares_memory(first, bigger)
    doubled = stacker.stack([item(4), item(4)], ["a"])["a"]
    assert np.shares_memory(bigger, doubled)


def test_names_have_buffers_of_their_own():
    pair = Tensors.of({"a": np.ones((1, 2)), "b": np.zeros((1, 3), "<i4")})
    stacked = Stacker().stack([pair, pair], ["b", "a"])
    assert stacked["a"].tolist() == [[1, 1]] * 2
    assert stacked["b"].tolist() == [[0, 0, 0]] * 2


def test_what_is_kept_is_bounded():
    stacker = Stacker(kept_bytes=48)
    kept = stacker.stack([item(2), item(2)], ["a"])["a"]
    beyond = stacker.stack([item(3), item(2)], ["a"])["a"]
    assert beyond.shape == (5, 3)
    assert not np.shares_memory(beyond, stacker.stack([item(3), item(2)], ["a"])["a"])
    assert np.shares_memory(kept, stacker.stack([item(2), item(2)], ["a"])["a"])


def test_growth_near_the_bound_takes_what_is_needed():
    stacker = Stacker(kept_bytes=60)
    stacker.stack([item(2), item(2)], ["a"])
    first = stacker.stack([item(3), item(2)], ["a"])["a"]
    assert np.shares_memory(first, stacker.stack([item(3), item(2)], ["a"])["a"])


def test_a_change_of_datatype_reuses_the_bytes():
    stacker = Stacker()
    stacker.stack([item(2), item(2)], ["a"])
    assert stacker.stack([item(2, dtype="<i8"), item(1, dtype="<i8")], ["a"])["a"].dtype == np.int64


def test_bytes_are_concatenated():
    texts = Tensors.of({"a": np.array([[b"x"], [b"yy"]], object)})
    assert Stacker().stack([texts, texts], ["a"])["a"].tolist() == [[b"x"], [b"yy"], [b"x"], [b"yy"]]


@pytest.mark.parametrize(
    ("array", "rows"),
    [(np.zeros((3, 2)), [1, 1]), (np.zeros(()), [1]), (np.zeros((1, 2)), [2]), (np.zeros(0), [1])],
)
def test_another_number_of_rows_is_the_models_fault(array, rows):
    with pytest.raises(ServeError, match=f"'out' of shape .* for a batch of {sum(rows)} rows") as failed:
        split(Tensors.of({"out": array}), rows)
    assert failed.value.code is Code.MODEL_FAILED
