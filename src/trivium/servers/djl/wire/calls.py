"""The form in which a handler's worker calls a language model: a body as a client of LMI's sends it, and its answer.

A body with the property `answer: tokens` is answered token by token, for user code that makes a text of them by itself:
each part is an object with `sequences`, each with `index`, `tokens` (lists of id, text, log probability, is it special,
and alternatives) and `finish`, which is null until it has ended; the first part has `prompt`, the ids of the prompt.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from trivium.codecs.chat_answers import encode_json
from trivium.codecs.generation import generated_of
from trivium.codecs.generation_errors import in_words_of
from trivium.servers.djl.wire.async_mode import begin_async
from trivium.servers.djl.wire.errors import of_generation
from trivium.servers.djl.wire.generate_request import LMI_NAMES, is_async, read_document, read_request
from trivium.servers.djl.wire.generated_answer import LmiWriter, begin
from trivium.servers.djl.words.finish import WORDS
from trivium.types.errors import ServeError, frameless, unwritable
from trivium.types.generation import Generate, Generated, GeneratedChoice, TokenText
from trivium.types.ignored_fields import IgnoredFields
from trivium.types.operations import ResponsePart
from trivium.types.payload import Raw, RawPart

ANSWER, TOKENS = "answer", "tokens"
"""The property of a call, and its value, by which tokens are answered."""


class LmiCall:
    """One call: see `CallForm`."""

    def __init__(self) -> None:
        self._writer: LmiWriter = TokensWriter()

    def read(self, raw: Raw, parameters: Mapping[str, str]) -> Generate:
        """See `CallForm`: fields without effect are passed over, since user code may have put them there for itself."""
        if raw.properties.get(ANSWER) != TOKENS:
            generate, self._writer = begin(raw, parameters, "call", 0.0, IgnoredFields())
            return generate
        try:
            return _of_tokens(read_document(raw), parameters)
        except ServeError as error:
            raise of_generation(frameless(error)) from error

    def written(self, part: ResponsePart) -> ResponsePart | None:
        """See `CallForm`. An error is in the words of LMI's clients."""
        writer, error = self._writer, part.error
        if error is None and isinstance(part.payload, Raw):
            return part  # of a model that generates nothing
        if error is None:
            try:
                body = writer.write(generated_of(part.payload), part.final)
            except ServeError as why:
                error = frameless(why)
            except Exception as why:
                error = unwritable(why)
        if error is not None:
            told = of_generation(in_words_of(error, writer.names))
            return msgspec.structs.replace(part, error=told, payload=None, final=True)
        if not body and not part.final:
            return None
        return msgspec.structs.replace(part, payload=Raw((RawPart(body, writer.kind),)))


class TokensWriter:
    """Writes each part as an object of its tokens."""

    kind = "application/json"
    names: Mapping[str, str] = LMI_NAMES

    def write(self, part: Generated, final: bool) -> bytes:
        """See `LmiWriter`."""
        told: dict[str, object] = {"sequences": [_sequence(choice) for choice in part.choices]}
        if part.prompts:
            told["prompt"] = part.prompts[0]
        return encode_json(told)

    def failed(self, error: ServeError) -> bytes:
        """See `LmiWriter`."""
        return encode_json({"error": error.message})


def _of_tokens(document: dict[str, Any], parameters: Mapping[str, str]) -> Generate:
    """Return what is asked for, token by token, whatever the request says of the form of its answer."""
    neutral = {
        key: value for key, value in parameters.items() if key not in ("output_formatter", "tgi_compat")
    }
    document.pop("stream", None)
    if is_async(parameters) and "inputs" not in document:
        generate, _ = begin_async(document, neutral, "call", 0.0, IgnoredFields())
        alternatives = 0
    else:
        generate, form = read_request(document, neutral, IgnoredFields())
        alternatives = form.alternatives
    told = generate.sampling.logprobs
    sampling = msgspec.structs.replace(generate.sampling, logprobs=alternatives if told is None else told)
    streams = sampling.best_of is None or sampling.best_of == sampling.choices
    return msgspec.structs.replace(generate, sampling=sampling, streams=streams, tells_prompts=True)


def _sequence(choice: GeneratedChoice) -> dict[str, object]:
    tokens = choice.tokens
    if not tokens and (choice.text or choice.finish is not None):
        tokens = (TokenText(choice.ids[-1] if choice.ids else -1, choice.text),)
    return {
        "index": choice.index,
        "tokens": [[one.id, one.text, one.logprob, one.is_special, one.alternatives] for one in tokens],
        "finish": None if choice.finish is None else WORDS[choice.finish],
    }
