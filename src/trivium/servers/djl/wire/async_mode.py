"""The asynchronous mode of DJL's language models: OpenAI's bodies and answers on the routes of predictions.

Source: spec sheet `llm`, "LMI today". A body with `prompt` is a completion and one with `messages` a chat, both with
vLLM's fields and defaults; what streams has a line for each chunk. `model` may be missing, or be any name.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from trivium.codecs.chat_answers import ChatChunks, ChatIdentity, chat_completion
from trivium.codecs.generation_errors import wire_names
from trivium.codecs.request_fields import field_error
from trivium.servers.djl.wire.errors import lmi_body
from trivium.servers.djl.words.formatters import FORMATTERS, Formatter
from trivium.servers.djl.words.language_model_keys import DEFAULT_NAME, SERVED_NAME
from trivium.types.errors import ServeError
from trivium.types.generation import Generate, Generated, joined
from trivium.types.ignored_fields import IgnoredFields
from trivium.wires.openai.answer import WORDS, Chunks
from trivium.wires.openai.completion_answers import CompletionChunks, completion
from trivium.wires.openai.request import (
    CHAT_SAMPLING,
    COMPLETION_SAMPLING,
    OpenAiForm,
    read_chat,
    read_completion,
)

_CHAT_NAMES = wire_names(CHAT_SAMPLING)
_COMPLETION_NAMES = wire_names(COMPLETION_SAMPLING, input_ids="prompt")


def model_name(parameters: Mapping[str, str]) -> str:
    """Return under which name a model with these parameters speaks of itself."""
    return parameters.get(SERVED_NAME, "") or DEFAULT_NAME


def framed(documents: Sequence[bytes], formatter: Formatter) -> bytes:
    """Return a line, or an event, for each document."""
    if formatter.is_event:
        return b"".join([b"data: %b\n\n" % document for document in documents])
    return b"".join([b"%b\n" % document for document in documents])


class ChunkWriter:
    """Writes an answer of OpenAI's: whole, or a chunk for each part; events end with a mark of their own."""

    def __init__(
        self,
        formatter: Formatter,
        chunks: Chunks,
        whole: Callable[[Generated], bytes],
        names: Mapping[str, str],
    ) -> None:
        self.kind = formatter.kind
        self.names = names
        self._formatter = formatter
        self._chunks = chunks
        self._whole = whole
        self._held: list[Generated] = []

    def write(self, part: Generated, final: bool) -> bytes:
        """See `LmiWriter`."""
        if not self._formatter.streams:
            self._held.append(part)
            return self._whole(joined(self._held)) if final else b""
        documents = self._chunks.documents(part)
        if final and self._chunks.tells_usage and part.usage is not None:
            documents.append(self._chunks.usage(part.usage))
        body = framed(documents, self._formatter)
        return body + b"data: [DONE]\n\n" if final and self._formatter.is_event else body

    def failed(self, error: ServeError) -> bytes:
        """See `LmiWriter`."""
        return framed([lmi_body(error)], self._formatter)


def begin_async(
    document: dict[str, Any],
    parameters: Mapping[str, str],
    request_id: str,
    created: float,
    ignored: IgnoredFields | None,
) -> tuple[Generate, ChunkWriter]:
    """Read a completion or a chat; return what is asked for, and what writes its answer. INVALID, naming the field."""
    asked = document.get("model")
    name = asked if isinstance(asked, str) and asked else model_name(parameters)
    if "prompt" in document:
        generate, form = read_completion(document, ignored)
        identity = ChatIdentity(f"cmpl-{request_id}", int(created), name)
        return generate, ChunkWriter(
            _formatter(form),
            CompletionChunks(identity, WORDS, form.tells_usage, form.of_tokens),
            partial(completion, identity, WORDS, form=form.of_tokens),
            _COMPLETION_NAMES,
        )
    if "messages" in document:
        generate, form = read_chat(document, ignored)
        identity = ChatIdentity(f"chatcmpl-{request_id}", int(created), name)
        return generate, ChunkWriter(
            _formatter(form),
            ChatChunks(identity, WORDS, form.has_logprobs, form.tells_usage, form.extras),
            partial(chat_completion, identity, WORDS, form.has_logprobs, extras=form.extras),
            _CHAT_NAMES,
        )
    raise field_error(
        "inputs", "The request has neither 'inputs' nor 'prompt' nor 'messages'. Send one of the three."
    )


def _formatter(form: OpenAiForm) -> Formatter:
    return FORMATTERS["jsonlines_chat" if form.streams else "json_chat"]
