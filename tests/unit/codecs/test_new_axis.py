"""Items that become rows of one batch along a new first dimension, and what comes back."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from tests.harness import onnx_models
from tests.harness.properties import examples

from trivium.codecs.new_axis import narrowed, widened
from trivium.codecs.rows import Stacker, split
from trivium.engines.onnx.engine import ENGINE
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensors
from trivium.types.spec import Batching, Join


@settings(max_examples=examples(60))
@given(st.lists(st.integers(0, 3), min_size=0, max_size=3), st.integers(1, 5))
def test_what_is_stacked_comes_back(shape: list[int], count: int) -> None:
    items = [
        Tensors.of({"a": np.full(shape, number, "f4"), "b": np.array(number)}) for number in range(count)
    ]
    stacked = Stacker().stack(widened(items, False), ["a", "b"])
    assert stacked["a"].shape == (count, *shape)
    again = map(narrowed, split(Tensors.of(stacked), [1] * count))
    for item, part in zip(items, again, strict=True):
        assert part["a"].tolist() == item["a"].tolist()
        assert part.items[0].shape == tuple(shape)
        assert part["b"].tolist() == item["b"].tolist()


def test_padding_fills_up_to_the_longest_in_every_dimension() -> None:
    items = [Tensors.of({"x": np.ones(shape, "i8")}) for shape in ((1, 3), (2, 1))]
    first, second = (item["x"].tolist() for item in widened(items, True))
    assert first == [[[1, 1, 1], [0, 0, 0]]]
    assert second == [[[1, 0, 0], [1, 0, 0]]]
    texts = [Tensors.of({"x": np.array(text, object)}) for text in ([b"a"], [b"b", b"c"])]
    assert widened(texts, True)[0]["x"].tolist() == [[b"a", b""]]


@pytest.mark.parametrize(
    ("shapes", "is_padded", "words"),
    [
        (((2,), (3,)), False, "input 'x' has the shapes [2] and [3]"),
        (((2,), (2, 1)), False, "[2] and [2, 1]"),
        (((2,), (2, 1)), True, "as many dimensions"),
    ],
)
def test_what_does_not_fit_together_is_refused(shapes, is_padded: bool, words: str) -> None:
    items = [Tensors.of({"x": np.zeros(shape)}) for shape in shapes]
    with pytest.raises(ServeError) as caught:
        widened(items, is_padded)
    assert caught.value.code is Code.INVALID
    assert words in caught.value.message


def test_other_inputs_are_refused() -> None:
    items = [Tensors.of({name: np.zeros(2) for name in names}) for names in ("a", "ab")]
    with pytest.raises(ServeError, match="the inputs differ"):
        widened(items, True)


def summing(folder: Path, join: Join):
    """y is the sum of each row of x, which has any length."""
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    axes = helper.make_node("Constant", [], ["axes"], value_ints=[1])
    x, y = (onnx_models.tensor(name, onnx_models.FLOAT, *dims) for name, dims in (("x", "nm"), ("y", "n")))
    spec = onnx_models.save(folder, [axes, node], [x], [y])
    inputs, outputs = (
        tuple(replace(one, dims=one.dims[1:]) for one in side) for side in (spec.inputs, spec.outputs)
    )
    return replace(spec, inputs=inputs, outputs=outputs, batching=Batching(False, 4, True, join))


@pytest.mark.parametrize("join", [Join.STACK, Join.PAD])
def test_an_engine_sees_a_batch_and_clients_see_none(tmp_path: Path, join: Join) -> None:
    spec = summing(tmp_path, join)
    (alone,) = onnx_models.run(spec, {"x": np.array([1, 2], "f4")})
    assert (alone["y"].tolist(), alone.items[0].shape) == (3, ())
    asked = [{"x": np.arange(3, dtype="f4") + number} for number in range(3)]
    assert [part["y"].tolist() for part in onnx_models.run(spec, *asked)] == [3, 6, 9]


def test_unlike_requests_fail_together_or_are_padded(tmp_path: Path) -> None:
    asked = [{"x": np.ones(count, "f4")} for count in (1, 3)]
    spec = summing(tmp_path, Join.PAD)
    assert [part["y"].tolist() for part in onnx_models.run(spec, *asked)] == [1, 3]
    spec = summing(tmp_path, Join.STACK)
    runner = ENGINE.open(spec, onnx_models.HERE)
    with pytest.raises(ServeError) as caught:
        onnx_models.run(spec, *asked, runner=runner)
    assert caught.value.code is Code.INVALID
    (good,) = onnx_models.run(spec, asked[0], runner=runner)
    assert good["y"].tolist() == 1
