"""Steps from a picture to a tensor: sizes and places as in DJL, and a hostile picture does no more than fail."""

import io
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trivium.translators import kit
from trivium_worker import pictures as steps

SOURCE = Path(steps.__file__).parents[1]


def saved(picture: Image.Image, form: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def outcome(data: bytes, mode: str) -> str:
    """The mode of the picture that was read, or the text of the refusal."""
    try:
        return steps.open_picture(data, mode).mode
    except ValueError as error:
        return str(error)


def numbered(width: int, height: int) -> Image.Image:
    """A picture whose pixel (x, y) has the colour (x, y, 0)."""
    y, x = np.mgrid[:height, :width].astype(np.uint8)
    return Image.fromarray(np.stack([x, y, np.zeros_like(x)], 2))


@pytest.mark.parametrize(
    ("step", "size"),
    [
        (lambda image: steps.resize(image, 3, 4), (3, 4)),
        (lambda image: steps.resize(image, 3, 4, "AREA"), (3, 4)),
        (lambda image: steps.center_crop(image), (11, 11)),
        (lambda image: steps.center_crop(image, 5, 7), (5, 7)),
        (lambda image: steps.center_crop(image, 19, 30), (19, 11)),
        (lambda image: steps.center_fit(image, 15, 15), (15, 15)),
        (lambda image: steps.pad(image), (20, 20)),
        (lambda image: steps.resize_short(image, 5), (9, 5)),
        (lambda image: steps.resize_short(image, 5, 7), (7, 3)),
        (lambda image: steps.resize_short(image.rotate(90, expand=True), 5, 7), (3, 7)),
    ],
)
def test_a_step_makes_a_picture_of_the_size_that_is_asked_for(
    step: Callable[[Image.Image], Image.Image], size: tuple[int, int]
) -> None:
    assert step(numbered(20, 11)).size == size
    assert step(numbered(20, 11).convert("L")).mode == "L"


def test_the_middle_is_cut_out() -> None:
    assert steps.center_crop(numbered(20, 11), 4, 5).getpixel((0, 0)) == (8, 3, 0)
    assert steps.center_crop(numbered(20, 11)).getpixel((0, 0)) == (4, 0, 0)


def test_what_fits_stands_in_the_middle_and_black_around_it() -> None:
    fitted = steps.center_fit(numbered(20, 11), 10, 15)
    assert fitted.getpixel((0, 2)) == (5, 0, 0)
    assert fitted.getpixel((0, 1)) == fitted.getpixel((0, 13)) == (0, 0, 0)


def test_grey_is_added_on_the_right_or_below() -> None:
    padded = steps.pad(numbered(20, 11), 114.9)
    assert padded.getpixel((19, 10)) == (19, 10, 0)
    assert padded.getpixel((0, 11)) == (114, 114, 114)


def test_bytes_become_numbers_channels_first() -> None:
    tensor = steps.to_tensor(numbered(20, 11))
    assert tensor.shape == (3, 11, 20)
    assert tensor.dtype == np.float32
    assert tensor[0, 0, 19] == np.float32(19) / np.float32(255)
    assert steps.to_tensor(numbered(20, 11).convert("L")).shape == (1, 11, 20)


def test_an_array_is_a_picture_too() -> None:
    array = np.asarray(numbered(20, 11))
    assert (np.asarray(steps.center_crop(array)) == np.asarray(steps.center_crop(numbered(20, 11)))).all()
    assert steps.resize(array[:, :, :1], 2, 2).mode == "L"
    with pytest.raises(ValueError, match=r"\[height, width, channels\]"):
        steps.to_tensor(np.zeros(3))


def test_each_channel_has_its_mean_and_deviation() -> None:
    array = np.ones((3, 2, 2), np.float32)
    assert np.allclose(steps.normalize(array, (0, 1, 2), (1, 2, 4))[:, 0, 0], (1, 0, -0.25))
    assert np.allclose(steps.normalize(array)[0], (1 - 0.485) / 0.229)
    with pytest.raises(ValueError, match="channels"):
        steps.normalize(np.ones((2, 2, 3)), (0, 0, 0), (1, 1, 1))


def test_scores_become_probabilities() -> None:
    assert np.allclose(steps.softmax(np.array([1000.0, 1000.0])), 0.5)
    assert np.allclose(steps.softmax(np.zeros((2, 4), np.float16), axis=0), 0.5)
    assert np.allclose(steps.sigmoid(np.array([-1e9, 0, 1e9])), (0, 0.5, 1))


def test_the_best_classes_come_first_and_equal_ones_in_their_order() -> None:
    found = steps.classifications(["a", "b", "c"], np.array([[0.25, 0.5, 0.25]], np.float32), 2)
    assert found == [{"className": "b", "probability": 0.5}, {"className": "a", "probability": 0.25}]
    assert len(steps.classifications(list("abcdefg"), np.zeros(7))) == 5
    with pytest.raises(ValueError, match="2 classes and 3 probabilities"):
        steps.classifications(["a", "b"], np.zeros(3))


MODES = ("1", "L", "P", "RGB", "RGBA", "CMYK", "YCbCr", "LA", "PA", "RGBX", "I", "F", "LAB", "I;16")


@pytest.mark.parametrize("form", steps.FORMATS)
@pytest.mark.parametrize("mode", MODES)
def test_a_picture_of_any_mode_is_read_or_refused_by_name(mode: str, form: str) -> None:
    try:
        data = saved(Image.new(mode, (7, 5)), form)
    except (OSError, ValueError, KeyError):
        pytest.skip(f"{form} has no {mode}")
    for wanted in ("RGB", "L"):
        found = outcome(data, wanted)
        assert found == wanted or (mode in ("F", "LAB") and f"the form {mode}" in found)


@pytest.mark.parametrize("form", ["PNG", "TIFF", "PPM"])
def test_sixteen_bits_are_scaled_and_not_cut_off(form: str) -> None:
    levels = np.array([[0, 255, 256, 0x8000, 0xFFFF]], np.uint16)
    read = np.asarray(steps.open_picture(saved(Image.fromarray(levels), form), "L"))
    assert read.tolist() == [[0, 0, 1, 128, 255]]


def test_a_transparent_pixel_keeps_its_colour() -> None:
    assert steps.open_picture(saved(Image.new("RGBA", (2, 2), (9, 8, 7, 0)))).getpixel((0, 0)) == (9, 8, 7)
    palette = Image.new("P", (2, 2), 0)
    palette.putpalette([9, 8, 7])
    assert steps.open_picture(saved(palette, transparency=b"\0")).getpixel((0, 0)) == (9, 8, 7)


def test_the_orientation_of_a_camera_is_not_looked_at() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    assert steps.open_picture(saved(numbered(20, 11), "JPEG", exif=exif)).size == (20, 11)


def test_a_picture_that_is_too_large_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = saved(Image.new("1", (8001, 8000)))
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", pytest.fail)
    with pytest.raises(ValueError, match="8001 x 8000 pixels, over the limit"):
        steps.open_picture(data)


def test_a_row_of_millions_of_pixels_is_refused() -> None:
    with pytest.raises(ValueError, match="65536 x 1 pixels"):
        steps.open_picture(saved(Image.new("L", (65_536, 1))))


def tiled(side: int) -> bytes:
    """A TIFF of 16 x 16 in one tile of that side."""
    data = zlib.compress(bytes(side * side))
    tags = {256: 16, 257: 16, 258: 8, 259: 8, 262: 1, 277: 1, 322: side, 323: side, 324: 134, 325: len(data)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries + bytes(4) + data


def test_a_tile_that_is_far_larger_than_its_picture_is_not_decoded() -> None:
    assert steps.open_picture(tiled(1024), "L").size == (16, 16)
    with pytest.raises(ValueError, match="tiles of 4096 x 4096 pixels"):
        steps.open_picture(tiled(4096))


@pytest.mark.parametrize("side", [10_000, 20_000, 2**31 - 1])
def test_a_head_that_promises_more_pixels_than_there_are(side: int) -> None:
    data = bytearray(saved(Image.new("L", (8, 8)), "BMP"))
    data[18:26] = side.to_bytes(4, "little") * 2
    with pytest.raises(ValueError, match="pixels"):
        steps.open_picture(bytes(data))


@pytest.mark.parametrize(
    "data", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"%!PS-Adobe-3.0 EPSF-3.0\n", b"{}" * 99]
)
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="picture"):
        steps.open_picture(data)


