"""Words that say how requests lie in a batch, where they do not all have one shape.

Values only: a format fills them in, an engine makes tensors of them.
"""

from dataclasses import dataclass
from enum import Enum

from trivium.types.datatype import DataType


class ShapeFact(Enum):
    """Names what a model gets to know of a request's part of an input: how many elements it has, or its shape without
    the rows.
    """

    COUNTS = "counts"  # of each request
    SUMS = "sums"  # of each request and those before it
    SUMS_FROM_ZERO = "sums from zero"  # the same, behind a zero
    GREATEST_AS_SHAPE = (
        "greatest as shape"  # a tensor that has so many elements; which ones is nobody's business
    )
    SHAPES = "shapes"  # one for each row
    SHAPES_FLAT = "shapes, flat"  # the same, without rows


@dataclass(frozen=True, slots=True)
class BatchInput:
    """Inputs of the engine, all alike, that tell of the requests' parts of the input `source`."""

    names: tuple[str, ...]
    told: ShapeFact
    datatype: DataType
    source: str


@dataclass(frozen=True, slots=True)
class BatchOutput:
    """Outputs that have an element where the input `source` has one; -1 in their dims is that input's own size."""

    names: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class BatchShapes:
    """Lists the shape inputs of one model; usually there are none."""

    inputs: tuple[BatchInput, ...] = ()
    outputs: tuple[BatchOutput, ...] = ()
