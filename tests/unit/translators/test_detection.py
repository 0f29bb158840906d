"""Boxes and masks of graphs whose answer is known by construction, and outputs that say nothing of the kind."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.harness.translation import picture_answers, picture_translator
from tests.models import folders

from trivium.translators import arguments
from trivium.translators.pictures.detection import overlap
from trivium.translators.pictures.pipeline import PreparedPicture
from trivium.types.errors import Code, ServeError

SIZE = PreparedPicture(np.zeros(0), 64, 64)


def grey(level: int, width: int = 64, height: int = 64) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), (level,) * 3).save(buffer, "PNG")
    return buffer.getvalue()


def shown(answer: list[dict]) -> list[tuple[str, float, tuple[float, ...]]]:
    rows = [(row["className"], row["probability"], row["boundingBox"]["rect"]) for row in answer]
    return [(name, round(share, 4), tuple(round(edge, 4) for edge in rect)) for name, share, rect in rows]


ALL = [
    ("cat", 0.9, (8, 8, 24, 40)),
    ("cat", 0.8, (10, 8, 26, 40)),
    ("bird", 0.7, (8, 8, 24, 40)),
    ("dog", 0.6, (40, 40, 60, 60)),
]


def scaled(rows, by: float, to: float = 64):
    return [
        (name, round(share * by, 4), tuple(round(edge / to, 4) for edge in rect))
        for name, share, rect in rows
    ]


def test_single_shot_detection(tmp_path: Path) -> None:
    folder = folders.single_shot(tmp_path / "ssd")
    white, dim = picture_answers(folder, [grey(255), grey(80)])
    assert shown(white) == ALL
    assert shown(dim) == scaled(ALL[:3], 80 / 255, 1)
    assert shown(picture_answers(folder, [grey(255)], applyRatio="true")[0]) == scaled(ALL, 1)
    assert shown(picture_answers(folder, [grey(255)], threshold="0.75")[0]) == ALL[:2]


def test_a_score_at_the_threshold_counts_for_yolo_alone(tmp_path: Path) -> None:
    outputs = {"a": np.zeros(1, "f4"), "b": np.full(1, 0.2, "f4"), "c": np.ones((1, 4), "f4")}
    for maker, count in ((folders.single_shot, 0), (folders.yolo, 1)):
        assert len(picture_translator(maker(tmp_path / maker.__name__)).answer(outputs, SIZE)) == count


def test_yolo_gives_fractions(tmp_path: Path) -> None:
    assert shown(picture_answers(folders.yolo(tmp_path / "yolo"), [grey(255)])[0]) == scaled(ALL, 1)


@pytest.mark.parametrize("maker", [folders.yolo_v5, folders.yolo_v8])
def test_of_boxes_of_one_class_that_overlap_the_best_is_kept(maker, tmp_path: Path) -> None:
    folder = maker(tmp_path / "yolo")
    apart = [ALL[0], *ALL[2:]]
    white, dim = picture_answers(folder, [grey(255), grey(128)])
    assert shown(white) == apart
    assert shown(dim) == scaled(apart, 128 / 255, 1)
    assert shown(picture_answers(folder, [grey(255)], nmsThreshold="0.8")[0]) == ALL
    assert shown(picture_answers(folder, [grey(255)], optApplyRatio="true")[0]) == scaled(apart, 1)
    assert picture_answers(folder, [grey(10)]) == [[]]


def test_boxes_are_fractions_of_the_picture_without_what_center_fit_has_added(tmp_path: Path) -> None:
    folder = folders.yolo_v5(tmp_path / "yolo")
    white = Image.new("RGB", (64, 64), "white")
    white.paste((0, 0, 0), (0, 0, 64, 16))
    white.paste((0, 0, 0), (0, 48, 64, 64))
    answer = picture_answers(folder, [grey(255, 64, 32)], resize="false", centerFit="true")[0]
    name, share, rect = shown(answer)[0]
    assert (name, share) == ("cat", 0.45)
    assert rect == (8 / 64, (8 - 16) / 32, 24 / 64, (40 - 16) / 32)


def test_only_the_last_boxes_of_yolo_v8_are_read(tmp_path: Path) -> None:
    folder = folders.yolo_v8(tmp_path / "yolo")
    assert shown(picture_answers(folder, [grey(255)], maxBox="2")[0]) == ALL[2:]


def test_overlap_is_the_common_part_of_what_both_cover() -> None:
    boxes = np.array([[0.0, 0, 2, 2], [1, 1, 2, 2], [5, 5, 1, 1], [0, 0, 0, 0]])
    assert overlap(boxes[0], boxes).tolist() == [1, 1 / 7, 0, 0]
    assert overlap(boxes[3], boxes[3:]).tolist() == [1]


@pytest.mark.parametrize("has_first", [False, True])
def test_the_strongest_colour_of_every_pixel(has_first: bool, tmp_path: Path) -> None:
    picture = Image.new("RGB", (16, 8))
    for left, colour in ((4, (255, 0, 0)), (8, (0, 200, 0)), (12, (100, 0, 150))):
        picture.paste(colour, (left, 0, left + 4, 8))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    folder = folders.segmentation(tmp_path / "colours", has_first)
    (answer,) = picture_answers(folder, [buffer.getvalue()])
    assert answer == {
        "classes": list(folders.COLOURS),
        "mask": [[0] * 4 + [1] * 4 + [2] * 4 + [3] * 4] * 8,
    }


def test_a_short_edge_is_made_first(tmp_path: Path) -> None:
    folder = folders.segmentation(tmp_path / "colours")
    mask = picture_answers(folder, [grey(0, 80, 40)])[0]["mask"]
    assert (len(mask), len(mask[0])) == (8, 16)
    mask = picture_answers(folder, [grey(0, 160, 40)])[0]["mask"]
    assert (len(mask), len(mask[0])) == (4, 16)
    assert arguments.read_segmentation({})[0].picture.first_resize == arguments.ShortEdge(600, 1000)


@pytest.mark.parametrize(
    ("maker", "outputs", "words"),
    [
        (folders.single_shot, {"a": np.zeros(3)}, "answered with 1 outputs"),
        (
            folders.single_shot,
            {"a": np.zeros(3), "b": np.ones(3), "c": np.zeros((2, 4))},
            "3 classes, 3 scores",
        ),
        (folders.single_shot, {"a": np.full(1, 3), "b": np.ones(1), "c": np.zeros((1, 4))}, "found class 3"),
        (folders.yolo, {"a": np.zeros(1), "b": np.full(1, np.nan), "c": np.zeros((1, 4))}, "NaN"),
        (folders.yolo_v5, {"a": np.zeros((2, 7))}, "has 2 classes"),
        (folders.yolo_v5, {"a": np.zeros((2, 3, 8))}, "with its detection layer"),
        (folders.yolo_v8, {"a": np.zeros((8, 5))}, "has 4 classes"),
        (folders.yolo_v8, {}, "with its detection layer"),
        (folders.segmentation, {"a": np.zeros((2, 8))}, r"expected \[classes, rows, columns\]"),
        (
            folders.segmentation,
            {"a": np.zeros((3, 8, 8))},
            "4 class names and the model's output has 3 planes",
        ),
        (folders.segmentation, {}, "expected"),
    ],
)
def test_outputs_of_another_kind_are_the_models_fault(maker, outputs, words: str, tmp_path: Path) -> None:
    with pytest.raises(ServeError, match=words) as caught:
        picture_translator(maker(tmp_path / "model")).answer(outputs, SIZE)
    assert caught.value.code is Code.MODEL_FAILED


@pytest.mark.parametrize(
    ("maker", "good", "bad", "words"),
    [
        (folders.single_shot, {"a": (9,), "b": (9,), "c": (9, 4)}, {"a": (9,)}, "1 outputs"),
        (folders.yolo_v5, {"a": (-1, 8)}, {"a": (25200, 85)}, "3 class names and the model's output has 80"),
        (folders.yolo_v5, {"a": (-1, -1)}, {"a": (3, 80, 80, 85)}, "with its detection layer"),
        (folders.yolo_v8, {"a": (7, 8400)}, {"a": (84, 8400)}, "3 class names"),
        (folders.segmentation, {"a": (4, -1, -1)}, {"a": (3, 8, 8)}, "4 class names"),
    ],
)
def test_labels_are_held_against_the_outputs_before_the_model_serves(
    maker, good, bad, words: str, tmp_path: Path
) -> None:
    translator = picture_translator(maker(tmp_path / "model"))
    assert not translator.fault(good)
    assert words in translator.fault(bad)


def test_no_box_at_all(tmp_path: Path) -> None:
    for maker, outputs in (
        (folders.single_shot, {"a": np.zeros(0), "b": np.zeros(0), "c": np.zeros((0, 4))}),
        (folders.yolo_v5, {"a": np.zeros((0, 8))}),
        (folders.yolo_v8, {"a": np.zeros((7, 0))}),
    ):
        assert picture_translator(maker(tmp_path / maker.__name__)).answer(outputs, SIZE) == []
