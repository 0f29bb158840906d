"""`ImageClassifier`: the built-in handler for models that say what a picture shows.

Source: spec sheet `torchserve`, section 8.3. This module defines exactly one class.
"""

from typing import Any

from ts.torch_handler.picture_steps import center_crop, compose, normalize, resize, to_tensor
from ts.torch_handler.vision_handler import MEAN, STD, VisionHandler
from ts.utils.util import map_class_to_label


class ImageClassifier(VisionHandler):
    """Answers with the most probable classes of a picture and their probabilities, in falling order."""

    topk = 5
    image_processing = staticmethod(compose(resize(256), center_crop(224), to_tensor, normalize(MEAN, STD)))

    def set_max_result_classes(self, topk: int) -> None:
        """Say how many classes are answered."""
        self.topk = topk

    def get_max_result_classes(self) -> int:
        """Return how many classes are answered."""
        return self.topk

    def postprocess(self, data: Any) -> list[Any]:
        """Return a dict of probabilities by label for each picture; all classes where there are fewer than `topk`."""
        import torch

        likely, classes = torch.topk(torch.softmax(data, dim=1), min(self.topk, data.shape[1]), dim=1)
        return list(map_class_to_label(likely.tolist(), self.mapping, classes.tolist()))
