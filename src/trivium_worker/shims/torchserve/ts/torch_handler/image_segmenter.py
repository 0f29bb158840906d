"""`ImageSegmenter`: the built-in handler for models that say of each pixel what it shows.

Source: spec sheet `torchserve`, section 8.3. This module defines exactly one class.
"""

from typing import Any

from ts.torch_handler.picture_steps import center_crop, compose, normalize, resize, to_tensor
from ts.torch_handler.vision_handler import MEAN, STD, VisionHandler


class ImageSegmenter(VisionHandler):
    """Answers with the most probable class of each pixel, and its probability: [height][width][2]."""

    image_processing = staticmethod(compose(resize(256), center_crop(224), to_tensor, normalize(MEAN, STD)))

    def postprocess(self, data: Any) -> list[Any]:
        """Return nested lists of the model's output `out` [pictures, classes, height, width]."""
        import torch

        likely, classes = torch.max(torch.softmax(data["out"], dim=1), dim=1)
        answers: list[Any] = torch.stack([classes.to(likely.dtype), likely], dim=3).tolist()
        return answers
