"""Writes the demo's ten pictures: of each digit the first held-out one that the shipped model gets right.

    python -m examples.digits.pictures

Run it after `examples.digits.train`. Each pixel becomes a square of 8 x 8, so that a person can see the digit
and a box filter finds the pixel again.
"""

import numpy as np
import onnxruntime
from examples.digits import shipped
from examples.digits.split import Part, held_out_part
from PIL import Image

_SCALE = 8


def chosen(part: Part) -> list[int]:
    """Positions in the part, by digit. IndexError if the model gets all of one digit wrong."""
    session = onnxruntime.InferenceSession(str(shipped.MODEL), providers=["CPUExecutionProvider"])
    (scores,) = session.run(["probabilities"], {"image": part.tensor})
    is_right = scores.argmax(axis=1) == part.labels
    return [np.flatnonzero(is_right & (part.labels == digit)).tolist()[0] for digit in range(10)]


def main() -> None:
    """Write `digit-0.png` to `digit-9.png`."""
    part = held_out_part()
    shipped.PICTURES.mkdir(exist_ok=True)
    for digit, position in enumerate(chosen(part)):
        path = shipped.PICTURES / f"digit-{digit}.png"
        squares = np.kron(part.pictures[position], np.ones((_SCALE, _SCALE), np.uint8))
        Image.fromarray(squares).save(path, optimize=True)
        print(f"wrote {path}: number {part.indices[position]} of the data set")


if __name__ == "__main__":
    main()
