"""Model folders for each translator, as DJL lays them out: a model, the files next to it, and serving.properties.

Those of trained models come from `shipped`, all others are graphs whose answer is known by construction.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from examples.digits.shipped import BARE_MODEL
from tests.models import graphs
from tests.models.places import DIGIT_NAMES, DIGITS, QUESTIONS, SENTENCES

_PICTURES = "ai.djl.modality.cv.translator"
_TEXTS = "ai.djl.huggingface.translator"

WORDS = (
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *("anna", "lives", "in", "new", "york", "and", "works", "for", "acme", "corp", "this", "example", "is"),
    *("play", "##ing", "##er", "music", "sport", ".", "a", "the", "good", "bad"),
)
LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG")
THINGS = ("cat", "dog", "bird")
COLOURS = ("dark", "red", "green", "blue")

BOXES = np.array([[8, 8, 24, 40], [10, 8, 26, 40], [40, 40, 60, 60], [8, 8, 24, 40]], np.float32)
"""Corners in a picture of 64 x 64: the second nearly covers the first, and the last is the first again."""

SCORES = np.array([[0.9, 0.05, 0.05], [0.8, 0.1, 0.1], [0.1, 0.6, 0.1], [0.1, 0.2, 0.7]], np.float32)
"""For each box the scores of `THINGS`, in a picture that is white."""


def digits_torch(folder: Path) -> Path:
    """The digits as TorchScript."""
    place = _with(folder, "PyTorch", f"{_PICTURES}.ImageClassification", _DIGIT_PICTURES)
    shutil.copy(DIGITS / "digits.pt", place / f"{folder.name}.pt")
    return _labels(folder, DIGIT_NAMES)


def digits_onnx(folder: Path) -> Path:
    """The digits as ONNX."""
    place = _with(folder, "OnnxRuntime", f"{_PICTURES}.ImageClassification", _DIGIT_PICTURES)
    shutil.copy(BARE_MODEL, place / f"{folder.name}.onnx")
    return _labels(folder, DIGIT_NAMES)


def questions(folder: Path, engine: str = "PyTorch") -> Path:
    """The trained model that answers questions."""
    return _trained(folder, engine, QUESTIONS, "QuestionAnswering", {"includeTokenTypes": "True"})


def sentences(folder: Path, engine: str = "PyTorch") -> Path:
    """The trained model that tells packages apart."""
    return _trained(folder, engine, SENTENCES, "TextClassification", {})


def single_shot(folder: Path) -> Path:
    """SSD: classes, scores and corners."""
    best = SCORES.argmax(1).astype(np.float32)
    outputs = {
        "classes": (best, 0 * best),
        "scores": (0 * best, SCORES.max(1)),
        "boxes": (BOXES, 0 * BOXES),
    }
    return _boxes(folder, graphs.picture_tables(outputs), "SingleShotDetection")


def yolo(folder: Path) -> Path:
    """YOLO: the same outputs."""
    single_shot(folder)
    return _with(folder, "OnnxRuntime", f"{_PICTURES}.Yolo", _BOXES)


def yolo_v5(folder: Path) -> Path:
    """YOLOv5: a row a box."""
    constant = np.concatenate([_middles(), np.zeros((4, 1)), SCORES], 1)
    slope = np.zeros_like(constant)
    slope[:, 4] = 1
    return _boxes(folder, graphs.picture_tables({"output": (constant, slope)}), "YoloV5")


def yolo_v8(folder: Path) -> Path:
    """YOLOv8: a column a box."""
    constant = np.concatenate([_middles(), 0 * SCORES], 1).T
    slope = np.concatenate([0 * BOXES, SCORES], 1).T
    return _boxes(folder, graphs.picture_tables({"output": (constant, slope)}), "YoloV8")


def segmentation(folder: Path, has_first: bool = False) -> Path:
    """The colour that is strongest in every pixel."""
    weights = np.concatenate([np.zeros((1, 3)), np.eye(3)])
    model = graphs.planes(weights, np.array([0.4, 0, 0, 0]), has_first)
    _with(folder, "OnnxRuntime", f"{_PICTURES}.SemanticSegmentation", {"shortEdge": "8", "maxEdge": "16"})
    onnx.save(model, folder / f"{folder.name}.onnx")
    return _labels(folder, COLOURS)


def token_table() -> np.ndarray:
    """The scores of `LABELS` for each of `WORDS`."""
    table = np.random.default_rng(24).normal(0, 0.2, (len(WORDS), len(LABELS))).astype(np.float32)
    table[:, 0] += 3
    for word, label in (
        ("anna", 1),
        ("new", 3),
        ("york", 4),
        ("acme", 5),
        ("corp", 6),
        ("play", 5),
        ("##er", 2),
    ):
        table[WORDS.index(word), label] += 6
    return table


def tokens(folder: Path, **arguments: str) -> Path:
    """Token classification: a label for each word."""
    config = {"id2label": {str(place): label for place, label in enumerate(LABELS)}}
    return _words(folder, graphs.lookup(token_table(), False), "TokenClassification", arguments, config)


def vectors() -> np.ndarray:
    """A vector for each of `WORDS`."""
    return np.random.default_rng(25).normal(0, 1, (len(WORDS), 6)).astype(np.float32)


def embedding(folder: Path, **arguments: str) -> Path:
    """Text embedding: the vectors of the words."""
    model = graphs.lookup(vectors(), False, output="last_hidden_state")
    return _words(folder, model, "TextEmbedding", arguments)


def cross_encoder(folder: Path, **arguments: str) -> Path:
    """A cross-encoder: the sum of the words' first numbers."""
    given = {"reranking": "true", "includeTokenTypes": "true"} | arguments
    return _words(folder, graphs.lookup(vectors()[:, :1], True, True), "TextEmbedding", given)


