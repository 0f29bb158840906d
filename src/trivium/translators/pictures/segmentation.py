"""Semantic segmentation: the class of every pixel, `{"classes", "mask"}`."""

from collections.abc import Mapping, Sequence

from trivium.translators.arguments import SegmentationArguments
from trivium.translators.pictures.pipeline import PicturePipeline, PreparedPicture, finite
from trivium.types.datatype import Array
from trivium.types.errors import Code, ServeError


class SemanticSegmenter:
    """Reads a plane of scores for each class; of several outputs the second has them, as in DJL."""

    def __init__(self, arguments: SegmentationArguments, labels: Sequence[str]) -> None:
        self.pipeline = PicturePipeline(arguments.picture)
        self._labels = labels

    def fault(self, shapes: Mapping[str, Sequence[int]]) -> str:
        """Return what is wrong with the labels for outputs of these shapes (no batch axis, -1 for any); else empty."""
        shape = list(shapes.values())[:2][-1] if shapes else ()
        if len(shape) != 3:
            return (
                f"the model's output has the shape {list(shape)} without its batch axis; "
                "expected [classes, rows, columns]"
            )
        if 0 <= shape[0] < len(self._labels):
            found = f"the file synset.txt has {len(self._labels)} class names"
            return f"{found} and the model's output has {shape[0]} planes"
        return ""

    def answer(self, outputs: Mapping[str, Array], picture: PreparedPicture) -> dict[str, object]:
        """Return the answer of one item; its outputs have no batch axis."""
        if fault := self.fault({name: array.shape for name, array in outputs.items()}):
            raise ServeError(Code.MODEL_FAILED, f"{fault[:1].upper()}{fault[1:]}.")
        scores = finite(list(outputs.values())[:2][-1][: len(self._labels)])
        return {"classes": list(self._labels), "mask": scores.argmax(0).tolist()}
