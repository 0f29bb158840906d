"""Steps from a picture to a tensor, and from a tensor to an answer; handlers and translators share them.

A picture is a Pillow image, or an array [height, width, channels] of bytes; a step gives a Pillow image back. It needs
numpy and Pillow, both imported by the functions that use them: pip install numpy pillow. ValueError says what is wrong
with a picture or an argument.

Source: the transforms of DJL (spec sheet `djl`, section 10). A picture is resized by Pillow, whose filters look at
every pixel that they cover. As in DJL a transparent pixel keeps its colour, and the orientation that a camera has noted
is not looked at.
"""

import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image as Picture
else:
    Picture = Any

MOST_PIXELS = 64_000_000
"""Pixels of the largest picture that is decoded, or made by a step."""

MOST_EDGE = 65_535
"""Width or height of the largest picture that is decoded; some decoders keep whole rows."""

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
"""Formats that are read; Pillow runs other programs for some that are not among them."""

INTERPOLATIONS = ("NEAREST", "BILINEAR", "AREA", "BICUBIC")

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_TILE_WIDTH, _TILE_HEIGHT, _MOST_TILE_PIXELS = 322, 323, 2**22

_PLAIN = frozenset(("1", "L", "P", "RGB", "RGBA", "CMYK", "YCbCr", "LA", "PA", "RGBX", "HSV"))
_PREMULTIPLIED = {"RGBa": "RGBA", "La": "LA"}


