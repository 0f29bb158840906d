"""The one split of scikit-learn's handwritten digits: a part to train on, and a part held out to score.

Without chance, so that no library can change it: in the order of the data set every fifth picture of each
digit is held out. The two parts come from functions of their own: who asks for one never holds the other.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

_EVERY = 5


@dataclass(frozen=True, slots=True)
class Part:
    """N pictures, ascending by their `indices` [N] in the data set.

    `pictures` [N, 8, 8] uint8 are grey levels, ink 255, as a PNG file holds them; `labels` [N] the digits.
    """

    indices: npt.NDArray[np.intp]
    pictures: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.intp]

    @property
    def tensor(self) -> npt.NDArray[np.float32]:
        """The pictures as the classifier takes them: [N, 1, 8, 8], 0 (paper) to 1 (ink)."""
        return self.pictures[:, None].astype(np.float32) / np.float32(255)


def training_part() -> Part:
    """Four fifths of each digit: all that training may know."""
    return _part(is_held_out=False)


def held_out_part() -> Part:
    """The other fifth. For scoring, and for the pictures that show what was learnt."""
    return _part(is_held_out=True)


def _part(is_held_out: bool) -> Part:
    digits = load_digits()
    labels = digits.target.astype(np.intp)
    (indices,) = np.nonzero((_rank_in_class(labels) % _EVERY == _EVERY - 1) == is_held_out)
    levels = np.rint(digits.images[indices] * (255 / 16)).astype(np.uint8)  # the data set counts ink to 16
    return Part(indices, levels, labels[indices])


def _rank_in_class(labels: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """For each example, how many of its class come before it."""
    same = labels[:, None] == labels[None, :]
    return np.tril(same, -1).sum(axis=1)
