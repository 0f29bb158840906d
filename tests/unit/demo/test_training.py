"""The network learns, its slopes are those of its loss, and its ONNX graph computes the same."""

import numpy as np
import onnxruntime
import pytest
from examples.digits import network, train
from examples.digits.graph import onnx_model
from examples.digits.split import Part, training_part

PART = training_part()
FEW = Part(PART.indices[:200], PART.pictures[:200], PART.labels[:200])
NAMES = ("kernel0", "kernel1", "kernel2", "bias0", "bias1", "bias2", "dense", "offset")


def weights() -> network.Weights:
    return network.initial_weights(np.random.default_rng(3))


def smooth_point() -> network.Weights:
    """In double precision, fit for differences; no bias is 0, where blank paper sits on a rectifier's bend."""
    drawn = weights()
    return network.Weights(
        tuple(kernel.astype(np.float64) for kernel in drawn.kernels),
        tuple(np.linspace(-0.3, 0.31, len(bias)) for bias in drawn.biases),
        drawn.dense.astype(np.float64),
        drawn.offset.astype(np.float64),
    )


def loss(at: network.Weights, part: Part) -> float:
    shares = network.probabilities(at, part.tensor)
    return float(-np.log(shares[np.arange(len(part.labels)), part.labels].astype(np.float64)).mean())


@pytest.mark.parametrize("which", range(len(NAMES)), ids=NAMES)
def test_a_slope_is_that_of_the_loss(which) -> None:
    point = smooth_point()
    slope = list(network.slopes(point, FEW.tensor, FEW.labels))[which]
    array, length, step = list(point)[which], np.linalg.norm(slope), 1e-7
    array += slope * (step / length)
    above = loss(point, FEW)
    array -= slope * (2 * step / length)
    assert (above - loss(point, FEW)) / (2 * step) == pytest.approx(length, rel=1e-3)


def test_passes_teach_something_and_the_same_each_time() -> None:
    assert train.accuracy(train.train(FEW, 10, seed=1), FEW) > 0.5
    first, second = train.train(FEW, 2, seed=1), train.train(FEW, 2, seed=1)
    assert all((one == other).all() for one, other in zip(first, second, strict=True))


def test_the_graph_computes_what_the_network_does() -> None:
    point = weights()
    session = onnxruntime.InferenceSession(onnx_model(point).SerializeToString())
    (shares,) = session.run(["probabilities"], {"image": FEW.tensor})
    np.testing.assert_allclose(shares, network.probabilities(point, FEW.tensor), atol=1e-5)


def test_a_shift_moves_a_picture_by_a_pixel_at_most() -> None:
    one = np.zeros((300, 1, 8, 8), np.float32)
    one[:, 0, 3, 4] = 1
    moved = train.shifted(one, np.random.default_rng(0))
    assert moved.shape == one.shape
    where = {(int(row), int(column)) for _, _, row, column in np.argwhere(moved)}
    assert where == {(row, column) for row in (2, 3, 4) for column in (3, 4, 5)}
    assert (moved.sum(axis=(1, 2, 3)) == 1).all()


def test_a_shift_brings_in_paper() -> None:
    moved = train.shifted(np.ones((300, 1, 8, 8), np.float32), np.random.default_rng(0))
    assert set(moved.sum(axis=(1, 2, 3)).tolist()) == {64.0, 56.0, 49.0}
