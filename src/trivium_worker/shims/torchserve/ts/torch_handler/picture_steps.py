"""The steps from a picture to a tensor that torchvision's transforms make, without torchvision: the same numbers.

Source: torchvision 0.20, on Pillow pictures (`functional.resize`, `center_crop`, `to_tensor`, `normalize`).
"""

from collections.abc import Callable, Sequence
from typing import Any

from trivium_worker import pictures

Step = Callable[[Any], Any]


def compose(*steps: Step) -> Step:
    """Return the function that takes these steps one after another."""

    def taken(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return taken


def resize(short: int) -> Step:
    """Return the step that makes the shorter edge so long, and the other one in proportion, rounded down."""

    def resized(picture: Any) -> Any:
        width, height = picture.size
        if width <= height:
            size = (short, int(short * height / width))
        else:
            size = (int(short * width / height), short)
        return picture if picture.size == size else pictures.resize(picture, *size)

    return resized


def center_crop(side: int) -> Step:
    """Return the step that cuts a square out of the middle; black is added around a picture that is smaller."""

    def cropped(picture: Any) -> Any:
        width, height = picture.size
        if width < side or height < side:
            room = ((side - width) // 2 if side > width else 0, (side - height) // 2 if side > height else 0)
            picture = _on_black(picture, max(side, width), max(side, height), *room)
            width, height = picture.size
        top, left = round((height - side) / 2.0), round((width - side) / 2.0)
        return picture.crop((left, top, left + side, top + side))

    return cropped


def to_tensor(picture: Any) -> Any:
    """Return bytes [height, width, channels] as FP32 [channels, height, width] from 0 to 1."""
    import numpy as np
    import torch

    array = np.array(picture, np.uint8, copy=True)
    return torch.from_numpy(array).permute(2, 0, 1).contiguous().to(torch.float32).div(255)


def normalize(mean: Sequence[float], std: Sequence[float]) -> Step:
    """Return the step that takes a mean from each channel, and divides by a deviation."""

    def normalized(tensor: Any) -> Any:
        import torch

        means, deviations = (torch.tensor(each, dtype=tensor.dtype).view(-1, 1, 1) for each in (mean, std))
        return tensor.sub(means).div(deviations)

    return normalized


def _on_black(picture: Any, width: int, height: int, left: int, top: int) -> Any:
    from PIL import Image

    wide = Image.new(picture.mode, (width, height))
    wide.paste(picture, (left, top))
    return wide
