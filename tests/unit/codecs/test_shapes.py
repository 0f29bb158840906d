import time

import pytest

from trivium.codecs.shapes import MAX_ELEMENTS, MAX_RANK, element_count
from trivium.types.errors import Code, ServeError


@pytest.mark.parametrize(
    ("shape", "count"),
    [
        ((), 1),
        ((0,), 0),
        ((3,), 3),
        ((2, 0, 4), 0),
        ((2, 3, 4), 24),
        ((1,) * MAX_RANK, 1),
        ((MAX_ELEMENTS, 0), 0),
    ],
)
def test_counts_elements(shape, count):
    assert element_count("x", shape) == count


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((-1,), "Dimension 0"),
        ((2, -2), "Dimension 1"),
        ((-2, -3), "Dimension 0"),
        ((-1, 0), "Dimension 0"),
        ((1,) * (MAX_RANK + 1), f"at most {MAX_RANK}"),
        ((2**63,), "more than any tensor"),
        ((2**32, 2**32), "more than any tensor"),
        ((0, 2**62, 2**62), "more than any tensor"),
        ((10**5000, 0), "more than any tensor"),
    ],
)
def test_refuses_what_no_tensor_has(shape, words):
    with pytest.raises(ServeError, match=words) as refused:
        element_count("x", shape)
    assert refused.value.code is Code.INVALID
    assert "'x'" in refused.value.message


def test_very_many_dims_are_refused_before_they_are_multiplied():
    began = time.process_time()
    with pytest.raises(ServeError, match="has 100000 dimensions"):
        element_count("x", (2**62,) * 100_000)
    assert time.process_time() - began < 1
