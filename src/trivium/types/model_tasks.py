"""Names the tasks that a model of texts may be for, and finds the one that the name of its class tells.

Source: the names of transformers' pipelines, and LMI's rule from `architectures` to `option.task` (sheet `djl`, 11.2).
"""

from collections.abc import Mapping
from enum import Enum


class ModelTask(Enum):
    """Names a task, as `option.task` has it."""

    TEXT2TEXT = "text2text-generation"
    SUMMARY = "summarization"
    TRANSLATION = "translation"
    GENERATION = "text-generation"
    FEATURES = "feature-extraction"
    EMBEDDING = "text-embedding"
    FILL_MASK = "fill-mask"
    TEXT_CLASSES = "text-classification"
    TOKEN_CLASSES = "token-classification"
    QUESTIONS = "question-answering"
    ZERO_SHOT = "zero-shot-classification"


WRITTEN = frozenset({ModelTask.TEXT2TEXT, ModelTask.SUMMARY, ModelTask.TRANSLATION, ModelTask.GENERATION})
"""Tasks whose answer is written token by token."""

OF_A_CAUSAL_MODEL = frozenset({ModelTask.GENERATION, ModelTask.FEATURES, ModelTask.EMBEDDING})
"""Tasks that a causal language model does: to go on, and what any class does."""

NAMES = tuple(task.value for task in ModelTask)

_OTHER_NAMES: Mapping[str, ModelTask] = {
    "ner": ModelTask.TOKEN_CLASSES,
    "sentiment-analysis": ModelTask.TEXT_CLASSES,
    "embed": ModelTask.EMBEDDING,
    "embedding": ModelTask.EMBEDDING,
    "classify": ModelTask.TEXT_CLASSES,
}
_DIRECTION = "translation-"

_CAUSAL = ("ForCausalLM", "GPT2LMHeadModel")
_ENCODE_AND_DECODE = ("ForConditionalGeneration", "MTModel", "EncoderDecoderModel", "T5WithLMHeadModel")
_CLASSES: Mapping[ModelTask, tuple[str, ...]] = {
    ModelTask.GENERATION: _CAUSAL,
    ModelTask.TEXT2TEXT: _ENCODE_AND_DECODE,
    ModelTask.SUMMARY: _ENCODE_AND_DECODE,
    ModelTask.TRANSLATION: _ENCODE_AND_DECODE,
    ModelTask.FILL_MASK: ("ForMaskedLM",),
    ModelTask.TEXT_CLASSES: ("ForSequenceClassification",),
    ModelTask.TOKEN_CLASSES: ("ForTokenClassification",),
    ModelTask.QUESTIONS: ("ForQuestionAnswering",),
    ModelTask.ZERO_SHOT: ("ForSequenceClassification",),
}
"""The ends of names of classes that do a task; what computes features is any class. The first task of a class is the
one that its name tells.
"""

_OTHERS = ("Tapas", "VisionEncoderDecoder", "SpeechEncoderDecoder")
"""Beginnings of names of classes that take no plain text."""


def task_named(name: str) -> ModelTask | None:
    """Return the task of a name, however it is spelt (`ner`, `text_embedding`, `translation_en_to_de`), or None."""
    spelt = name.strip().lower().replace("_", "-")
    if spelt.startswith(_DIRECTION):
        return ModelTask.TRANSLATION
    return _OTHER_NAMES.get(spelt) or next((task for task in ModelTask if task.value == spelt), None)


def task_of(architecture: str) -> ModelTask | None:
    """Return the task that a class's name tells; that of a class without a head is FEATURES. None where it tells none
    that is served.
    """
    if architecture.startswith(_OTHERS):
        return None
    told = (task for task, ends in _CLASSES.items() if architecture.endswith(ends))
    return next(told, ModelTask.FEATURES if architecture.endswith("Model") else None)


def classes_of(task: ModelTask) -> tuple[str, ...]:
    """Return the ends of names of the classes that do a task; none where any class does."""
    return _CLASSES.get(task, ())


def does(architecture: str, task: ModelTask) -> bool:
    """Tell whether a class does a task, by its name."""
    return architecture.endswith(classes_of(task) or ("",)) and not architecture.startswith(_OTHERS)
