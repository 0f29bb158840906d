"""Answers which tokens a text has, and which text tokens have.

Source: vLLM's routes /tokenize and /detokenize. A model that generates nothing by itself gets the body as it came.
"""

from collections.abc import Mapping
from typing import Any

from trivium.codecs.chat_answers import encode_json
from trivium.codecs.chat_messages import read_messages, template_arguments
from trivium.codecs.generation import checked_ids
from trivium.codecs.generation_errors import in_words_of
from trivium.codecs.header_text import JSON, request_id_line
from trivium.codecs.ignored_field_log import IgnoredFieldLog
from trivium.codecs.request_fields import RequestFields
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.generation import Generate, Generated, Sampling
from trivium.types.ignored_fields import IgnoredFields
from trivium.types.operations import ModelDescriptions, ResponsePart
from trivium.types.payload import Payload, Raw
from trivium.types.wire import HttpAnswer
from trivium.wires.openai.errors import refuse

_NO_TOKENS = Sampling(max_tokens=0, shows_special=True)
_NAMES = {"input_ids": "tokens"}
_IGNORED: Mapping[str, tuple[object, ...]] = {
    "mm_processor_kwargs": (),
    "media_io_kwargs": (),
    "return_token_strs": (False,),
}


class TokensEncoder:
    """Reads a request about tokens, and writes its answer; `counts` says that the tokens of a text are asked for."""

    __slots__ = ("_counts", "_document", "_id", "_ignored", "_model")

    def __init__(
        self,
        model: str,
        request_id: str,
        document: Mapping[str, Any],
        counts: bool,
        ignored: IgnoredFieldLog | None,
    ) -> None:
        self._model = model
        self._id = request_id_line(request_id)
        self._document = document
        self._counts = counts
        self._ignored = ignored

    def read(self, raw: Raw, parameters: Mapping[str, str]) -> Generate:
        """Return what is asked for: a request that generates nothing. INVALID, naming the field."""
        found = None if self._ignored is None else IgnoredFields()
        fields = RequestFields(self._document, ignored=found)
        fields.take("model")
        generate = _counted(fields) if self._counts else _read_back(fields)
        fields.report(_IGNORED)
        fields.refuse_others()
        if found is not None and found.found and self._ignored is not None:
            self._id += self._ignored.told(self._model, found)
        self._document = {}
        return generate

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer."""
        try:
            if part.error is not None:
                return refuse(in_words_of(part.error, _NAMES), self._id)
            if not isinstance(part.answer, ModelDescriptions):
                raise ServeError(
                    Code.INTERNAL, "The model's answer did not come with its description. Report it."
                )
            return self._written(
                part.answer.said, part.answer.models[0].spec.context if part.answer.models else 0
            )
        except Exception as error:
            return refuse(unwritable(error), self._id)

    def _written(self, said: Payload | None, context: int) -> HttpAnswer:
        if isinstance(said, Raw):
            kind = (
                said.parts[0].content_type.encode("latin-1", "replace") if said.parts else b"application/json"
            )
            data = said.parts[0].data if said.parts else b""
            lines = b"%bContent-Type: %b\r\n" % (self._id, kind)
            return HttpAnswer(said.status or 200, lines, (data,), len(data))
        if not isinstance(said, Generated):
            words = (
                f"The model {self._model!r} answered with something that has no tokens. Ask a language model."
            )
            raise ServeError(Code.UNSUPPORTED, words)
        if self._counts:
            ids = said.prompts[0] if said.prompts else ()
            told = {"count": len(ids), "max_model_len": context, "tokens": ids, "token_strs": None}
        else:
            told = {"prompt": said.choices[0].text if said.choices else ""}
        body = encode_json(told)
        return HttpAnswer(200, self._id + JSON, (body,), len(body))


def _counted(fields: RequestFields) -> Generate:
    fields.refuse("return_token_strs", "Leave it out; /detokenize has the text of single tokens.", False)
    adds_special = fields.flag("add_special_tokens")
    prompt = fields.text("prompt")
    if prompt is not None:
        return Generate((prompt,), sampling=_NO_TOKENS, tells_prompts=True, adds_special=adds_special)
    messages = read_messages(fields.take("messages"), ignored=fields.ignored)
    arguments = template_arguments(fields)
    return Generate(
        None,
        messages,
        sampling=_NO_TOKENS,
        template_arguments=arguments,
        tells_prompts=True,
        adds_special=adds_special,
    )


def _read_back(fields: RequestFields) -> Generate:
    given = fields.take("tokens")
    ids = checked_ids([given], "tokens", "a list of ids of tokens, at least one")
    return Generate(ids=ids, sampling=_NO_TOKENS, echoes=True)
