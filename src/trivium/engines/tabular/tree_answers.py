"""Chooses what a model of trees answers: classes and probabilities as an estimator, or one array as a server asks.

Source of the words: the options of DJL's engines XGBoost and LightGBM (`Mode`, `inference_type`), and the parameters of
Triton's backend `fil`. Pure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trivium.engines.tabular.estimator import PREDICT, PROBABILITIES, Estimator, of_two, output, softmax
from trivium.settings.kinds import Number, OneOf
from trivium.settings.parameters import read_parameters
from trivium.settings.setting import Setting
from trivium.types.datatype import Array, DataType
from trivium.types.spec import ModelSpec

ESTIMATOR, CLASSES, SCORES = "estimator", "classes", "probabilities"
VALUES, MARGIN, LEAVES, CONTRIBUTIONS = "values", "margin", "leaves", "contributions"
_ANSWER = Setting(
    "answer",
    OneOf((ESTIMATOR, CLASSES, SCORES, VALUES, MARGIN, LEAVES, CONTRIBUTIONS)),
    ESTIMATOR,
    help="What is answered: class and probabilities, as an estimator; or one of them; or the booster's own values, "
    "margins, leaves or contributions.",
)
_THRESHOLD = Setting(
    "threshold", Number(0, 1), "0.5", help="The probability from which on a row is of the second class."
)
SHAPLEY = "treeshap_output"
"""The output of Triton's backend `fil` that has what each column contributed; a model that declares it answers it."""
OPTIONS = (_ANSWER, _THRESHOLD)
"""What a model of trees may be told."""


@dataclass(frozen=True, slots=True)
class Trees:
    """A model of trees as its library tells it. `classes` is 0 for what is no classifier. `call` computes VALUES,
    MARGIN, LEAVES or CONTRIBUTIONS of rows; `is_distribution` says that the values of a classifier are probabilities.
    """

    features: int
    classes: int
    call: Callable[[str, Array], Array]
    is_distribution: bool = True

    def probabilities(self, rows: Array) -> Array:
        """Return those of all classes, [rows, classes]."""
        if not self.is_distribution:
            margins = self.call(MARGIN, rows)
            return of_two(1 / (1 + np.exp(-margins))) if self.classes == 2 else softmax(margins)
        values = self.call(VALUES, rows)
        return of_two(values.ravel()) if self.classes == 2 else values


def estimator(trees: Trees, spec: ModelSpec) -> Estimator:
    """Return what computes what the spec's parameters ask for. Raises LOAD_FAILED for a parameter that cannot be."""
    shown = [tensor for tensor in spec.outputs if tensor.name == SHAPLEY]
    plain = replace(spec, outputs=tuple(tensor for tensor in spec.outputs if tensor.name != SHAPLEY))
    chosen = _chosen_answer(trees, plain)
    return _explained(trees, chosen) if shown else chosen


def _explained(trees: Trees, chosen: Estimator) -> Estimator:
    """Answer what was chosen, and the contributions of the columns with the bias behind them."""

    def computed(rows: Array) -> Sequence[Array]:
        return *chosen.predict(rows), _as(trees.call(CONTRIBUTIONS, rows), DataType.FP32)

    dims = np.shape(trees.call(CONTRIBUTIONS, _zeros(trees)))[1:]
    return Estimator(trees.features, (*chosen.outputs, output(SHAPLEY, DataType.FP32, *dims)), computed)


def _zeros(trees: Trees) -> Array:
    return np.zeros((1, max(trees.features, 1)), np.float32)


def _chosen_answer(trees: Trees, spec: ModelSpec) -> Estimator:
    told = read_parameters(spec, OPTIONS)
    threshold = told.get("threshold", 0.5)
    answer = told.get("answer", ESTIMATOR)
    if answer == ESTIMATOR and trees.classes:
        return _classifier(trees, threshold)
    if answer in (CLASSES, SCORES) and trees.classes:
        return _one_of_both(trees, answer, threshold, spec)
    what = VALUES if answer in (ESTIMATOR, CLASSES, SCORES) else answer
    name = spec.outputs[0].name if spec.outputs else PREDICT
    dims = np.shape(trees.call(what, _zeros(trees)))[1:]
    datatype = DataType.INT32 if what == LEAVES else DataType.FP32

    def computed(rows: Array) -> Sequence[Array]:
        return (_as(trees.call(what, rows), datatype),)

    return Estimator(trees.features, (output(name, datatype, *dims),), computed)


def _as(array: Array, datatype: DataType) -> Array:
    dtype: Any = np.int32 if datatype is DataType.INT32 else np.float32
    return np.asarray(array, dtype)


def _chosen(probabilities: Array, threshold: float) -> Array:
    if probabilities.shape[1] == 2:
        return np.greater(probabilities[:, 1], threshold)
    return np.asarray(probabilities.argmax(axis=1))


def _classifier(trees: Trees, threshold: float) -> Estimator:
    """Answer the class, as its number, and the probability of each."""

    def computed(rows: Array) -> Sequence[Array]:
        probabilities = _as(trees.probabilities(rows), DataType.FP32)
        return np.asarray(_chosen(probabilities, threshold), np.int64), probabilities

    outputs = output(PREDICT, DataType.INT64), output(PROBABILITIES, DataType.FP32, trees.classes)
    return Estimator(trees.features, outputs, computed)


def _one_of_both(trees: Trees, answer: str, threshold: float, spec: ModelSpec) -> Estimator:
    """Answer one array of numbers, under the name that the spec gives it: the class, or the probabilities; of two
    classes that of the second alone where the spec has room for one.
    """
    declared = (
        spec.outputs[0]
        if spec.outputs
        else output(PREDICT if answer == CLASSES else PROBABILITIES, DataType.FP32)
    )
    is_one = answer == SCORES and trees.classes == 2 and declared.dims[-1:] == (1,)

    def computed(rows: Array) -> Sequence[Array]:
        probabilities = trees.probabilities(rows)
        if answer == CLASSES:
            return (_as(_chosen(probabilities, threshold), DataType.FP32),)
        return (_as(probabilities[:, 1:] if is_one else probabilities, DataType.FP32),)

    dims = () if answer == CLASSES else (1,) if is_one else (trees.classes,)
    return Estimator(trees.features, (output(declared.name, DataType.FP32, *dims),), computed)