@pytest.mark.parametrize("form", steps.FORMATS)
def test_a_damaged_picture_is_read_or_refused(form: str) -> None:
    chance = np.random.default_rng(24)
    data = saved(numbered(40, 30), form)
    for _ in range(150):
        broken = bytearray(data[: chance.integers(1, len(data) + 1)])
        for place in chance.integers(0, len(broken), chance.integers(0, 4)):
            broken[place] = chance.integers(0, 256)
        found = outcome(bytes(broken), "RGB")
        assert found == "RGB" or "picture" in found


def test_no_step_makes_a_picture_that_fills_the_memory() -> None:
    narrow = Image.new("L", (1, 60_000))
    for step in (
        steps.pad,
        lambda image: steps.resize_short(image, 256),
        lambda image: steps.resize(image, 0, 5),
    ):
        with pytest.raises(ValueError, match="a step would make a picture of"):
            step(narrow)
    with pytest.raises(ValueError, match="NEAREST, BILINEAR, AREA, BICUBIC"):
        steps.resize(narrow, 2, 2, "CUBIC")


def test_the_kit_is_these_steps() -> None:
    for name in kit.__all__:
        assert getattr(kit, name) is getattr(steps, name)


@pytest.mark.parametrize(
    "module", ["trivium_worker.pictures", "trivium.translators.kit", "trivium.translators.custom"]
)
def test_a_module_is_imported_without_pillow_and_tokenizers(module: str) -> None:
    code = f"import sys, {module}; assert not {{'PIL', 'tokenizers'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=SOURCE)


def test_the_steps_know_nothing_of_the_package() -> None:
    code = "import sys, trivium_worker.pictures; assert 'trivium' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=SOURCE)
