"""Answers of models that see what a picture shows: the most probable classes, or the features themselves."""

from collections.abc import Mapping, Sequence

from trivium.translators.arguments import ClassificationArguments, PictureArguments
from trivium.translators.pictures.labels import fault_of_labels
from trivium.translators.pictures.pipeline import PicturePipeline, PreparedPicture, finite, only_output
from trivium.types.datatype import Array
from trivium.types.errors import Code, ServeError
from trivium_worker import pictures as steps


class ImageClassifier:
    """Image classification: `[{"className", "probability"}]`, the best first."""

    def __init__(self, arguments: ClassificationArguments, labels: Sequence[str]) -> None:
        self.pipeline = PicturePipeline(arguments.picture)
        self._arguments = arguments
        self._labels = labels

    def fault(self, shapes: Mapping[str, Sequence[int]]) -> str:
        """Return what is wrong with the labels for outputs of these shapes (no batch axis, -1 for any); else empty."""
        if len(shapes) != 1:
            return f"the model has {len(shapes)} outputs; image classification reads a model that has one"
        classes = 1
        for edge in next(iter(shapes.values())):
            classes = -1 if edge < 0 or classes < 0 else classes * edge
        return fault_of_labels(self._labels, classes)

    def answer(self, outputs: Mapping[str, Array], picture: PreparedPicture) -> list[dict[str, object]]:
        """Return the answer of one item; its outputs have no batch axis."""
        numbers = finite(only_output(outputs).reshape(-1))
        if fault := fault_of_labels(self._labels, len(numbers)):
            raise ServeError(Code.MODEL_FAILED, f"{fault}.")
        numbers = steps.softmax(numbers) if self._arguments.apply_softmax else numbers
        return steps.classifications(self._labels, numbers, self._arguments.top_k)


class FeatureExtractor:
    """Image features: the first output as a flat list of numbers."""

    def __init__(self, arguments: PictureArguments) -> None:
        self.pipeline = PicturePipeline(arguments)

    def fault(self, shapes: Mapping[str, Sequence[int]]) -> str:
        """Return nothing: any output is a list of numbers."""
        return ""

    def answer(self, outputs: Mapping[str, Array], picture: PreparedPicture) -> list[float]:
        """Return the answer of one item; its outputs have no batch axis."""
        first = next(iter(outputs.values()))
        numbers: list[float] = finite(first.astype("<f4")).reshape(-1).tolist()
        return numbers
