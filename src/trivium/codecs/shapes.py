"""Shapes that came from outside: how many elements one has, or why no tensor can have it.

Judged in Python's unbounded integers before anything is allocated. Knows no datatype and no bytes.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from trivium.types.errors import Code, ServeError

MAX_RANK: int = getattr(np, "MAXDIMS", 64)
"""Dimensions that the running numpy can hold: 32 before numpy 2, which no longer names its 64."""

MAX_ELEMENTS = 2**40
"""More than any machine holds; below it numpy's own products of sizes cannot overflow."""


def shape_of(name: str, dims: Sequence[int]) -> tuple[int, ...]:
    """Return the dims of a message as a shape, without looking at more than a tensor can have. INVALID for those."""
    judge_rank(name, len(dims))
    return tuple(dims)


def judge_rank(name: str, rank: int) -> None:
    """Raise INVALID for more dims than a tensor can have."""
    if rank > MAX_RANK:
        raise ServeError(
            Code.INVALID,
            f"The shape of tensor {name!r} has {rank} dimensions; at most {MAX_RANK} can be served. "
            "Reshape the tensor.",
        )


def element_count(name: str, shape: tuple[int, ...]) -> int:
    """The product of the dims, 1 for a shape without any. INVALID for a shape that no tensor can have.

    Dims that are not zero count against `MAX_ELEMENTS` even beside a zero, as they do in numpy.
    """
    judge_rank(name, len(shape))  # first: a product of very many dims takes very long
    count = prod(shape)
    if 0 < count <= MAX_ELEMENTS and min(shape, default=0) >= 0:
        return count
    for axis, dim in enumerate(shape):
        if dim < 0:
            raise ServeError(
                Code.INVALID,
                f"Dimension {axis} of the shape of tensor {name!r} is negative. "
                "Send the tensor's true shape; -1 is only for model metadata.",
            )
    if prod(dim for dim in shape if dim) > MAX_ELEMENTS:
        raise ServeError(
            Code.INVALID,
            f"The dims of the shape of tensor {name!r} multiply to more than {MAX_ELEMENTS} elements, "
            "more than any tensor can hold. Send the tensor's true shape.",
        )
    return count
