"""Translators of pictures: the pipeline's order, the picture of a request, class names, classes and features."""

import base64
import io
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trivium.translators import arguments
from trivium.translators.arguments import LabelSource
from trivium.translators.pictures.classification import FeatureExtractor, ImageClassifier
from trivium.translators.pictures.labels import read_labels
from trivium.translators.pictures.pipeline import PicturePipeline, PreparedPicture
from trivium.translators.pictures.requests import picture_source
from trivium.types.errors import Code, ServeError

NOTHING = PreparedPicture(np.zeros(0), 1, 1)


def png(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def noise(width: int, height: int, seed: int = 24) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


def pipeline(**given: object) -> PicturePipeline:
    found, findings = arguments.read_features(given)
    assert not findings
    return PicturePipeline(found)


def reference(picture: Image.Image, mean: float = 0, std: float = 1) -> np.ndarray:
    array = np.asarray(picture, np.float32) / 255
    return ((array.transpose(2, 0, 1) if array.ndim == 3 else array[None]) - mean) / std


def test_the_steps_have_djls_order() -> None:
    made = pipeline(pad="true", resize="40", centerCrop="true", width=30, height=20, normalize="0,0,0,2,2,2")
    square = Image.new("RGB", (50, 50))
    square.paste(noise(50, 30))
    expected = square.resize((40, 40), Image.Resampling.BILINEAR).crop((5, 10, 35, 30))
    np.testing.assert_allclose(made.arrays(png(noise(50, 30))), reference(expected, std=2), atol=1e-6)


def test_grey_levels_are_those_of_the_colours() -> None:
    made = pipeline(flag="GRAYSCALE", resize="true", width=8, height=8)
    expected = noise(20, 20).convert("L").resize((8, 8), Image.Resampling.BILINEAR)
    np.testing.assert_allclose(made.arrays(png(noise(20, 20))), reference(expected), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"range": "0,1", "toTensor": "false"}, lambda array: array / 255),
        ({"range": "-1,1", "toTensor": "false"}, lambda array: array / 128 - 1),
        ({"toTensor": "false"}, lambda array: array),
    ],
)
def test_without_a_tensor_channels_come_last(given: Mapping[str, object], expected) -> None:
    array = np.asarray(noise(4, 3))
    np.testing.assert_allclose(
        pipeline(**given).arrays(png(noise(4, 3))), expected(array.astype("f4")), atol=1e-6
    )


def test_a_picture_keeps_its_size_for_the_answer() -> None:
    assert pipeline(resize="true").prepare(png(noise(40, 30)))[1:] == (40, 30)


@pytest.mark.parametrize("data", [b"nothing of the kind", png(noise(9, 9))[:60]])
def test_what_is_no_picture_is_the_clients_fault(data: bytes) -> None:
    with pytest.raises(ServeError, match="Input is not an Image data type") as caught:
        pipeline().arrays(data)
    assert caught.value.code is Code.INVALID


def test_the_picture_of_a_request() -> None:
    data = png(noise(4, 4))
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    assert picture_source(data, "image/png") == picture_source(data, "") == data
    assert picture_source(json.dumps({"image_url": url}).encode(), "application/json; charset=utf-8") == data
    assert (
        picture_source(b'{"image_url": "https://there/a.png"}', "application/json") == "https://there/a.png"
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "Input data is empty."),
        (b"[1]", "Invalid JsonObject input."),
        (b"{", "Input is not a valid json."),
        (b"[" * 100_000, "Input is not a valid json."),
        (b'{"image_url": ["x"]}', 'Missing "image_url" in json.'),
        (b'{"url": "x"}', 'Missing "image_url" in json.'),
        (b'{"image_url": "file:///etc/passwd"}', "Files of the server are not opened"),
        (b'{"image_url": "kitten.jpg"}', "Files of the server are not opened"),
        (b'{"image_url": "data:image/png;base64,%%"}', "Input is not an Image data type"),
    ],
)
def test_a_request_without_a_picture_is_refused(body: bytes, words: str) -> None:
    with pytest.raises(ServeError, match=words.replace(".", r"\.")) as caught:
        picture_source(body, "application/json")
    assert caught.value.code is Code.INVALID


