"""Makes the inputs and outputs that clients see of a signature: one for each column, or its tensors. Pure.

Names and shapes of what has none are those that MLServer has for the same signature: `input-0`, [-1, 1].
"""

from collections.abc import Sequence

from trivium.formats.mlflow.signature import Column, Side
from trivium.types.datatype import DataType
from trivium.types.spec import TensorSpec

INPUT, OUTPUT = "input-", "output-"
"""What the names of inputs and outputs begin with that have none of their own."""


def tensors_of(side: Side, prefix: str) -> tuple[TensorSpec, ...]:
    """Return a tensor for each column or tensor of one side of a signature, with whole dims."""
    if side.columns:
        return columns_of(side.columns, prefix)
    return tuple(
        TensorSpec(one.name or f"{prefix}{at}", one.datatype, one.dims) for at, one in enumerate(side.tensors)
    )


def columns_of(columns: Sequence[Column], prefix: str) -> tuple[TensorSpec, ...]:
    """Return a tensor for each column. Values of a type that no tensor holds are BYTES: their text, or their JSON."""
    return tuple(
        TensorSpec(
            one.name or f"{prefix}{at}",
            one.datatype or DataType.BYTES,
            (-1, 1),
            optional=not one.required,
            column=True,
        )
        for at, one in enumerate(columns)
    )