def open_picture(
    data: Any, mode: str = "RGB", most_pixels: int = MOST_PIXELS, converted: Any = None
) -> Picture:
    """Decode a picture of 8 bits a channel: `RGB`, or `L` for grey levels. Of an animation, the first frame. One of
    another kind is converted; `converted`, if it is there, is called with its own mode.

    Its size is judged by its head, before anything is decoded.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a decoder has to remark about a stranger's file
        picture = _opened(data)
        width, height = picture.size
        if width * height > most_pixels or max(width, height) > MOST_EDGE:
            raise ValueError(
                f"the picture has {width} x {height} pixels, over the limit of {most_pixels} in all "
                f"and {MOST_EDGE} in a row; make it smaller"
            )
        _check_tiles(picture)
        try:
            picture.load()
            if converted is not None and picture.mode != mode:
                converted(picture.mode)
            return _with_mode(picture, mode)
        except Exception as error:
            raise ValueError(f"the {picture.format} picture cannot be decoded: {words_of(error)}") from error


def resize(image: Any, width: int, height: int, interpolation: str = "BILINEAR") -> Picture:
    """Stretch to width x height. `interpolation` is NEAREST, BILINEAR, AREA or BICUBIC."""
    from PIL import Image

    filters = {
        "NEAREST": Image.Resampling.NEAREST,
        "BILINEAR": Image.Resampling.BILINEAR,
        "AREA": Image.Resampling.BOX,
        "BICUBIC": Image.Resampling.BICUBIC,
    }
    if interpolation not in filters:
        raise ValueError(f"interpolation is {interpolation!r}; expected one of {', '.join(INTERPOLATIONS)}")
    return _picture(image).resize(_size(width, height), filters[interpolation])


def resize_short(image: Any, short: int, long: int | None = None, interpolation: str = "BILINEAR") -> Picture:
    """Resize so that the shorter edge is `short`, or the longer one `long` where it would be longer than that."""
    picture = _picture(image)
    least, most = min(picture.size), max(picture.size)
    shorter, longer = short, most * short // least
    if long and longer > long:
        shorter, longer = least * long // most, long
    is_wide = picture.width > picture.height
    width, height = (longer, shorter) if is_wide else (shorter, longer)
    return resize(picture, width, height, interpolation)


def center_crop(image: Any, width: int | None = None, height: int | None = None) -> Picture:
    """Cut the middle out: width x height, without them the largest square. An edge that is shorter stays as it is."""
    picture = _picture(image)
    square = min(picture.size)
    width = min(picture.width, square if width is None else width)
    height = min(picture.height, square if height is None else height)
    left, top = (picture.width - width) // 2, (picture.height - height) // 2
    return picture.crop((left, top, left + width, top + height))


def center_fit(image: Any, width: int, height: int) -> Picture:
    """Put the picture into the middle of a black one of width x height; what is larger is cut off."""
    picture = center_crop(image, width, height)
    left, top = (width - picture.width) // 2, (height - picture.height) // 2
    return _on(picture, width, height, left, top, 0)


def pad(image: Any, value: float = 0) -> Picture:
    """Make the picture square: grey of this level is added on the right or below."""
    picture = _picture(image)
    side = max(picture.size)
    if picture.width == picture.height:
        return picture
    return _on(picture, side, side, 0, 0, max(0, min(255, int(value))))


def to_tensor(image: Any) -> Any:
    """Turn bytes [height, width, channels] into FP32 [channels, height, width] from 0 to 1."""
    import numpy as np

    return np.ascontiguousarray(to_array(image).transpose(2, 0, 1), np.float32) / np.float32(255)


def to_array(image: Any) -> Any:
    """Return the bytes of a picture as an array [height, width, channels]."""
    import numpy as np

    array = np.asarray(image)
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3:
        raise ValueError(
            f"a picture has the shape [height, width, channels]; this one has {list(array.shape)}"
        )
    return array


def normalize(
    array: Any,
    mean: float | Sequence[float] = IMAGENET_MEAN,
    std: float | Sequence[float] = IMAGENET_STD,
) -> Any:
    """Subtract the mean from each channel of [channels, height, width] and divide it by the deviation."""
    import numpy as np

    array = np.asarray(array, np.float32)
    shifts, scales = (np.asarray(numbers, np.float32).reshape(-1, 1, 1) for numbers in (mean, std))
    if array.ndim != 3 or any(len(numbers) not in (1, len(array)) for numbers in (shifts, scales)):
        raise ValueError(
            "normalize needs [channels, height, width] and a mean and deviation for each "
            f"channel; found {list(array.shape)}, {len(shifts)} and {len(scales)}"
        )
    return (array - shifts) / scales


def softmax(array: Any, axis: int = -1) -> Any:
    """Turn scores into probabilities that add up to 1 along an axis."""
    import numpy as np

    scores = _floating(array)
    powers = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def sigmoid(array: Any) -> Any:
    """Turn each score into a probability of its own."""
    import numpy as np

    return np.tanh(_floating(array) / 2) / 2 + 0.5


def classifications(classes: Sequence[str], probabilities: Any, top_k: int = 5) -> list[dict[str, Any]]:
    """Return the most probable classes, the best first: [{"className", "probability"}]."""
    import numpy as np

    numbers = np.asarray(probabilities).reshape(-1)
    if len(numbers) != len(classes):
        raise ValueError(
            f"there are {len(classes)} classes and {len(numbers)} probabilities; a list of "
            "classes has one line for each number of the output"
        )
    best = np.argsort(-numbers.astype(np.float64), kind="stable")[:top_k]
    return [{"className": classes[index], "probability": float(numbers[index])} for index in best]


def _floating(array: Any) -> Any:
    import numpy as np

    array = np.asarray(array)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)


def _picture(image: Any) -> Picture:
    from PIL import Image

    if isinstance(image, Image.Image):
        return image
    array = to_array(image)
    return Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array)


def _on(picture: Picture, width: int, height: int, left: int, top: int, level: int) -> Picture:
    from PIL import Image

    ground = Image.new(picture.mode, _size(width, height), (level,) * len(picture.getbands()))
    ground.paste(picture, (left, top))
    return ground


def _size(width: int, height: int) -> Any:
    if width < 1 or height < 1 or width * height > MOST_PIXELS:
        raise ValueError(
            f"a step would make a picture of {width} x {height} pixels; possible are 1 x 1 to "
            f"{MOST_PIXELS} pixels in all"
        )
    return width, height


def _with_mode(picture: Picture, mode: str) -> Picture:
    from PIL import Image

    if picture.mode == mode:
        return picture
    picture.info.pop("transparency", None)  # a colour that a palette calls transparent stays that colour
    if picture.mode in _PREMULTIPLIED:
        picture = picture.convert(_PREMULTIPLIED[picture.mode])
    elif picture.mode.startswith("I"):
        import numpy as np

        levels = np.clip(np.asarray(picture), 0, 0xFFFF)
        levels >>= 8
        picture = Image.fromarray(levels.astype(np.uint8))
    elif picture.mode not in _PLAIN:
        raise ValueError(f"its pixels have the form {picture.mode}; save it in RGB with 8 bits a channel")
    return picture.convert(mode)


def _check_tiles(picture: Any) -> None:
    """Refuse a TIFF whose tiles are larger than the picture: each is decoded whole, whatever the picture's size."""
    tags = getattr(picture, "tag_v2", None) or {}
    width, height = tags.get(_TILE_WIDTH, 0), tags.get(_TILE_HEIGHT, 0)
    most = max(picture.width * picture.height, _MOST_TILE_PIXELS)
    if isinstance(width, int) and isinstance(height, int) and width * height > most:
        raise ValueError(f"the TIFF picture has tiles of {width} x {height} pixels, over the limit of {most}")


def _opened(data: Any) -> Picture:
    from PIL import Image, UnidentifiedImageError

    if not len(data):
        raise ValueError("there is no picture: 0 bytes")
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except Image.DecompressionBombError as error:
        raise ValueError(f"the picture has too many pixels: {error}") from error
    except Exception as error:  # whatever a decoder raises about bytes that it does not understand
        why = "" if isinstance(error, UnidentifiedImageError) else f": {words_of(error)}"
        raise ValueError(
            f"{len(data)} bytes that begin with {bytes(data[:8])!r} are no picture that can be "
            f"read ({', '.join(FORMATS)}){why}"
        ) from error


def words_of(error: Exception) -> str:
    return str(error)[:200] or type(error).__name__