def test_class_names_at_a_url_come_from_there(tmp_path: Path) -> None:
    (tmp_path / "synset.txt").write_text("others\n")
    with pytest.raises(ServeError, match="http://there/names has not been fetched"):
        read_labels(LabelSource(url="http://there/names"), tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ServeError, match="folder is no file"):
        read_labels(LabelSource(file="folder"), tmp_path)


def test_class_names_are_lines(tmp_path: Path) -> None:
    (tmp_path / "synset.txt").write_bytes("\ufeffcat\r\n\r\nn02 déjà vu\n".encode())
    assert read_labels(LabelSource(), tmp_path) == ("cat", "", "n02 déjà vu")
    assert read_labels(LabelSource(("a", "b")), tmp_path) == ("a", "b")
    assert read_labels(LabelSource(url="http://x"), tmp_path, b"a\nb") == ("a", "b")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "synset.txt is not there. Put it into the model's folder"),
        (b"", "synset.txt is empty"),
        (b"cat\ndog\xff\n", "synset.txt:2 is no UTF-8 text"),
        (b"\n" * 1_000_002, "over the limit of 1000000"),
    ],
)
def test_broken_class_names_are_named(data: bytes | None, words: str, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / "synset.txt").write_bytes(data)
    with pytest.raises(ServeError, match=words) as caught:
        read_labels(LabelSource(), tmp_path)
    assert caught.value.code is Code.LOAD_FAILED


@pytest.mark.parametrize("name", ["/etc/passwd", "../synset.txt", "a/../../b", "", "a\0b"])
def test_no_file_outside_the_folder_is_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="names no file inside the model's folder"):
        read_labels(LabelSource(file=name), tmp_path)


def classifier(labels: tuple[str, ...], **given: object) -> ImageClassifier:
    return ImageClassifier(arguments.read_classification(given)[0], labels)


def test_the_best_classes_are_the_answer() -> None:
    scores = {"scores": np.array([[1, 3, 2]], np.float32)}
    plain, shares = classifier(("a", "b", "c"), topK=2), classifier(("a", "b", "c"), applySoftmax="true")
    assert plain.answer(scores, NOTHING) == [
        {"className": "b", "probability": 3},
        {"className": "c", "probability": 2},
    ]
    expected = np.exp([3, 2, 1]) / np.exp([3, 2, 1]).sum()
    found = shares.answer(scores, NOTHING)
    assert [row["className"] for row in found] == ["b", "c", "a"]
    np.testing.assert_allclose([row["probability"] for row in found], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ({"a": np.zeros(2)}, "synset.txt has 3 class names and the model's output 2 numbers"),
        ({"a": np.zeros(3), "b": np.zeros(3)}, "2 outputs"),
        ({"a": np.array([0, np.nan, 1])}, "NaN or infinity"),
    ],
)
def test_an_output_that_names_no_classes_is_the_models_fault(outputs, words: str) -> None:
    with pytest.raises(ServeError, match=words) as caught:
        classifier(("a", "b", "c")).answer(outputs, NOTHING)
    assert caught.value.code is Code.MODEL_FAILED


def test_labels_are_held_against_the_models_output_before_it_serves() -> None:
    made = classifier(("a", "b", "c"))
    assert not made.fault({"scores": (3,)})
    assert not made.fault({"scores": (-1,)})
    assert "write one name for each" in made.fault({"scores": (1000,)})
    assert "2 outputs" in made.fault({"scores": (3,), "more": (3,)})


def test_features_are_a_flat_list() -> None:
    made = FeatureExtractor(arguments.read_features({})[0])
    assert made.answer({"out": np.array([[[1.5]], [[2]]], np.float16)}, NOTHING) == [1.5, 2]
