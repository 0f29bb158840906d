"""Writes what is generated in LMI's forms: one object, a line of JSON for each token, or an event for each.

Source: spec sheet `djl`, section 11.5, the current form where that differs from the old one. Nothing of a streamed
answer is kept but its text, which the last line repeats.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from trivium.codecs.chat_answers import ChatChunks, ChatIdentity, chat_completion, encode_json
from trivium.codecs.error_texts import wire_text
from trivium.codecs.generation import generated_of
from trivium.servers.djl.wire.async_mode import ChunkWriter, begin_async, framed, model_name
from trivium.servers.djl.wire.errors import GENERATION_FAILED, lmi_body, of_generation
from trivium.servers.djl.wire.generate_request import (
    LMI_NAMES,
    LmiForm,
    is_async,
    read_document,
    read_request,
)
from trivium.servers.djl.wire.vendor_answer import VendorWriter
from trivium.servers.djl.words.finish import WORDS
from trivium.servers.djl.words.formatters import FORMATTERS, Shape
from trivium.types.errors import ServeError, frameless
from trivium.types.generation import Generate, Generated, GeneratedChoice, TokenText, joined
from trivium.types.ignored_fields import IgnoredFields
from trivium.types.operations import ResponsePart
from trivium.types.payload import Raw
from trivium.wires.openai.answer import WORDS as OPENAI_WORDS

_NO_TOKEN = TokenText(-1, "", 0.0)


class LmiWriter(Protocol):
    """Writes the parts of one answer. `kind` is its content type; `names` are those of its request's fields."""

    kind: str
    names: Mapping[str, str]

    def write(self, part: Generated, final: bool) -> bytes:
        """Return the bytes of a part; nothing where they wait for others."""

    def failed(self, error: ServeError) -> bytes:
        """Return the last bytes of an answer that fails on its way."""


def begin(
    raw: Raw,
    parameters: Mapping[str, str],
    request_id: str,
    created: float,
    ignored: IgnoredFields | None = None,
) -> tuple[Generate, LmiWriter]:
    """Read a body for a model that has these parameters; return what is asked for, and what writes its answer in the
    form asked for. Fields without effect are `ignored`, or else refused. Raises a `Refusal` that names the field.
    """
    try:
        document = read_document(raw)
        if is_async(parameters) and "inputs" not in document:
            return begin_async(document, parameters, request_id, created, ignored)
        generate, form = read_request(document, parameters, ignored)
    except ServeError as error:
        raise of_generation(frameless(error)) from error
    return generate, _writer(form, parameters, request_id, created)


def _writer(form: LmiForm, parameters: Mapping[str, str], request_id: str, created: float) -> LmiWriter:
    formatter = form.formatter
    match formatter.shape:
        case Shape.CHAT:
            identity = ChatIdentity(f"chatcmpl-{request_id}", int(created), model_name(parameters))
            chunks = ChatChunks(identity, WORDS, form.has_logprobs, False)
            return ChunkWriter(
                formatter, chunks, partial(chat_completion, identity, WORDS, form.has_logprobs), LMI_NAMES
            )
        case Shape.VENDOR:
            return VendorWriter(form)
        case Shape.TEXT:
            return TextWriter(form)
    return TokenWriter(form) if formatter.streams else WholeWriter(form)


def piece_of(part: ResponsePart, writer: LmiWriter) -> bytes:
    """Return the bytes of a part without an error; nothing where they wait for others. Raises why it cannot go on."""
    return writer.write(generated_of(part.payload), part.final)


class WholeWriter:
    """Writes one object, once all is there."""

    kind = FORMATTERS["json"].kind
    names: Mapping[str, str] = LMI_NAMES

    def __init__(self, form: LmiForm) -> None:
        self._form = form
        self._held: list[Generated] = []

    def write(self, part: Generated, final: bool) -> bytes:
        """See `LmiWriter`."""
        self._held.append(part)
        if not final:
            return b""
        form, whole = self._form, joined(self._held)
        choices = sorted(whole.choices, key=lambda choice: choice.index) or [GeneratedChoice(0)]
        document = _text_of(choices[0], form)
        if form.details or len(choices) > 1:
            details = _details(choices[0], form)
            if len(choices) > 1:
                details["best_of_sequences"] = [
                    {**_text_of(other, form), **_details(other, form)} for other in choices[1:]
                ]
            document["details"] = details
        return encode_json([document] if form.as_tgi and not form.as_async else document)

    def failed(self, error: ServeError) -> bytes:
        """See `LmiWriter`."""
        return lmi_body(error)


