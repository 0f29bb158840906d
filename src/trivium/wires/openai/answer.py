"""Writes answers of OpenAI's API: what is generated as events or as one object, the list of models, and, for a model
that generates nothing by itself, what its handler answers, as it is.

An error before the first event has its own status, one behind it is an event, and nothing follows.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from trivium.codecs.chat_answers import ChatChunks, ChatIdentity, Words, chat_completion
from trivium.codecs.conversion import is_slow_to_write, negotiated
from trivium.codecs.generation import generated_of, is_slow_to_tell
from trivium.codecs.generation_errors import in_words_of, wire_names
from trivium.codecs.header_text import JSON, has_controls, is_name, reason_phrase, request_id_line
from trivium.codecs.ignored_field_log import IgnoredFieldLog
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.generation import Finish, Generate, Generated, GenerationUsage, joined
from trivium.types.ignored_fields import IgnoredFields
from trivium.types.operations import ResponsePart
from trivium.types.payload import Raw, Tensors
from trivium.types.wire import NOTHING_YET, HttpAnswer, costly
from trivium.wires.openai.completion_answers import CompletionChunks, completion
from trivium.wires.openai.errors import error_object, refuse
from trivium.wires.openai.request import (
    CHAT_SAMPLING,
    COMPLETION_SAMPLING,
    OpenAiForm,
    read_chat,
    read_completion,
)

EVENTS = b"Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"
_DONE = b"data: [DONE]\n\n"
WORDS: Words = {
    Finish.LENGTH: "length",
    Finish.EOS: "stop",
    Finish.STOP: "stop",
    Finish.CANCELLED: "stop",
    Finish.ERROR: "stop",
}
_OWNER = "trivium"
_NAMES: Mapping[bool, Mapping[str, str]] = {
    True: wire_names(CHAT_SAMPLING),
    False: wire_names(COMPLETION_SAMPLING, input_ids="prompt"),
}
"""What the route of chats, or of completions, calls the fields of a request to generate."""

_PLAIN = OpenAiForm(False, False, False)
_OURS = frozenset(
    {
        "connection",
        "content-length",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-request-id",
    }
)
"""Header names that a handler does not decide."""


class Chunks(Protocol):
    """Writes the chunks of one streamed answer."""

    tells_usage: bool

    def documents(self, part: Generated) -> list[bytes]:
        """Return the JSON of each chunk of a part."""

    def usage(self, usage: GenerationUsage) -> bytes:
        """Return the JSON of the last chunk."""


class OpenAiEncoder:
    """Reads one request to generate, and writes its answer. `document` is the JSON of the body. Fields without effect
    are told by `ignored`; without it they are refused.
    """

    __slots__ = (
        "_accept",
        "_begun",
        "_chunks",
        "_document",
        "_form",
        "_held",
        "_id",
        "_identity",
        "_ignored",
        "_is_chat",
    )

    def __init__(
        self,
        identity: ChatIdentity,
        request_id: str,
        document: Mapping[str, Any],
        is_chat: bool,
        accept: str,
        ignored: IgnoredFieldLog | None = None,
    ) -> None:
        self._ignored = ignored
        self._identity = identity
        self._id = request_id_line(request_id)
        self._document = document
        self._is_chat = is_chat
        self._accept = accept
        self._form: OpenAiForm | None = None
        self._chunks: Chunks | None = None
        self._held: list[Generated] = []
        self._begun = False

    def read(self, raw: Raw, parameters: Mapping[str, str]) -> Generate:
        """Return what is asked for. INVALID, naming the field."""
        found = None if self._ignored is None else IgnoredFields()
        generate, form = (read_chat if self._is_chat else read_completion)(self._document, found)
        if found is not None and found.found and self._ignored is not None:
            self._id += self._ignored.told(self._identity.model, found)
        self._document = {}
        self._form = form
        return generate

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """The part as events, or as it is; nothing before the last one where the answer is to be whole."""
        if part.final and (is_slow_to_tell(part.payload) or is_slow_to_write(part.payload)):
            return costly(lambda: self._written(part))
        return self._written(part)

    def _written(self, part: ResponsePart) -> HttpAnswer:
        try:
            answer = self._failed(part.error) if part.error is not None else self._part(part)
        except Exception as error:
            answer = self._failed(unwritable(error))
        self._begun = self._begun or answer is not NOTHING_YET
        return answer

    def _failed(self, error: ServeError) -> HttpAnswer:
        error = in_words_of(error, _NAMES[self._is_chat])
        if not self._begun:
            return refuse(error, self._id)
        body = error_object(error)
        if self._form is not None and self._form.streams:
            body = b"data: %b\n\n" % body
        return HttpAnswer(200, b"", (body,), len(body))

    def _part(self, part: ResponsePart) -> HttpAnswer:
        payload = part.payload
        if payload is None:
            payload = Raw(()) if self._form is None else Generated()
        if isinstance(payload, Generated):
            payload = generated_of(payload)
            form = self._form or _PLAIN
            return self._events(payload, part, form) if form.streams else self._whole(payload, part, form)
        if isinstance(payload, Tensors):
            kind, buffers = negotiated(payload, self._accept, "", "application/json")
            fields = b"" if self._begun else b"%bContent-Type: %b\r\n" % (self._id, kind.encode())
            return HttpAnswer(200, fields, buffers, sum(map(len, buffers)), part.final)
        if isinstance(payload, Raw):
            return self._raw(payload, part.final)
        raise ServeError(
            Code.UNSUPPORTED,
            f"The model {part.model!r} answered with something that this route cannot carry. Use the protocol that "
            "its handler was written for.",
        )

    def _events(self, told: Generated, part: ResponsePart, form: OpenAiForm) -> HttpAnswer:
        final = part.final
        chunks = self._chunks
        if chunks is None:
            chunks = self._chunks = self._begin_chunks(part.model, form)
        documents = chunks.documents(told)
        if final and chunks.tells_usage and told.usage is not None:
            documents.append(chunks.usage(told.usage))
        events = b"".join([b"data: %b\n\n" % document for document in documents])
        if final:
            events += _DONE
        if not events and not self._begun:
            return NOTHING_YET
        fields = b"" if self._begun else self._id + EVENTS
        return HttpAnswer(200, fields, (events,) if events else (), len(events), final)

    def _begin_chunks(self, model: str, form: OpenAiForm) -> Chunks:
        identity = self._named(model)
        if self._is_chat:
            return ChatChunks(identity, WORDS, form.has_logprobs, form.tells_usage, form.extras)
        return CompletionChunks(identity, WORDS, form.tells_usage, form.of_tokens)

    def _named(self, model: str) -> ChatIdentity:
        """Return whose answer it is: a request may have left out the model's name."""
        if self._identity.model:
            return self._identity
        return msgspec.structs.replace(self._identity, model=model)

    def _whole(self, told: Generated, part: ResponsePart, form: OpenAiForm) -> HttpAnswer:
        self._held.append(told)
        if not part.final:
            return NOTHING_YET
        whole, identity = joined(self._held), self._named(part.model)
        if self._is_chat:
            body = chat_completion(identity, WORDS, form.has_logprobs, whole, form.extras)
        else:
            body = completion(identity, WORDS, whole, form.of_tokens)
        return HttpAnswer(200, self._id + JSON, (body,), len(body))

    def _raw(self, payload: Raw, final: bool) -> HttpAnswer:
        """A handler's own answer: its status, its header lines and its body."""
        data = payload.parts[0].data if payload.parts else b""
        buffers = (data,) if len(data) else ()
        if self._begun:
            return HttpAnswer(200, b"", buffers, len(data), final)
        status = payload.status or 200
        if not 200 <= status <= 599:
            words = f"The handler's answer has the status {status}; expected is one from 200 to 599."
            raise ServeError(Code.MODEL_FAILED, words)
        reason = reason_phrase(payload.reason) if payload.reason else None
        return HttpAnswer(status, self._id + _lines(payload), buffers, len(data), final, reason)


def _lines(payload: Raw) -> bytes:
    """Return a handler's properties as header lines; of names that differ in case alone the last counts."""
    said = dict(payload.properties)
    kind = payload.parts[0].content_type if payload.parts else ""
    lines = {"content-type": b"Content-Type: %b\r\n" % kind.encode("latin-1", "replace")} if kind else {}
    if has_controls(kind):
        said["Content-Type"] = kind
    for name, value in said.items():
        lower, value = name.lower(), value.strip()
        if lower in _OURS:
            continue
        if not is_name(name) or has_controls(value):
            raise ServeError(
                Code.MODEL_FAILED,
                f"The handler's property {name[:80]!r} cannot be a header line: expected is a name of letters, digits "
                "and dashes, and a value on one line.",
            )
        lines[lower] = b"%b: %b\r\n" % (name.encode(), value.encode("utf-8", "replace"))
    return b"".join(lines.values())
