"""Trains the demo's classifier of handwritten digits and writes it, as ONNX, to where the package ships it.

    pip install -e '.[test]' && python -m examples.digits.train

Plain numpy, seeded, half a minute. It is given the training part and nothing else, and its settings were
chosen on folds of that part; the score on the held-out part is a test of the shipped file (tests/unit/demo).
"""

import numpy as np
from examples.digits import archive, network, shipped
from examples.digits.graph import onnx_model
from examples.digits.network import Array, Weights
from examples.digits.split import Part, training_part

_SEED = 7
_EPOCHS = 160
_ROWS = 32  # of one step
_RATE = 2e-3
_FADING, _SQUARE_FADING, _FLOOR = 0.9, 0.999, 1e-8  # Adam's (Kingma and Ba 2015, algorithm 1)


class Adam:
    """Steps down the slopes (Kingma and Ba 2015, algorithm 1), at a rate that falls to 0 along a cosine."""

    def __init__(self, weights: Weights, steps: int) -> None:
        self._weights = weights
        self._steps = steps
        self._done = 0
        self._means = [np.zeros_like(array) for array in weights]
        self._squares = [np.zeros_like(array) for array in weights]

    def step(self, slopes: Weights) -> None:
        """Change the weights in place."""
        rate = _RATE * (1 + np.cos(np.pi * self._done / self._steps)) / 2
        self._done += 1
        whole, square_whole = 1 - _FADING**self._done, 1 - _SQUARE_FADING**self._done
        for array, slope, mean, square in zip(self._weights, slopes, self._means, self._squares, strict=True):
            mean += (1 - _FADING) * (slope - mean)
            square += (1 - _SQUARE_FADING) * (slope * slope - square)
            array -= np.float32(rate / whole) * mean / (np.sqrt(square / np.float32(square_whole)) + _FLOOR)


def train(part: Part, epochs: int, seed: int) -> Weights:
    """The weights after so many passes over the part, each picture shifted by up to a pixel each way."""
    chance = np.random.default_rng(seed)
    weights = network.initial_weights(chance)
    images = part.tensor
    steps = -(-len(images) // _ROWS)
    adam = Adam(weights, epochs * steps)
    for _ in range(epochs):
        for rows in np.array_split(chance.permutation(len(images)), steps):
            adam.step(network.slopes(weights, shifted(images[rows], chance), part.labels[rows]))
    return weights


def shifted(images: Array, chance: np.random.Generator) -> Array:
    """Each image moved by -1, 0 or 1 pixel down and across; paper comes in from the side."""
    count, _, height, width = images.shape
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    down, across = chance.integers(0, 3, (2, count, 1, 1))
    rows = down + np.arange(height)[:, None]
    columns = across + np.arange(width)
    return padded[np.arange(count)[:, None, None], 0, rows, columns][:, None]


def accuracy(weights: Weights, part: Part) -> float:
    """The share of pictures whose most probable class is the right one."""
    found = network.probabilities(weights, part.tensor).argmax(axis=1)
    return float((found == part.labels).mean())


def main() -> None:
    """Train, write both files, and say how to score them."""
    part = training_part()
    weights = train(part, _EPOCHS, _SEED)
    data = onnx_model(weights).SerializeToString()
    for path in shipped.NETWORKS:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        print(f"wrote {path} ({len(data)} bytes)")
    archive.write(shipped.ARCHIVE)
    print(f"wrote {shipped.ARCHIVE}")
    print(f"{accuracy(weights, part):.2%} of the {len(part.labels)} pictures trained on")
    print("score the held-out pictures with: pytest tests/unit/demo")


if __name__ == "__main__":
    main()
