"""The pipeline of a translator of pictures: bytes of a file in, the tensor of one item out."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from trivium.machine.extras import lacking
from trivium.translators.arguments import PictureArguments, ShortEdge
from trivium.translators.faults import refusal_in_words
from trivium.types.datatype import Array
from trivium.types.errors import Code, ServeError
from trivium_worker import pictures as steps

if TYPE_CHECKING:
    from PIL.Image import Image as Picture


class PreparedPicture(NamedTuple):
    """The tensor of one picture, without a batch axis, and the size that the picture had."""

    array: Array
    width: int
    height: int


class PicturePipeline:
    """The steps that the arguments ask for, in DJL's order. UNSUPPORTED with the install command without Pillow.

    A picture of more than `most_pixels` is refused before it is decoded.
    """

    def __init__(self, arguments: PictureArguments, most_pixels: int = steps.MOST_PIXELS) -> None:
        require_pillow()
        self._arguments = arguments
        self._most_pixels = most_pixels

    def arrays(self, data: bytes) -> Array:
        """Return the tensor of a picture. INVALID for bytes that are none, and for one that a step cannot take."""
        return self.prepare(data).array

    def prepare(self, data: bytes) -> PreparedPicture:
        """Return the tensor of a picture and the size that it had."""
        asked = self._arguments
        try:
            picture = steps.open_picture(data, "RGB" if asked.flag == "COLOR" else "L", self._most_pixels)
            width, height = picture.size
            if asked.first_resize:
                picture = _short(picture, asked.first_resize)
            if asked.pad is not None:
                picture = steps.pad(picture, asked.pad)
            if asked.resize:
                picture = steps.resize(picture, *asked.resize)
            if asked.resize_short:
                picture = _short(picture, asked.resize_short)
            if asked.center_crop:
                picture = steps.center_crop(picture, asked.width, asked.height)
            if asked.center_fit:
                picture = steps.center_fit(picture, asked.width, asked.height)
            return PreparedPicture(self._numbers(picture), width, height)
        except ValueError as error:
            raise refusal_in_words("Input is not an Image data type", f"({error}).") from error

    def _numbers(self, picture: "Picture") -> Array:
        asked = self._arguments
        array: npt.NDArray[np.float32] = (
            steps.to_tensor(picture) if asked.to_tensor else steps.to_array(picture)
        )
        if asked.mean:
            array = steps.normalize(array, asked.mean, asked.std)
        if asked.value_range == "0,1":
            array = array / np.float32(255)
        elif asked.value_range == "-1,1":
            array = array / np.float32(128) - np.float32(1)
        return array


def require_pillow() -> None:
    """Import Pillow. UNSUPPORTED with the install command where it is missing."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise lacking("Translators of pictures", error, package="pillow") from error


def only_output(outputs: Mapping[str, Array]) -> Array:
    """Return the output of a model that has one. MODEL_FAILED for another number of them."""
    if len(outputs) != 1:
        raise ServeError(
            Code.MODEL_FAILED,
            f"The model answered with {len(outputs)} outputs; this translator reads a model that has one.",
        )
    return next(iter(outputs.values()))


def finite(array: Array) -> Array:
    """Return the array. MODEL_FAILED where it holds a number that JSON has no form for."""
    if not np.isfinite(array).all():
        raise ServeError(
            Code.MODEL_FAILED, "The model answered with NaN or infinity, which JSON cannot hold."
        )
    return array


def _short(picture: "Picture", edge: ShortEdge) -> "Picture":
    return steps.resize_short(picture, edge.short, edge.long or None, edge.interpolation)
