"""A request to a model of texts as named tensors, for clients of the v2 protocol. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from trivium.codecs.request_fields import field_error
from trivium.types.datatype import DataType
from trivium.types.model_tasks import ModelTask
from trivium.types.payload import Tensors
from trivium.types.spec import TensorSpec

TEXT, QUESTION, CONTEXT, PARAMETERS = "text_input", "question", "context", "parameters"
ANSWER, EMBEDDING = "answer", "embedding"

_SAID = TensorSpec(PARAMETERS, DataType.BYTES, (1,), optional=True)


def inputs_of(task: ModelTask) -> tuple[TensorSpec, ...]:
    """Return the inputs of a task: any number of texts, and its parameters as one text of JSON."""
    names = (QUESTION, CONTEXT) if task is ModelTask.QUESTIONS else (TEXT,)
    return (*(TensorSpec(name, DataType.BYTES, (-1,)) for name in names), _SAID)


def outputs_of(task: ModelTask, width: int) -> tuple[TensorSpec, ...]:
    """Return the output of a task: a vector for each text, or what else the task has for it as JSON."""
    if task is ModelTask.EMBEDDING:
        return (TensorSpec(EMBEDDING, DataType.FP32, (-1, width or -1)),)
    return (TensorSpec(ANSWER, DataType.BYTES, (-1,)),)


def document_of(payload: Tensors, task: ModelTask) -> Mapping[str, Any]:
    """Return tensors as the JSON object that says the same. INVALID for text that is none."""
    found = {tensor.name: _texts(tensor.name, tensor.array.ravel().tolist()) for tensor in payload.items}
    said = found.get(PARAMETERS) or ["{}"]
    try:
        parameters = msgspec.json.decode(said[0])
    except (msgspec.DecodeError, RecursionError) as error:
        raise field_error(PARAMETERS, f"The input '{PARAMETERS}' is no JSON: {error}.") from error
    if task is not ModelTask.QUESTIONS:
        return {"inputs": found.get(TEXT, []), "parameters": parameters}
    questions, contexts = found.get(QUESTION, []), found.get(CONTEXT, [])
    if len(questions) != len(contexts):
        words = f"There are {len(questions)} questions and {len(contexts)} contexts; expected are as many of both."
        raise field_error(CONTEXT, words)
    pairs = zip(questions, contexts, strict=True)
    return {"inputs": [{QUESTION: one, CONTEXT: other} for one, other in pairs], "parameters": parameters}


def _texts(name: str, elements: list[bytes]) -> list[str]:
    try:
        return [element.decode() for element in elements]
    except UnicodeDecodeError as error:
        raise field_error(name, f"An element of the input '{name}' is not UTF-8.") from error