class TokenWriter:
    """Writes a line, or an event, for each token; the last one has the whole text."""

    names: Mapping[str, str] = LMI_NAMES

    def __init__(self, form: LmiForm) -> None:
        self._form = form
        self._framing = form.formatter
        self.kind = form.formatter.kind
        self._logprob = "logprob" if form.as_tgi else "log_prob"
        self._texts: list[str] = []
        self._tokens = 0

    def write(self, part: Generated, final: bool) -> bytes:
        """See `LmiWriter`."""
        choice = part.choices[0] if part.choices else GeneratedChoice(0)
        self._texts.append(choice.text)
        tokens: Sequence[TokenText] = choice.tokens
        self._tokens += len(choice.ids) or len(tokens)
        if not tokens and (choice.text or final):
            tokens = (TokenText(choice.ids[-1] if choice.ids else -1, choice.text),)
        documents = [self._line(token) for token in tokens]
        if final:
            documents[-1] |= self._last(choice, part)
        return framed([encode_json(document) for document in documents], self._framing)

    def failed(self, error: ServeError) -> bytes:
        """See `LmiWriter`."""
        text = wire_text(error.message)
        document: dict[str, object] = {
            "token": {
                **_token(_NO_TOKEN, self._form, self._logprob, self._form.alternatives),
                "error_msg": text,
            },
            "generated_text": None,
        }
        document |= {"error": text, "code": error.status or GENERATION_FAILED}
        if self._form.details:
            document["details"] = {"finish_reason": "error", "generated_tokens": self._tokens}
        return framed([encode_json(document)], self._framing)

    def _line(self, token: TokenText) -> dict[str, object]:
        if self._form.as_async:
            return {
                "index": 0,
                "token": _token(token, self._form, self._logprob, self._form.alternatives),
                "generated_text": None,
                "details": None,
            }
        return {"token": _token(token, self._form, self._logprob, self._form.alternatives)}

    def _last(self, choice: GeneratedChoice, part: Generated) -> dict[str, object]:
        form = self._form
        text = "".join(self._texts)
        found: dict[str, object] = {"generated_text": form.prompt + text if form.is_full else text}
        finish = word_of(choice, form)
        if form.details and form.as_async:
            found["details"] = {
                "finish_reason": finish,
                "seed": form.seed,
                "generated_tokens": self._tokens,
                "input_length": None if part.usage is None else part.usage.prompt_tokens,
            }
        elif form.details:
            found["details"] = {
                "finish_reason": finish,
                "generated_tokens": self._tokens,
                "inputs": form.prompt,
            }
        return found


class TextWriter:
    """Writes the text as it comes, and nothing else."""

    names: Mapping[str, str] = LMI_NAMES

    def __init__(self, form: LmiForm) -> None:
        self.kind = form.formatter.kind
        self._before = form.prompt if form.is_full else ""

    def write(self, part: Generated, final: bool) -> bytes:
        """See `LmiWriter`."""
        text = self._before + "".join(choice.text for choice in part.choices[:1])
        self._before = ""
        return text.encode("utf-8", "replace")

    def failed(self, error: ServeError) -> bytes:
        """See `LmiWriter`."""
        return lmi_body(error)


def _text_of(choice: GeneratedChoice, form: LmiForm) -> dict[str, object]:
    return {"generated_text": form.prompt + choice.text if form.is_full else choice.text}


def _details(choice: GeneratedChoice, form: LmiForm) -> dict[str, object]:
    logprob = "logprob" if form.as_tgi else "log_prob"
    details: dict[str, object] = {
        "finish_reason": word_of(choice, form),
        "generated_tokens": len(choice.ids) or len(choice.tokens),
        **({"seed": form.seed, "prefill": []} if form.as_async else {"inputs": form.prompt}),
        "tokens": [_token(token, form, logprob) for token in choice.tokens],
    }
    if form.alternatives:
        details["top_tokens"] = [_alternatives(token, logprob) for token in choice.tokens]
    return details


def _alternatives(token: TokenText, logprob: str) -> list[dict[str, object]]:
    return [{"id": id, "text": text, logprob: value} for id, text, value in token.alternatives]


def _token(token: TokenText, form: LmiForm, logprob: str, alternatives: int = 0) -> dict[str, object]:
    found: dict[str, object] = {"id": token.id, "text": token.text, logprob: token.logprob}
    if form.as_async:
        pass  # three members, whatever the token is
    elif form.as_tgi:
        found["special"] = token.is_special
    elif token.is_special:
        found["special_token"] = True
    if alternatives:
        found["top_tokens"] = _alternatives(token, logprob)
    return found


def word_of(choice: GeneratedChoice, form: LmiForm) -> str | None:
    """Return why a sequence has ended, in LMI's words or, in the asynchronous mode, in OpenAI's."""
    words = OPENAI_WORDS if form.as_async else WORDS
    return None if choice.finish is None else words[choice.finish]
