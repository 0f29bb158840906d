"""DJL's translators by the names of their factories, by application and by task, and ours that stand for them.

Source: spec sheet `djl`, section 10. Pure.
"""

import ast
import re
from collections.abc import Mapping, Sequence

from trivium.codecs.near_names import near
from trivium.servers.djl.words.handlers import parsed

_VISION, _TEXT = "ai.djl.modality.cv.translator.", "ai.djl.huggingface.translator."

FACTORIES: Mapping[str, str] = {
    f"{_VISION}ImageClassificationTranslatorFactory": "image-classification",
    f"{_VISION}ImageFeatureExtractorFactory": "image-features",
    f"{_VISION}SingleShotDetectionTranslatorFactory": "ssd",
    f"{_VISION}YoloTranslatorFactory": "yolo",
    f"{_VISION}YoloV5TranslatorFactory": "yolo-v5",
    f"{_VISION}YoloV8TranslatorFactory": "yolo-v8",
    f"{_VISION}SemanticSegmentationTranslatorFactory": "semantic-segmentation",
    f"{_TEXT}QuestionAnsweringTranslatorFactory": "question-answering",
    f"{_TEXT}TextClassificationTranslatorFactory": "text-classification",
    f"{_TEXT}TokenClassificationTranslatorFactory": "token-classification",
    f"{_TEXT}TextEmbeddingTranslatorFactory": "text-embedding",
    f"{_TEXT}CrossEncoderTranslatorFactory": "cross-encoder",
    f"{_TEXT}FillMaskTranslatorFactory": "fill-mask",
    f"{_TEXT}ZeroShotClassificationTranslatorFactory": "zero-shot-classification",
}
"""The class of a factory -> the translator of ours."""

PLAIN = frozenset(
    {
        "ai.djl.translate.NoopServingTranslatorFactory",
        "ai.djl.translate.RawTranslatorFactory",
        "ai.djl.translate.NpBinaryTranslatorFactory",
        "ai.djl.translate.ServingTranslatorFactory",
    }
)
"""Factories that leave tensors as they are. The last looks for a translator in the folder, as happens in any case."""

DEFERRED = "ai.djl.translate.DeferredTranslatorFactory"
"""The factory that chooses another one as the model is loaded."""

NOT_SERVED: Mapping[str, str] = {
    f"{_VISION}InstanceSegmentationTranslatorFactory": "masks of single objects",
    f"{_VISION}SimplePoseTranslatorFactory": "poses",
    f"{_VISION}StyleTransferTranslatorFactory": "pictures in another style",
    f"{_VISION}BigGANTranslatorFactory": "pictures that are made up",
    f"{_VISION}Sam2TranslatorFactory": "masks of what is pointed at",
}
"""Factories that are known and not served -> what they make."""

APPLICATIONS: Mapping[str, str] = {
    "cv/image_classification": "image-classification",
    "nlp/question_answer": "question-answering",
    "nlp/question_answering": "question-answering",
    "nlp/text_classification": "text-classification",
    "nlp/token_classification": "token-classification",
    "nlp/text_embedding": "text-embedding",
    "nlp/sentence_similarity": "text-embedding",
    "nlp/fill_mask": "fill-mask",
}
"""An application, in lower case and with underscores -> the translator of ours. A task is one of them without its
first part.
"""

_RERANKING = "reranking"
_CLASS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
METHODS = frozenset({"process_input", "process_output"})
"""Methods that make a class in Python a translator."""


def translator_of(factory: str, arguments: Mapping[str, str]) -> str:
    """Return the translator of ours that stands for a factory; empty where none does."""
    name = FACTORIES.get(factory, "")
    if name == "text-embedding" and arguments.get(_RERANKING, "").strip().lower() == "true":
        return "cross-encoder"
    return name


def translator_for(task: str) -> str:
    """Return the translator of ours for an application or a task; empty where there is none."""
    word = task.strip().lower().replace("-", "_")
    known = {key.partition("/")[2]: name for key, name in APPLICATIONS.items()}
    return APPLICATIONS.get(word) or known.get(word, "")


def nearest_factory(factory: str) -> str:
    """Return the known factory that a name is near to, empty where none is."""
    simple = {name.rpartition(".")[2]: name for name in FACTORIES}
    return simple.get(near(factory.rpartition(".")[2], simple, 0.8), "")


def is_python_class(name: str) -> bool:
    """Tell whether this names a class in Python, as in `module:Class`."""
    return bool(_CLASS.fullmatch(name))


def classes_of(text: str) -> Sequence[str]:
    """Return the translators that a module in Python defines at its top, by its text: what it runs, nobody does."""
    module = parsed(text)
    if module is None:
        return ()
    return [
        node.name
        for node in module.body
        if isinstance(node, ast.ClassDef)
        and {one.name for one in node.body if isinstance(one, ast.FunctionDef)} >= METHODS
    ]
