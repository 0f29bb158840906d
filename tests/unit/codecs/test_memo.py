"""The bounded memory: what is kept is found, and it never grows beyond its bound."""

from hypothesis import given
from hypothesis import strategies as st

from trivium.codecs.memo import Memo


def test_a_full_memory_is_emptied_for_one_more() -> None:
    memo: Memo[str, int] = Memo(2)
    memo.keep("a", 1)
    memo.keep("b", 2)
    memo.keep("a", 3)  # no further entry: nothing has to go
    assert (memo.get("a"), memo.get("b"), memo.get("c")) == (3, 2, None)
    memo.keep("c", 4)
    assert (memo.get("a"), memo.get("b"), memo.get("c")) == (None, None, 4)


@given(st.lists(st.integers(0, 9)), st.integers(1, 5))
def test_the_last_entry_is_there_and_the_bound_holds(keys: list[int], most: int) -> None:
    memo: Memo[int, int] = Memo(most)
    for key in keys:
        memo.keep(key, -key)
        assert memo[key] == -key
        assert len(memo) <= most