def fill_mask(folder: Path, **arguments: str) -> Path:
    """Fill mask: the same words for every gap."""
    table = np.zeros((len(WORDS), len(WORDS)), np.float32)
    for score, word in enumerate(("new", "york", "good", "the", "music", "sport")):
        table[WORDS.index("[MASK]"), WORDS.index(word)] = 9 - score
    return _words(folder, graphs.lookup(table, False), "FillMask", arguments)


def entailment(folder: Path, **arguments: str) -> Path:
    """Zero-shot classification: what the words entail."""
    config = {
        "model_type": "bert",
        "label2id": {"CONTRADICTION": 0, "neutral": 1, "Entailment": 2},
    }
    model = graphs.lookup(vectors()[:, :3], True, True)
    return _words(folder, model, "ZeroShotClassification", arguments, config)


EACH: Mapping[str, Callable[[Path], Path]] = {
    maker.__name__: maker
    for maker in (
        *(digits_torch, digits_onnx, questions, sentences, single_shot, yolo, yolo_v5, yolo_v8),
        *(segmentation, tokens, embedding, cross_encoder, fill_mask, entailment),
    )
}
"""Name -> the function that writes the folder and returns it."""

_DIGIT_PICTURES = {"width": "8", "height": "8", "flag": "GRAYSCALE"}
_BOXES = {"width": "64", "height": "64", "resize": "true"}


def _middles() -> np.ndarray:
    return np.concatenate([(BOXES[:, :2] + BOXES[:, 2:]) / 2, BOXES[:, 2:] - BOXES[:, :2]], 1)


def _boxes(folder: Path, model: onnx.ModelProto, kind: str) -> Path:
    _with(folder, "OnnxRuntime", f"{_PICTURES}.{kind}", _BOXES)
    onnx.save(model, folder / f"{folder.name}.onnx")
    return _labels(folder, THINGS)


def _words(
    folder: Path,
    model: onnx.ModelProto,
    kind: str,
    arguments: Mapping[str, str],
    config: Mapping[str, object] | None = None,
) -> Path:
    _with(folder, "OnnxRuntime", f"{_TEXTS}.{kind}", arguments)
    onnx.save(model, folder / f"{folder.name}.onnx")
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    if config:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def _trained(folder: Path, engine: str, shipped: Path, kind: str, arguments: Mapping[str, str]) -> Path:
    _with(folder, engine, f"{_TEXTS}.{kind}", arguments)
    ending = ".pt" if engine == "PyTorch" else ".onnx"
    shutil.copy(shipped / f"{shipped.name}{ending}", folder / f"{folder.name}{ending}")
    for name in ("tokenizer.json", "config.json"):
        if (shipped / name).is_file():
            shutil.copy(shipped / name, folder / name)
    return folder


def _with(folder: Path, engine: str, translator: str, arguments: Mapping[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"engine={engine}", f"translatorFactory={translator}TranslatorFactory"]
    lines += [f"{key}={value}" for key, value in arguments.items()]
    (folder / "serving.properties").write_text("\n".join(lines) + "\n")
    return folder


def _labels(folder: Path, labels: tuple[str, ...]) -> Path:
    (folder / "synset.txt").write_text("\n".join(labels) + "\n")
    return folder
