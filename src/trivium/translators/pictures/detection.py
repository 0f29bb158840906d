"""Answers of models that find things in a picture, the likeliest first.

Source: spec sheet `djl`, section 10, and what DJL's translators read of a model's outputs. Each thing is
`{"className", "probability", "boundingBox"}`, and its box `{"rect": [left, top, right, bottom]}`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from trivium.translators.arguments import DetectionArguments
from trivium.translators.pictures.pipeline import PicturePipeline, PreparedPicture
from trivium.types.datatype import Array
from trivium.types.errors import Code, ServeError

Numbers = npt.NDArray[np.float64]
Found = tuple[npt.NDArray[np.int64], Numbers, Numbers]
"""Classes `[boxes]`, scores `[boxes]`, and boxes `[boxes, 4]` as left, top, width and height."""


class ObjectDetector(ABC):
    """A translator of detection without its reading of the outputs, which each kind of model has its own of."""

    def __init__(self, arguments: DetectionArguments, labels: Sequence[str]) -> None:
        self.pipeline = PicturePipeline(arguments.picture)
        self.arguments = arguments
        self.labels = labels
        self.threshold = np.float32(arguments.threshold)  # a score that equals it must not be above it

    def fault(self, shapes: Mapping[str, Sequence[int]]) -> str:
        """Return what is wrong with outputs of these shapes (no batch axis, -1 for any); empty for nothing."""
        if len(shapes) < 3:
            return f"the model has {len(shapes)} outputs; this translator reads classes, scores and boxes"
        return ""

    def answer(self, outputs: Mapping[str, Array], picture: PreparedPicture) -> list[dict[str, object]]:
        """Return the answer of one item; its outputs have no batch axis."""
        classes, scores, boxes = self.found(list(outputs.values()), picture)
        if len(classes) and classes.max() >= len(self.labels):
            raise failure(
                f"The model found class {classes.max()}, and there are {len(self.labels)} class names."
            )
        corners = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], 1)
        return [
            {
                "className": self.labels[classes[index]],
                "probability": float(scores[index]),
                "boundingBox": {"rect": corners[index].tolist()},
            }
            for index in np.argsort(-scores, kind="stable")
        ]

    @abstractmethod
    def found(self, arrays: Sequence[Array], picture: PreparedPicture) -> Found:
        """Return what the outputs of a model say is there."""

    def three_outputs(self, arrays: Sequence[Array]) -> Found:
        """Return classes, scores, and corners of boxes. MODEL_FAILED where they do not fit together."""
        if len(arrays) < 3:
            raise failure(
                f"The model answered with {len(arrays)} outputs; expected classes, scores and boxes."
            )
        classes, scores = (numbers(array).reshape(-1) for array in arrays[:2])
        boxes = numbers(arrays[2])
        if boxes.ndim != 2 or boxes.shape[1] < 4 or not len(classes) == len(scores) == len(boxes):
            raise failure(
                f"The model answered with {len(classes)} classes, {len(scores)} scores and boxes of the shape "
                f"{list(boxes.shape)}; expected a class, a score and four numbers for each box."
            )
        return classes.astype(np.int64), scores, boxes[:, :4]

    @property
    def size(self) -> Numbers:
        """Width and height of the model's picture, twice: what a box is a fraction of."""
        picture = self.arguments.picture
        return np.array([picture.width, picture.height] * 2, np.float64)


class SingleShotDetector(ObjectDetector):
    """SSD: outputs are classes, scores and corners. With `applyRatio` boxes become fractions of the picture."""

    def found(self, arrays: Sequence[Array], picture: PreparedPicture) -> Found:
        """See `ObjectDetector`: a class below 0 is none, and so is a score at the threshold."""
        classes, scores, boxes = self.three_outputs(arrays)
        kept = (classes >= 0) & (scores > self.threshold)
        boxes = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1)[kept]
        return classes[kept], scores[kept], boxes / self.size if self.arguments.apply_ratio else boxes


class YoloDetector(ObjectDetector):
    """YOLO: outputs are classes, scores and corners, cut at the picture's edge. Boxes are fractions of the picture."""

    def found(self, arrays: Sequence[Array], picture: PreparedPicture) -> Found:
        """See `ObjectDetector`: a class below 0 is none, and so is a score below the threshold."""
        classes, scores, boxes = self.three_outputs(arrays)
        kept = (classes >= 0) & (scores >= self.threshold)
        corners = np.clip(boxes[kept], 0, self.size) / self.size
        return (
            classes[kept],
            scores[kept],
            np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], 1),
        )


