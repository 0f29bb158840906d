"""The task that the name of a model's class tells, and the names that a task is called by."""

import pytest

from trivium.types.model_tasks import ModelTask, does, task_named, task_of


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("T5ForConditionalGeneration", ModelTask.TEXT2TEXT),
        ("T5WithLMHeadModel", ModelTask.TEXT2TEXT),
        ("MarianMTModel", ModelTask.TEXT2TEXT),
        ("EncoderDecoderModel", ModelTask.TEXT2TEXT),
        ("LlamaForCausalLM", ModelTask.GENERATION),
        ("GPT2LMHeadModel", ModelTask.GENERATION),
        ("BertForMaskedLM", ModelTask.FILL_MASK),
        ("BertForSequenceClassification", ModelTask.TEXT_CLASSES),
        ("BertForTokenClassification", ModelTask.TOKEN_CLASSES),
        ("BertForQuestionAnswering", ModelTask.QUESTIONS),
        ("BertModel", ModelTask.FEATURES),
        ("TapasForQuestionAnswering", None),
        ("VisionEncoderDecoderModel", None),
        ("BertForMultipleChoice", None),
        ("", None),
    ],
)
def test_a_class_tells_its_task(architecture: str, task: ModelTask | None) -> None:
    assert task_of(architecture) is task
    assert task is None or does(architecture, task)


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("text_embedding", ModelTask.EMBEDDING),
        (" NER ", ModelTask.TOKEN_CLASSES),
        ("sentiment-analysis", ModelTask.TEXT_CLASSES),
        ("translation_en_to_de", ModelTask.TRANSLATION),
        ("paint", None),
        ("", None),
    ],
)
def test_a_task_has_several_names(name: str, task: ModelTask | None) -> None:
    assert task_named(name) is task


def test_a_class_may_do_more_than_its_name_tells() -> None:
    assert does("BertForSequenceClassification", ModelTask.ZERO_SHOT)
    assert does("LlamaForCausalLM", ModelTask.EMBEDDING)
    assert not does("T5ForConditionalGeneration", ModelTask.FILL_MASK)
