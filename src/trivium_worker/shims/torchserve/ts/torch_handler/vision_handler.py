"""`VisionHandler`: pictures, in bytes or base64, or lists of numbers become one tensor; to be extended.

Source: spec sheet `torchserve`, section 8.3. Needs torch and Pillow. A picture that is not RGB becomes RGB, where the
original fails.
"""

import base64
import logging
from abc import ABC
from typing import Any

from trivium_worker.pictures import IMAGENET_MEAN, IMAGENET_STD, MOST_PIXELS, open_picture
from ts.torch_handler.base_handler import BaseHandler

_UNLIMITED = 2**40
_STEPS = 15

MEAN, STD = IMAGENET_MEAN, IMAGENET_STD


class VisionHandler(BaseHandler, ABC):
    """Makes tensors of pictures by `image_processing`, which a handler defines: a picture in, a tensor out."""

    image_processing: Any
    _has_noted_mode = False

    def initialize(self, context: Any) -> None:
        """Load the model, and what explains its answers, where the package captum is installed."""
        super().initialize(context)
        limited = context.system_properties.get("limit_max_image_pixels", True)
        self._most_pixels = MOST_PIXELS if limited else _UNLIMITED
        self.ig = _gradients(self.model)

    def preprocess(self, data: Any) -> Any:
        """Return the pictures of a batch as one tensor on the device. ValueError for what is no picture."""
        import torch

        return torch.stack([self._tensor(row.get("data") or row.get("body")) for row in data]).to(self.device)

    def _tensor(self, sent: Any) -> Any:
        import torch

        image = base64.b64decode(sent) if isinstance(sent, str) else sent
        if isinstance(image, bytes | bytearray | memoryview):
            return self.image_processing(self._picture(bytes(image)))
        return torch.FloatTensor(image)

    def _picture(self, data: bytes) -> Any:
        return open_picture(data, most_pixels=self._most_pixels, converted=self._note_mode)

    def _note_mode(self, mode: str) -> None:
        if not self._has_noted_mode:
            self._has_noted_mode = True
            logging.warning("a picture is of the mode %s, and becomes RGB; this is said once", mode)

    def get_insights(self, tensor_data: Any, _: Any, target: Any = 0) -> Any:
        """Return how much each value of the pictures says for a class, by integrated gradients."""
        if self.ig is None:
            raise RuntimeError("Explanations of pictures need the package captum: pip install captum")
        logging.info("integrated gradients of %d pictures, class %s", len(tensor_data), target)
        return self.ig.attribute(tensor_data, target=target, n_steps=_STEPS).tolist()


def _gradients(model: Any) -> Any:
    try:
        from captum.attr import IntegratedGradients
    except ImportError:
        return None
    return IntegratedGradients(model)
