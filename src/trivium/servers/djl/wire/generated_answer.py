"""Writes what is generated in LMI's forms: one object, a line of JSON for each token, or an event for each.

Source: spec sheet `djl`, section 11.5, the current form where that differs from the old one. Nothing of a streamed
answer is kept but its text, which the last line repeats.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from trivium.codecs.chat_answers import ChatChunks, ChatIdentity, Words, chat_completion, encode_json
from trivium.codecs.error_texts import wire_text
from trivium.codecs.generation import generated_of
from trivium.servers.djl.wire.errors import GENERATION_FAILED, lmi_body, of_generation
from trivium.servers.djl.wire.generate_request import LmiForm, read_request
from trivium.types.errors import ServeError, frameless
from trivium.types.generation import Finish, Generate, Generated, GeneratedChoice, TokenText, joined
from trivium.types.ignored_fields import IgnoredFields
from trivium.types.operations import ResponsePart
from trivium.types.payload import Raw

WORDS: Words = {
    Finish.LENGTH: "length",
    Finish.EOS: "eos_token",
    Finish.STOP: "stop_sequence",
    Finish.CANCELLED: "abort",
    Finish.ERROR: "error",
}
_KINDS = {"json": "application/json", "jsonlines": "application/jsonlines", "sse": "text/event-stream"}
_NO_TOKEN = TokenText(-1, "", 0.0)


class LmiWriter(Protocol):
    """Writes the parts of one answer. `kind` is its content type; without `streams` it is one whole."""

    kind: str
    streams: bool

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
        generate, form = read_request(raw, parameters, ignored)
    except ServeError as error:
        raise of_generation(frameless(error)) from error
    if form.is_chat:
        model = parameters.get("served_model_name", "lmi")
        return generate, ChatWriter(form, ChatIdentity(f"chatcmpl-{request_id}", int(created), model))
    return generate, WholeWriter(form) if form.formatter == "json" else TokenWriter(form)


def piece_of(part: ResponsePart, writer: LmiWriter) -> bytes:
    """Return the bytes of a part without an error; nothing where they wait for others. Raises why it cannot go on."""
    return writer.write(generated_of(part.payload), part.final)


def _framed(documents: Sequence[bytes], formatter: str) -> bytes:
    if formatter == "sse":
        return b"".join([b"data: %b\n\n" % document for document in documents])
    return b"".join([b"%b\n" % document for document in documents])


class WholeWriter:
    """Writes one object, once all is there."""

    streams = False
    kind = _KINDS["json"]

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
        return encode_json([document] if form.as_tgi else document)

    def failed(self, error: ServeError) -> bytes:
        """See `LmiWriter`."""
        return lmi_body(error)


class TokenWriter:
    """Writes a line, or an event, for each token; the last one has the whole text."""

    streams = True

    def __init__(self, form: LmiForm) -> None:
        self._form = form
        self._framing = form.formatter
        self.kind = _KINDS[form.formatter]
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
        documents = [encode_json({"token": self._token(token)}) for token in tokens]
        if final:
            last = encode_json(self._last(choice))
            documents[-1] = b"%b,%b" % (documents[-1][:-1], last[1:])
        return _framed(documents, self._framing)

    def failed(self, error: ServeError) -> bytes:
        """See `LmiWriter`."""
        text = wire_text(error.message)
        document: dict[str, object] = {
            "token": {**self._token(_NO_TOKEN), "error_msg": text},
            "generated_text": None,
        }
        document |= {"error": text, "code": error.status or GENERATION_FAILED}
        if self._form.details:
            document["details"] = {"finish_reason": "error", "generated_tokens": self._tokens}
        return _framed([encode_json(document)], self._framing)

    def _token(self, token: TokenText) -> dict[str, object]:
        found: dict[str, object] = {"id": token.id, "text": token.text, self._logprob: token.logprob}
        if self._form.as_tgi:
            found["special"] = token.is_special
        elif token.is_special:
            found["special_token"] = True
        if self._form.alternatives:
            found["top_tokens"] = _alternatives(token, self._logprob)
        return found

    def _last(self, choice: GeneratedChoice) -> dict[str, object]:
        form = self._form
        text = "".join(self._texts)
        found: dict[str, object] = {"generated_text": form.prompt + text if form.is_full else text}
        if form.details:
            finish = None if choice.finish is None else WORDS[choice.finish]
            found["details"] = {
                "finish_reason": finish,
                "generated_tokens": self._tokens,
                "inputs": form.prompt,
            }
        return found


class ChatWriter:
    """Writes a chat: one object, or a chunk for each part; events end with a mark of their own."""

    def __init__(self, form: LmiForm, identity: ChatIdentity) -> None:
        self._form = form
        self._identity = identity
        self._chunks = ChatChunks(identity, WORDS, form.has_logprobs, False)
        self._held: list[Generated] = []
        self.streams = form.formatter != "json"
        self.kind = _KINDS[form.formatter]

    def write(self, part: Generated, final: bool) -> bytes:
        """See `LmiWriter`."""
        if self.streams:
            body = _framed(self._chunks.documents(part), self._form.formatter)
            return body + b"data: [DONE]\n\n" if final and self._form.formatter == "sse" else body
        self._held.append(part)
        if not final:
            return b""
        return chat_completion(self._identity, WORDS, self._form.has_logprobs, joined(self._held))

    def failed(self, error: ServeError) -> bytes:
        """See `LmiWriter`."""
        return _framed([lmi_body(error)], self._form.formatter)


def _text_of(choice: GeneratedChoice, form: LmiForm) -> dict[str, object]:
    return {"generated_text": form.prompt + choice.text if form.is_full else choice.text}


def _details(choice: GeneratedChoice, form: LmiForm) -> dict[str, object]:
    logprob = "logprob" if form.as_tgi else "log_prob"
    tokens = []
    for token in choice.tokens:
        found: dict[str, object] = {"id": token.id, "text": token.text, logprob: token.logprob}
        if form.as_tgi:
            found["special"] = token.is_special
        elif token.is_special:
            found["special_token"] = True
        tokens.append(found)
    details: dict[str, object] = {
        "finish_reason": None if choice.finish is None else WORDS[choice.finish],
        "generated_tokens": len(choice.ids) or len(choice.tokens),
        "inputs": form.prompt,
        "tokens": tokens,
    }
    if form.alternatives:
        details["top_tokens"] = [_alternatives(token, logprob) for token in choice.tokens]
    return details


def _alternatives(token: TokenText, logprob: str) -> list[dict[str, object]]:
    return [{"id": id, "text": text, logprob: value} for id, text, value in token.alternatives]
