"""Holds what a library of tabular models has opened, as the engines here call it: rows of numbers in, arrays out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trivium.types.datatype import Array, DataType
from trivium.types.spec import TensorSpec

INPUT = "input-0"
"""The one input of a file that tells no name: KServe's examples for these libraries call it so."""

PREDICT, PROBABILITIES = "predict", "predict_proba"
"""Outputs, named after what an estimator of scikit-learn computes them by; MLServer calls them so, too."""

ANY = -1


@dataclass(frozen=True, eq=False, slots=True)
class Estimator:
    """A model that has been opened. `predict` takes rows of `features` numbers, [rows, features], and returns an array
    for each of `outputs`, whose first dimension is the rows. `features` is -1 where the file does not tell it.
    """

    features: int
    outputs: tuple[TensorSpec, ...]
    predict: Callable[[Array], Sequence[Array]]

    def input(self, datatype: DataType) -> TensorSpec:
        """Describe the one input, with its rows."""
        return TensorSpec(INPUT, datatype, (ANY, self.features))


def output(name: str, datatype: DataType, *dims: int) -> TensorSpec:
    """Describe an output: a value per row, or an array of `dims`."""
    return TensorSpec(name, datatype, (ANY, *dims))


def of_two(positive: Array) -> Array:
    """Return the probabilities of both classes, [rows, 2], by that of the second, [rows]."""
    return np.column_stack((np.subtract(1, positive), positive))


def softmax(margins: Array) -> Array:
    """Return probabilities by margins, both [rows, classes]."""
    powers = np.exp(margins - margins.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
