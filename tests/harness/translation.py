"""Runs the pure parts of a translator around a bare session: what a server does, without one."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from trivium.translators import arguments
from trivium.translators.arguments import LabelSource
from trivium.translators.pictures.classification import ImageClassifier
from trivium.translators.pictures.detection import (
    SingleShotDetector,
    YoloDetector,
    YoloV5Detector,
    YoloV8Detector,
)
from trivium.translators.pictures.labels import read_labels
from trivium.translators.pictures.segmentation import SemanticSegmenter
from trivium.translators.texts.classification import TextClassification
from trivium.translators.texts.embedding import CrossEncoder, TextEmbedding
from trivium.translators.texts.fill_mask import FillMask
from trivium.translators.texts.question_answering import QuestionAnswering
from trivium.translators.texts.token_classification import TokenClassification
from trivium.translators.texts.zero_shot import ZeroShotClassification

Arrays = Mapping[str, np.ndarray]


def session(folder: Path) -> Any:
    """Return a function from the tensors of a batch to the outputs of the folder's model."""
    if (path := folder / f"{folder.name}.onnx").is_file():
        made = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        names = [output.name for output in made.get_outputs()]
        inputs = [tensor.name for tensor in made.get_inputs()]
        return lambda arrays: dict(
            zip(names, made.run(None, dict(zip(inputs, arrays.values(), strict=True))), strict=True)
        )
    import torch

    module = torch.jit.load(str(folder / f"{folder.name}.pt")).eval()

    def run(arrays: Arrays) -> Arrays:
        with torch.no_grad():
            found = module(*map(torch.from_numpy, arrays.values()))
        found = found if isinstance(found, tuple) else (found,)
        return {str(place): tensor.numpy() for place, tensor in enumerate(found)}

    return run


def given(folder: Path) -> dict[str, str]:
    """Return the arguments of the folder's serving.properties."""
    lines = (folder / "serving.properties").read_text().splitlines()
    entries = dict(line.split("=", 1) for line in lines)
    return {key: value for key, value in entries.items() if key not in ("engine", "translatorFactory")}


def picture_translator(folder: Path, **more: str) -> Any:
    """Return the translator of pictures that the folder names."""
    properties = (folder / "serving.properties").read_text()
    known = given(folder) | more
    labels = read_labels(LabelSource(), folder)
    for name, make in _PICTURES.items():
        if f".{name}TranslatorFactory" in properties:
            return make(known, labels)
    raise AssertionError(properties)


_PICTURES = {
    "ImageClassification": lambda known, labels: ImageClassifier(
        arguments.read_classification(known)[0], labels
    ),
    "SingleShotDetection": lambda known, labels: SingleShotDetector(
        arguments.read_detection(known)[0], labels
    ),
    "Yolo": lambda known, labels: YoloDetector(arguments.read_detection(known)[0], labels),
    "YoloV5": lambda known, labels: YoloV5Detector(arguments.read_detection(known, True)[0], labels),
    "YoloV8": lambda known, labels: YoloV8Detector(arguments.read_detection(known, True)[0], labels),
    "SemanticSegmentation": lambda known, labels: SemanticSegmenter(
        arguments.read_segmentation(known)[0], labels
    ),
}


def text_translator(folder: Path, **more: str) -> Any:
    """Return the translator of texts that the folder names."""
    properties = (folder / "serving.properties").read_text()
    known = given(folder) | more
    for name, make in _TEXTS.items():
        if f".{name}TranslatorFactory" in properties:
            return make(folder, known)
    raise AssertionError(properties)


def _embedding(folder: Path, known: Mapping[str, str]) -> Any:
    found = arguments.read_embedding(known)[0]
    if isinstance(found, arguments.CrossEncoderArguments):
        return CrossEncoder(folder, found)
    return TextEmbedding(folder, found)


_TEXTS = {
    "QuestionAnswering": lambda folder, known: QuestionAnswering(
        folder, arguments.read_question_answering(known)[0]
    ),
    "TextClassification": lambda folder, known: TextClassification(
        folder, arguments.read_text(known, "text classification")[0]
    ),
    "TokenClassification": lambda folder, known: TokenClassification(
        folder, arguments.read_token_classification(known)[0]
    ),
    "TextEmbedding": _embedding,
    "FillMask": lambda folder, known: FillMask(folder, arguments.read_fill_mask(known)[0]),
    "ZeroShotClassification": lambda folder, known: ZeroShotClassification(
        folder, arguments.read_text(known, "zero-shot classification")[0]
    ),
}


def picture_answers(folder: Path, pictures: Sequence[bytes], **more: str) -> list[Any]:
    """Return the answer to each picture, all of them run in one batch."""
    translator, run = picture_translator(folder, **more), session(folder)
    prepared = [translator.pipeline.prepare(picture) for picture in pictures]
    outputs = run({"image": np.stack([each.array for each in prepared])})
    return [
        translator.answer({name: array[row] for name, array in outputs.items()}, each)
        for row, each in enumerate(prepared)
    ]


def text_answers(folder: Path, bodies: Sequence[object], **more: str) -> list[Any]:
    """Return the answer to each body, sent as JSON, all of them padded together and run in one batch."""
    translator, run = text_translator(folder, **more), session(folder)
    requests = [translator.parse(json.dumps(body).encode(), "application/json", {}) for body in bodies]
    arrays, encodings = translator.encode([row for request in requests for row in request.rows])
    outputs = run(arrays)
    answers, place = [], 0
    for request in requests:
        rows = slice(place, place + len(request.rows))
        place = rows.stop
        part = {name: array[rows] for name, array in outputs.items()}
        answers.append(translator.decode(part, encodings[rows], request))
    return answers
