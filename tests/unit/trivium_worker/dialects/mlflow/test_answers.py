"""What a model of MLflow may predict, and the tensors that become of it."""

from typing import Any

import numpy as np
import pytest

from trivium_worker.dialects.mlflow.answers import tensors_of
from trivium_worker.wire.values import Tensor

LONG = [["digit", "INT64", True]]
TOLD: list[tuple[Any, list[list[Any]], list[tuple[str, str, tuple[int, ...], Any]]]] = [
    (np.array([1.5, 2.5]), [], [("output-0", "FP64", (2,), [1.5, 2.5])]),
    ([1, 2], [], [("output-0", "INT64", (2,), [1, 2])]),
    (3.5, [], [("output-0", "FP64", (1,), [3.5])]),
    ([[1.0], [2.0]], [], [("output-0", "FP64", (2, 1), [[1.0], [2.0]])]),
    (["a", "ü"], [], [("output-0", "BYTES", (2,), [b"a", "ü".encode()])]),
    ([{"a": 1}], [], [("output-0", "BYTES", (1,), [b'{"a": 1}'])]),
    ([[1], [2, 3]], [], [("output-0", "BYTES", (2,), [b"[1]", b"[2, 3]"])]),
    ({"x": [1], "y": ["b"]}, [], [("x", "INT64", (1,), [1]), ("y", "BYTES", (1,), [b"b"])]),
    (np.array([1.0, 2.0]), LONG, [("digit", "INT64", (2, 1), [[1], [2]])]),
    ({"digit": np.array([7], np.int32)}, LONG, [("digit", "INT64", (1, 1), [[7]])]),
    (np.array([True]), [["y", "BOOL", False]], [("y", "BOOL", (1,), [True])]),
]


def shown(tensor: Tensor) -> tuple[str, str, tuple[int, ...], Any]:
    return tensor.name, tensor.datatype, tensor.shape, tensor.array().tolist()


@pytest.mark.parametrize(("found", "outputs", "expected"), TOLD)
def test_each_form_becomes_tensors(found: Any, outputs: list[list[Any]], expected: list[Any]) -> None:
    assert [shown(one) for one in tensors_of(found, outputs)] == expected