class YoloV5Detector(ObjectDetector):
    """YOLOv5: the output is a row a box, its middle, its size, the score of a thing and the scores of the classes."""

    _before_classes = 5

    def fault(self, shapes: Mapping[str, Sequence[int]]) -> str:
        """See `ObjectDetector`."""
        shape = next(iter(shapes.values()), ())
        if len(shape) != 2:
            return self._no_boxes(shape)
        return self._fault_of_width(shape[self._axis])

    def found(self, arrays: Sequence[Array], picture: PreparedPicture) -> Found:
        """See `ObjectDetector`: of boxes that lie on one another the best is kept, class by class."""
        rows = numbers(arrays[0]) if arrays else np.zeros(0)
        if rows.ndim != 2:
            raise failure(f"{self._no_boxes(rows.shape)}.")
        rows = rows if self._axis else rows.T[::-1][: self.arguments.max_boxes]
        if fault := self._fault_of_width(rows.shape[1]):
            raise failure(f"{fault}.")
        of_classes = rows[:, self._before_classes :]
        classes = of_classes.argmax(1) if len(rows) else np.zeros(0, np.int64)
        scores = self._scores(rows, of_classes.max(1, initial=0))
        kept = scores > self.threshold
        classes, scores, rows = classes[kept], scores[kept], rows[kept]
        boxes = np.concatenate([np.maximum(rows[:, :2] - rows[:, 2:4] / 2, 0), rows[:, 2:4]], 1)
        chosen = [
            index for name in np.unique(classes) for index in self._unlike(boxes, scores, classes == name)
        ]
        return classes[chosen], scores[chosen], self._scaled(boxes[chosen], picture)

    _axis = 1
    """The axis of the output along which the numbers of one box stand."""

    def _scores(self, rows: Numbers, best: Numbers) -> Numbers:
        return (best.astype(np.float32) * rows[:, 4].astype(np.float32)).astype(np.float64)

    def _no_boxes(self, shape: Sequence[int]) -> str:
        return (
            f"the model's first output has the shape {list(shape)} without its batch axis; expected two axes, the "
            "boxes and their numbers: export the model with its detection layer"
        )

    def _fault_of_width(self, width: int) -> str:
        classes = width - self._before_classes
        if width < 0 or classes == len(self.labels):
            return ""
        return f"the file synset.txt has {len(self.labels)} class names and the model's output has {classes} classes"

    def _unlike(self, boxes: Numbers, scores: Numbers, members: npt.NDArray[np.bool_]) -> list[int]:
        """Return the indices of the boxes that overlap no better one as far as the threshold."""
        (left,) = np.nonzero(members)
        left = left[np.argsort(-scores[left], kind="stable")]
        chosen = []
        while len(left):
            best, left = left[0], left[1:]
            chosen.append(int(best))
            left = left[overlap(boxes[best], boxes[left]) < np.float32(self.arguments.nms_threshold)]
        return chosen

    def _scaled(self, boxes: Numbers, picture: PreparedPicture) -> Numbers:
        asked = self.arguments
        if asked.remove_padding:
            fringe = [
                (asked.picture.width - picture.width) // 2,
                (asked.picture.height - picture.height) // 2,
            ]
            return (boxes - [*fringe, 0, 0]) / [picture.width, picture.height, picture.width, picture.height]
        return boxes / self.size if asked.apply_ratio else boxes


class YoloV8Detector(YoloV5Detector):
    """YOLOv8: the output is a column a box, its middle, its size and the scores of the classes; the last are read."""

    _before_classes = 4
    _axis = 0

    def _scores(self, rows: Numbers, best: Numbers) -> Numbers:
        return best


def overlap(box: Numbers, others: Numbers) -> Numbers:
    """Return what a box has in common with each other, as a share of what both cover."""
    least = np.maximum(box[:2], others[:, :2])
    most = np.minimum(box[:2] + box[2:], others[:, :2] + others[:, 2:])
    common = np.prod(np.maximum(most - least, 0), axis=1)
    covered = np.prod(box[2:]) + np.prod(others[:, 2:], axis=1) - common
    shares: Numbers = np.divide(common, covered, out=np.ones_like(common), where=covered > 0)
    return shares


def numbers(array: Array) -> Numbers:
    """Return an array as FP64. MODEL_FAILED where it holds NaN or infinity."""
    found = array.astype(np.float64)
    if not np.isfinite(found).all():
        raise failure("The model answered with NaN or infinity, which JSON cannot hold.")
    return found


def failure(message: str) -> ServeError:
    """Return the error of a model whose outputs cannot be read; a sentence begins with a capital."""
    return ServeError(Code.MODEL_FAILED, message[:1].upper() + message[1:])
