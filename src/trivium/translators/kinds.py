"""The table of translators: a row each. Adding one is its kind and a row here."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from trivium.translators import arguments as read
from trivium.translators.custom import KIND as CUSTOM
from trivium.translators.pictures.classification import FeatureExtractor, ImageClassifier
from trivium.translators.pictures.detection import (
    SingleShotDetector,
    YoloDetector,
    YoloV5Detector,
    YoloV8Detector,
)
from trivium.translators.pictures.kind import PictureKind, PictureTask
from trivium.translators.pictures.segmentation import SemanticSegmenter
from trivium.translators.reading import ArgumentFinding
from trivium.translators.scoring.kind import KIND as SCORING
from trivium.translators.texts.classification import TextClassification
from trivium.translators.texts.embedding import CrossEncoder, TextEmbedding
from trivium.translators.texts.fill_mask import FillMask
from trivium.translators.texts.kind import TextKind, TextTask
from trivium.translators.texts.question_answering import QuestionAnswering
from trivium.translators.texts.token_classification import TokenClassification
from trivium.translators.texts.zero_shot import ZeroShotClassification
from trivium.types.fetching import FetchFile
from trivium.types.interfaces import TranslatorKind

_detection = partial(read.read_detection, is_yolo=True)


def _cross_encoder(arguments: Mapping[str, object]) -> tuple[Any, list[ArgumentFinding]]:
    return read.read_embedding({**arguments, "reranking": "true"})


PICTURES = (
    PictureTask("image-classification", read.read_classification, ImageClassifier),
    PictureTask("image-features", read.read_features, lambda found, labels: FeatureExtractor(found)),
    PictureTask("ssd", read.read_detection, SingleShotDetector),
    PictureTask("yolo", partial(read.read_detection, has_fractions=True), YoloDetector),
    PictureTask("yolo-v5", _detection, YoloV5Detector),
    PictureTask("yolo-v8", _detection, YoloV8Detector),
    PictureTask("semantic-segmentation", read.read_segmentation, SemanticSegmenter),
)

TEXTS = (
    TextTask(
        "question-answering",
        read.read_question_answering,
        QuestionAnswering,
        bare="answer",
        example='{"question": "Which colour?", "context": "The sky is blue."}',
    ),
    TextTask(
        "text-classification",
        partial(read.read_text, translator="text classification"),
        TextClassification,
    ),
    TextTask("token-classification", read.read_token_classification, TokenClassification),
    TextTask("text-embedding", read.read_embedding, TextEmbedding),
    TextTask(
        "cross-encoder", _cross_encoder, CrossEncoder, example='{"text": "one", "text_pair": "another"}'
    ),
    TextTask("fill-mask", read.read_fill_mask, FillMask, example='{"inputs": "a [MASK] text"}'),
    TextTask(
        "zero-shot-classification",
        partial(read.read_text, translator="zero-shot classification"),
        ZeroShotClassification,
        example='{"text": "a text", "candidate_labels": ["one", "another"]}',
    ),
)


def kinds(fetch: FetchFile) -> dict[str, TranslatorKind]:
    """Return the kinds by their names; what a URL names they get by `fetch`."""
    made: tuple[TranslatorKind, ...] = (
        CUSTOM,
        SCORING,
        *(PictureKind(task, fetch) for task in PICTURES),
        *map(TextKind, TEXTS),
    )
    return {kind.name: kind for kind in made}
