"""A small convolutional classifier in numpy: what it computes, and the slopes of its loss.

Three 3x3 convolutions with rectifiers (the last two halve the picture), one dense layer, ten classes. Knows
neither the pictures nor how they are trained on.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

STRIDES = (1, 2, 2)
_CHANNELS = (1, 16, 32, 64)
_SIDE = 3  # of a kernel; the padding of 1 on every side keeps a picture's size at stride 1
_FEATURES = 64 * 2 * 2
_CLASSES = 10


@dataclass(frozen=True, slots=True)
class Weights:
    """`kernels[i]` [out, in, 3, 3] and `biases[i]` [out] of the convolutions; `dense` [10, 256] and `offset`
    [10]. Training changes the arrays in place.
    """

    kernels: tuple[Array, ...]
    biases: tuple[Array, ...]
    dense: Array
    offset: Array

    def __iter__(self) -> Iterator[Array]:
        """Every array, in an order of its own."""
        yield from (*self.kernels, *self.biases, self.dense, self.offset)


def initial_weights(chance: np.random.Generator) -> Weights:
    """Normal with variance 2 / fan-in (He et al. 2015, section 2.2); zero biases."""

    def drawn(*shape: int) -> Array:
        scale = np.sqrt(2 / np.prod(shape[1:]))
        return (chance.standard_normal(shape) * scale).astype(np.float32)

    pairs = list(pairwise(_CHANNELS))
    return Weights(
        kernels=tuple(drawn(after, before, _SIDE, _SIDE) for before, after in pairs),
        biases=tuple(np.zeros(after, np.float32) for _, after in pairs),
        dense=drawn(_CLASSES, _FEATURES),
        offset=np.zeros(_CLASSES, np.float32),
    )


def probabilities(weights: Weights, images: Array) -> Array:
    """[N, 10] for images [N, 1, 8, 8]; each row sums to 1."""
    return _classified(weights, _layers(weights, images)[-1])


def slopes(weights: Weights, images: Array, labels: npt.NDArray[np.intp]) -> Weights:
    """Of the mean cross-entropy, by every weight; `labels` [N] are the right classes."""
    layers = _layers(weights, images)
    features = layers[-1].reshape(len(images), -1)
    by_score = (_classified(weights, layers[-1]) - np.eye(_CLASSES, dtype=np.float32)[labels]) / len(images)
    by_layer = (by_score @ weights.dense).reshape(layers[-1].shape)
    kernels: list[Array] = []
    biases: list[Array] = []
    for i in reversed(range(len(STRIDES))):
        by_layer = by_layer * (layers[i + 1] > 0)
        seen = _windows(layers[i], STRIDES[i])
        kernels.insert(0, np.tensordot(by_layer, seen, axes=([0, 2, 3], [0, 2, 3])))
        biases.insert(0, by_layer.sum(axis=(0, 2, 3)))
        by_layer = _spread(by_layer, weights.kernels[i], STRIDES[i])
    return Weights(tuple(kernels), tuple(biases), by_score.T @ features, by_score.sum(axis=0))


def _layers(weights: Weights, images: Array) -> list[Array]:
    """The images, and what each convolution makes of them."""
    layers = [images]
    for kernel, bias, stride in zip(weights.kernels, weights.biases, STRIDES, strict=True):
        sums = np.tensordot(_windows(layers[-1], stride), kernel, axes=([1, 4, 5], [1, 2, 3])) + bias
        layers.append(np.maximum(sums, 0).transpose(0, 3, 1, 2))
    return layers


def _classified(weights: Weights, last: Array) -> Array:
    scores = last.reshape(len(last), -1) @ weights.dense.T + weights.offset
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Array = powers / powers.sum(axis=1, keepdims=True)
    return shares


def _windows(layer: Array, stride: int) -> Array:
    """What each place of a convolution sees: [N, channels, height, width, 3, 3], a view."""
    padded = np.pad(layer, ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (_SIDE, _SIDE), axis=(2, 3))
    return seen[:, :, ::stride, ::stride]


def _spread(by_output: Array, kernel: Array, stride: int) -> Array:
    """The slope by a convolution's input, from the slope by its output: each window's share put back."""
    count, _, height, width = by_output.shape
    shares = np.tensordot(by_output, kernel, axes=([1], [0]))  # [N, height, width, in, 3, 3]
    padded = np.zeros((count, kernel.shape[1], height * stride + 2, width * stride + 2), by_output.dtype)
    for row in range(_SIDE):
        for column in range(_SIDE):
            rows = slice(row, row + height * stride, stride)
            columns = slice(column, column + width * stride, stride)
            padded[:, :, rows, columns] += shares[..., row, column].transpose(0, 3, 1, 2)
    return padded[:, :, 1:-1, 1:-1]
