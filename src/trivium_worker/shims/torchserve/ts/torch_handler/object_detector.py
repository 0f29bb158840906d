"""`ObjectDetector`: the built-in handler for models that find things in a picture.

Source: spec sheet `torchserve`, section 8.3. This module defines exactly one class.
"""

from typing import Any

from ts.torch_handler.picture_steps import compose, to_tensor
from ts.torch_handler.vision_handler import VisionHandler


class ObjectDetector(VisionHandler):
    """Answers with the label, the box [x1, y1, x2, y2] and the score of each thing that is likely enough."""

    threshold = 0.5
    image_processing = staticmethod(compose(to_tensor))

    def postprocess(self, data: Any) -> list[Any]:
        """Return a list of things for each picture, of boxes, labels and scores as torchvision's detectors have
        them.
        """
        return [self._things(found) for found in (data[1] if isinstance(data, tuple) else data)]

    def _things(self, found: Any) -> list[dict[str, Any]]:
        kept = found["scores"] >= self.threshold
        boxes, labels, scores = (found[key][kept].tolist() for key in ("boxes", "labels", "scores"))
        return [
            {self._label(label): box, "score": score}
            for box, label, score in zip(boxes, labels, scores, strict=True)
        ]

    def _label(self, number: int) -> str:
        return str(number) if self.mapping is None else self.mapping[str(number)]
