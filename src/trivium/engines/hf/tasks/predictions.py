"""Makes the predictions that clients of KServe's v1 protocol know of what a model of texts computes.

Source: KServe's server of Hugging Face models (its page on tasks, and what it answers): the number of the likeliest
class of a text, those of each of its tokens, and the words for its masks. What KServe has no form for is answered as
LMI's clients have it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trivium.engines.hf.tasks.heads import Outputs, PreparedInput
from trivium.engines.hf.tasks.task_model import TaskModel
from trivium.types.model_tasks import ModelTask

Predict = Callable[[TaskModel, PreparedInput, Sequence[Outputs]], Any]


def _class(loaded: TaskModel, prepared: PreparedInput, outputs: Sequence[Outputs]) -> int:
    """Return the number of the likeliest class of a text."""
    return int(outputs[0]["logits"].argmax())


def _classes_of_tokens(
    loaded: TaskModel, prepared: PreparedInput, outputs: Sequence[Outputs]
) -> list[list[int]]:
    """Return the number of each token's likeliest class, special tokens' too, in a list of one list."""
    size = len(prepared.rows[0]["input_ids"])
    return [outputs[0]["logits"][:size].argmax(-1).tolist()]


def _words(loaded: TaskModel, prepared: PreparedInput, outputs: Sequence[Outputs]) -> str:
    """Return the likeliest words for the masks of a text, as one text."""
    places, _ = prepared.beside
    return str(loaded.tokenizer.decode(outputs[0]["logits"][places].argmax(-1)))


PREDICTIONS: Mapping[ModelTask, Predict] = {
    ModelTask.TEXT_CLASSES: _class,
    ModelTask.TOKEN_CLASSES: _classes_of_tokens,
    ModelTask.FILL_MASK: _words,
}
"""The tasks whose predictions are no answers of LMI's."""


def listed(answers: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the document with a prediction for each row; of a text that was written, it alone."""
    return {"predictions": [_written(answer) for answer in answers]}


def _written(answer: Any) -> Any:
    """Return the only text of an answer `{"generated_text": ...}` or `[{...}]`; any other answer as it is."""
    only = answer[0] if isinstance(answer, list) and len(answer) == 1 else answer
    if isinstance(only, dict) and len(only) == 1:
        (text,) = only.values()
        return text
    return answer
