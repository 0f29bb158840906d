"""The texts of a request, as each kind of model wants them: from JSON, a plain text, or the fields of a form. Pure.

Source: spec sheet `djl`, section 10; the texts of refusals are DJL's.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from trivium.codecs.header_text import essence
from trivium.translators.faults import refusal_in_words

_PAIRS = (("text", "text_pair"), ("key", "value"))
_TEMPLATE = "This example is {}."
_NO_JSON = "Input is not a valid json."


class TextRequest(NamedTuple):
    """The rows of a request. `is_list` says that the answer is a list of answers."""

    rows: list[str]
    is_list: bool = False


class PairRequest(NamedTuple):
    """The rows of a request that are pairs: question and paragraph, or two texts to compare."""

    rows: list[tuple[str, str]]
    is_list: bool = False


class ZeroShotRequest(NamedTuple):
    """One text with its candidates; the rows hold the text with a sentence about each of them."""

    rows: list[tuple[str, str]]
    text: str
    candidates: list[str]
    is_multi_label: bool = False


def parse_texts(content: bytes, content_type: str) -> TextRequest:
    """Read `{"inputs": text or texts}`, a bare JSON string or array, or a body that is a text itself."""
    if not content:
        raise refusal_in_words("Input data is empty.")
    if essence(content_type) != "application/json":
        return TextRequest([_decoded(content)])
    document = _document(content)
    if isinstance(document, dict):
        document = document.get("inputs")
    if document is None:
        raise refusal_in_words(
            'Missing "inputs" in json.', 'Expected {"inputs": "a text"} or {"inputs": ["a text", ...]}.'
        )
    if isinstance(document, list):
        if not document:
            raise refusal_in_words("Input data is empty.", "The list of inputs has no text.")
        return TextRequest([_text(each) for each in document], True)
    return TextRequest([_text(document)])


def parse_questions(content: bytes, content_type: str, fields: Mapping[str, str]) -> PairRequest:
    """Read `{"question", "paragraph" or "context"}`, a JSON array of those, or the fields of a form or query."""
    if essence(content_type) == "application/json":
        if not content:
            raise refusal_in_words("Input data is empty.")
        document = _document(content)
        if isinstance(document, list) and document:
            return PairRequest([_question(each) for each in document], True)
        return PairRequest([_question(document)])
    if not content and not fields:
        raise refusal_in_words("Input data is empty.")
    question, paragraph = fields.get("question"), fields.get("context", fields.get("paragraph"))
    if question is None or paragraph is None:
        raise refusal_in_words(
            "Missing question or context in input.",
            'Send JSON: {"question": "...", "context": "..."}.',
        )
    return PairRequest([(question, paragraph)])


def parse_pairs(content: bytes, content_type: str, fields: Mapping[str, str]) -> PairRequest:
    """Read `{"text", "text_pair"}`, `{"key", "value"}`, an array of those, `{"query", "texts"}`, or fields."""
    if not content and not fields:
        raise refusal_in_words("Input data is empty.")
    if essence(content_type) != "application/json":
        for first, second in _PAIRS:
            if first in fields and second in fields:
                return PairRequest([(fields[first], fields[second])])
        raise refusal_in_words(
            "Missing key or value in input.", 'Send JSON: {"text": "...", "text_pair": "..."}.'
        )
    document = _document(content)
    if isinstance(document, list) and document:
        return PairRequest([_pair(each) for each in document], True)
    if isinstance(document, dict) and document.get("query") is not None:
        query, texts = _text(document["query"]), document.get("texts")
        if not isinstance(texts, list) or not texts:
            raise refusal_in_words(
                "Missing texts in json.", 'Expected {"query": "...", "texts": ["...", ...]}.'
            )
        return PairRequest([(query, _text(text)) for text in texts], True)
    if not isinstance(document, dict):
        raise refusal_in_words(
            "Unexpected json type.", "Expected an object with text and text_pair, or an array of those."
        )
    return PairRequest([_pair(document)])


def parse_candidates(content: bytes) -> ZeroShotRequest:
    """Read `{"text", "candidate_labels", "multi_label", "hypothesis_template"}`, whatever the content type."""
    if not content:
        raise refusal_in_words("Input data is empty.")
    document = _document(content)
    if not isinstance(document, dict):
        raise refusal_in_words(_NO_JSON, "Expected an object with text and candidate_labels.")
    labels = document.get("candidate_labels")
    if labels is not None and not isinstance(labels, list):
        raise refusal_in_words(_NO_JSON, "candidate_labels is a list of texts.")
    if not labels:
        raise refusal_in_words("Missing candidates in input")
    if document.get("text") is None:
        raise refusal_in_words('Missing "text" in json.')
    text, candidates = _text(document["text"]), [_text(label) for label in labels]
    template = document.get("hypothesis_template")
    template = _TEMPLATE if template is None else _text(template)
    before, _, after = template.partition("{}")
    rows = [(text, f"{before}{candidate}{after}") for candidate in candidates]
    return ZeroShotRequest(rows, text, candidates, document.get("multi_label") in (True, "true"))


def _document(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise refusal_in_words(_NO_JSON, f"{error}.") from error


def _question(document: Any) -> tuple[str, str]:
    if not isinstance(document, dict):
        raise refusal_in_words(_NO_JSON, "Expected an object with question and context.")
    question = document.get("question")
    paragraph = document.get("paragraph")
    paragraph = document.get("context") if paragraph is None else paragraph
    if question is None or paragraph is None:
        raise refusal_in_words("Missing question or context in json.")
    return _text(question), _text(paragraph)


def _pair(document: Any) -> tuple[str, str]:
    if not isinstance(document, dict):
        raise refusal_in_words(_NO_JSON, "Expected an object with text and text_pair.")
    for first, second in _PAIRS:
        if document.get(first) is not None and document.get(second) is not None:
            return _text(document[first]), _text(document[second])
    raise refusal_in_words("Missing text or text_pair in json.")


def _text(value: Any) -> str:
    """Return a text; as in DJL a number or truth value is its own text."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise refusal_in_words(_NO_JSON, f"A text holds half a character: {error}.") from error
        return value
    if value is None or isinstance(value, dict | list):
        raise refusal_in_words(_NO_JSON, f"Expected a text, found {json.dumps(value)[:80]}.")
    return json.dumps(value)


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise refusal_in_words(
            "Input is not text in UTF-8.", f"{error}. Send UTF-8, or JSON with its content type."
        ) from error
