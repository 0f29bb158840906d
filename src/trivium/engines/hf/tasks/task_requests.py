"""Reads a request to a model of texts: LMI's `{"inputs": ..., "parameters": {...}}`, by a table for each task. Pure.

Every parameter is a row; what is no row is refused with the name that is near to it. Two requests share a call where
their parameters are equal.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from trivium.codecs.request_fields import RequestFields, decode_request, field_error
from trivium.codecs.v1_bodies import INSTANCES, judge_forms
from trivium.types.model_tasks import ModelTask

MOST_INPUTS = 256
"""Texts of one request."""

MOST_CHARACTERS = 2**20
"""Characters of one text; a tokenizer reads it in one call."""

MOST_BEAMS = 16
MOST_NEW_TOKENS = 2**16
MOST_LABELS = 100
_ALL = 2**31 - 1

Read = Callable[[RequestFields, str], Any]


class Question(msgspec.Struct, frozen=True, gc=False):
    """A question, and the text that has its answer."""

    question: str
    context: str


Text = str | Question


class TaskRequest(msgspec.Struct, frozen=True, gc=False):
    """Holds one request: its `inputs`, whether there `is_one` that was not in a list, its parameters, the `key` that
    requests have in common which share a call, and whether its inputs were rows of KServe's v1 protocol (`of_rows`).
    """

    inputs: tuple[Text, ...]
    is_one: bool
    parameters: Mapping[str, Any]
    key: bytes
    of_rows: bool = False


def _flag(fields: RequestFields, name: str) -> Any:
    return fields.flag(name)


def _text(fields: RequestFields, name: str) -> Any:
    return fields.text(name)


def _integer(lowest: int, highest: int) -> Read:
    return lambda fields, name: fields.integer(name, lowest, highest)


def _number(lowest: float, highest: float) -> Read:
    return lambda fields, name: fields.number(name, lowest, highest)


def _texts(most: int) -> Read:
    return lambda fields, name: list(fields.texts(name, most)) if name in fields else None


def _one_of(*words: str) -> Read:
    def read(fields: RequestFields, name: str) -> Any:
        value = fields.text(name)
        if value is not None and value.lower() not in words:
            raise fields.unfit(name, value, f"one of {', '.join(words)}")
        return value and value.lower()

    return read


def _labels(fields: RequestFields, name: str) -> Any:
    """Return labels: a list, or one text with commas between them."""
    value = fields.take(name)
    labels = value.split(",") if isinstance(value, str) else value
    is_list = isinstance(labels, list) and all(isinstance(one, str) and one.strip() for one in labels)
    if not is_list or not 0 < len(labels) <= MOST_LABELS:
        raise fields.unfit(name, value, f"a list of 1 to {MOST_LABELS} texts")
    return [one.strip() for one in labels]


def _template(fields: RequestFields, name: str) -> Any:
    value = fields.text(name)
    if value is not None and value.count("{}") != 1:
        raise fields.unfit(name, value, "a text with one {} for the label")
    return value


_GENERATION: Mapping[str, Read] = {
    "max_new_tokens": _integer(1, MOST_NEW_TOKENS),
    "max_length": _integer(1, MOST_NEW_TOKENS),
    "min_new_tokens": _integer(0, MOST_NEW_TOKENS),
    "min_length": _integer(0, MOST_NEW_TOKENS),
    "num_beams": _integer(1, MOST_BEAMS),
    "num_return_sequences": _integer(1, MOST_BEAMS),
    "length_penalty": _number(-100, 100),
    "early_stopping": _flag,
    "no_repeat_ngram_size": _integer(0, 1024),
    "repetition_penalty": _number(1e-3, 100),
    "do_sample": _flag,
    "temperature": _number(1e-3, 100),
    "top_k": _integer(0, _ALL),
    "top_p": _number(1e-6, 1),
    "typical_p": _number(1e-6, 1),
    "seed": _integer(0, 2**63 - 1),
    "truncation": _flag,
}
_FROM_TEXT = {**_GENERATION, "encoder_no_repeat_ngram_size": _integer(0, 1024)}

PARAMETERS: Mapping[ModelTask, Mapping[str, Read]] = {
    ModelTask.TEXT2TEXT: _FROM_TEXT,
    ModelTask.SUMMARY: _FROM_TEXT,
    ModelTask.TRANSLATION: {**_FROM_TEXT, "src_lang": _text, "tgt_lang": _text},
    ModelTask.GENERATION: {**_GENERATION, "return_full_text": _flag},
    ModelTask.FEATURES: {"truncation": _flag},
    ModelTask.EMBEDDING: {"normalize": _flag, "truncation": _flag},
    ModelTask.FILL_MASK: {"top_k": _integer(1, 1000), "targets": _texts(100), "truncation": _flag},
    ModelTask.TEXT_CLASSES: {
        "top_k": _integer(1, _ALL),
        "return_all_scores": _flag,
        "function_to_apply": _one_of("softmax", "sigmoid", "none"),
        "truncation": _flag,
    },
    ModelTask.TOKEN_CLASSES: {
        "aggregation_strategy": _one_of("none", "simple", "first", "average", "max"),
        "ignore_labels": _texts(1000),
        "truncation": _flag,
    },
    ModelTask.QUESTIONS: {
        "top_k": _integer(1, 100),
        "max_answer_len": _integer(1, 4096),
        "max_question_len": _integer(1, 4096),
        "max_seq_len": _integer(8, 2**16),
        "doc_stride": _integer(1, 2**16),
        "handle_impossible_answer": _flag,
    },
    ModelTask.ZERO_SHOT: {
        "candidate_labels": _labels,
        "hypothesis_template": _template,
        "multi_label": _flag,
        "truncation": _flag,
    },
}
"""What a request of a task may say; a value of null is as if it had not been said."""


def read_body(data: bytes | memoryview, content_type: str, task: ModelTask) -> TaskRequest:
    """Read a whole body: JSON, or plain text as the one input. INVALID, naming the field."""
    if content_type.partition(";")[0].strip().lower() == "text/plain":
        try:
            return read_request({"inputs": bytes(data).decode()}, task)
        except UnicodeDecodeError as error:
            raise field_error("inputs", "The body is called text/plain, and is not UTF-8.") from error
    return read_request(decode_request(data), task)


def read_rows(data: bytes | memoryview, task: ModelTask) -> TaskRequest:
    """Read a body of KServe's v1 protocol, whose texts are cut where they are too long. INVALID, naming the field.

    `{"instances": [...]}` has a text for each row, or an object with it alone. A body without them is one as LMI's.
    """
    document = decode_request(data)
    if INSTANCES not in document:
        return read_request(document, task)
    judge_forms(document)
    rows = document[INSTANCES]
    if not isinstance(rows, list):
        raise field_error(INSTANCES, f"The field '{INSTANCES}' is no list; expected is a list of texts.")
    told = RequestFields(document).objects("parameters")
    cut = {"truncation": True} if "truncation" in PARAMETERS[task] else {}
    others = {name: value for name, value in document.items() if name not in (INSTANCES, "parameters")}
    inputs = rows if task is ModelTask.QUESTIONS else [_only_text(row) for row in rows]
    read = read_request({**others, "inputs": inputs, "parameters": {**cut, **told}}, task)
    return msgspec.structs.replace(read, key=b"rows" + read.key, of_rows=True)


def read_request(document: Mapping[str, Any], task: ModelTask) -> TaskRequest:
    """Read a JSON object. INVALID, naming the field."""
    fields = RequestFields(document)
    given = fields.take("inputs")
    if given is None and task is ModelTask.QUESTIONS:
        given = {name: fields.take(name) for name in ("question", "context") if name in fields}
    parameters = read_parameters(fields.objects("parameters"), task)
    fields.refuse_others(("inputs", "parameters"))
    is_list = isinstance(given, list)
    inputs = tuple(_input(one, task) for one in (given if isinstance(given, list) else [given]))
    if not 0 < len(inputs) <= MOST_INPUTS:
        words = f"The field 'inputs' has {len(inputs)} inputs; expected are 1 to {MOST_INPUTS}."
        raise field_error("inputs", f"{words} Send several requests: they share calls of the model.")
    return TaskRequest(inputs, not is_list, parameters, key_of(parameters))


def read_parameters(given: Mapping[str, Any], task: ModelTask) -> dict[str, Any]:
    """Return those that were said. INVALID names the first that cannot be, and what is near to an unknown one."""
    rows = PARAMETERS[task]
    fields = RequestFields(given, "parameters.")
    found = {name: value for name, read in rows.items() if (value := read(fields, name)) is not None}
    fields.refuse_others(rows)
    if task is ModelTask.TEXT_CLASSES and "top_k" in given and given["top_k"] is None:
        found["top_k"] = _ALL  # the pipeline's word for every class
    _judge_choices(fields, found)
    return found


def key_of(parameters: Mapping[str, Any]) -> bytes:
    """Return what requests with equal parameters have in common."""
    return msgspec.json.encode(parameters, order="sorted")


def _judge_choices(fields: RequestFields, found: Mapping[str, Any]) -> None:
    """Refuse more answers than are looked for."""
    wanted, beams = found.get("num_return_sequences", 1), found.get("num_beams", 1)
    if wanted > beams and not found.get("do_sample"):
        why = f"num_beams is {beams}, and without do_sample there are only as many answers. Raise num_beams."
        raise fields.contradiction("num_return_sequences", why)


def _only_text(row: Any) -> Any:
    """Return the only value of a row that has it by a name."""
    return next(iter(row.values())) if isinstance(row, dict) and len(row) == 1 else row


def _input(given: Any, task: ModelTask) -> Text:
    found: Text
    if task is ModelTask.QUESTIONS:
        pair = given if isinstance(given, Mapping) else {}
        question, context = pair.get("question"), pair.get("context")
        if not (isinstance(question, str) and isinstance(context, str) and question and context):
            words = 'an input is {"question": "...", "context": "..."}, both texts and none empty'
            raise field_error("inputs", f"The field 'inputs' lacks a question or its context: {words}.")
        found, size = Question(question, context), len(question) + len(context)
    elif isinstance(given, str):
        found, size = given, len(given)
    else:
        shown = "missing" if given is None else f"of the type {type(given).__name__}"
        raise field_error("inputs", f"The field 'inputs' is {shown}; expected is a text, or a list of texts.")
    if size > MOST_CHARACTERS:
        words = f"A text of 'inputs' has {size} characters; at most {MOST_CHARACTERS} are read. Send a part."
        raise field_error("inputs", words)
    return found
