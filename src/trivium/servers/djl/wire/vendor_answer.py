"""Writes what is generated in the form of another vendor's service: a body and how much is to be paid for.

Source: spec sheet `djl`, section 11.5 (`3p`). Of a streamed answer the last line tells the prompt's tokens, which are
not known before.
"""

from collections.abc import Mapping

from trivium.codecs.chat_answers import encode_json
from trivium.codecs.error_texts import wire_text
from trivium.servers.djl.wire.generate_request import LMI_NAMES, LmiForm
from trivium.servers.djl.words.finish import WORDS
from trivium.types.errors import ServeError
from trivium.types.generation import Generated, GeneratedChoice, joined

_FAULT = 400


class VendorWriter:
    """Writes one object, or a line for each part."""

    names: Mapping[str, str] = LMI_NAMES

    def __init__(self, form: LmiForm) -> None:
        self.kind = form.formatter.kind
        self._streams = form.formatter.streams
        self._before = form.prompt if form.is_full else ""
        self._held: list[Generated] = []
        self._made = 0

    def write(self, part: Generated, final: bool) -> bytes:
        """See `LmiWriter`."""
        if not self._streams:
            self._held.append(part)
            if not final:
                return b""
            part = joined(self._held)
        choice = part.choices[0] if part.choices else GeneratedChoice(0)
        self._made += len(choice.ids)
        if not (choice.text or final):
            return b""
        body: dict[str, object] = {
            "generation": self._before + choice.text,
            "prompt_token_count": part.usage.prompt_tokens if final and part.usage else None,
            "generation_token_count": self._made,
            "stop_reason": None if choice.finish is None else WORDS[choice.finish],
        }
        self._before = ""
        return self._document(body)

    def failed(self, error: ServeError) -> bytes:
        """See `LmiWriter`."""
        body: dict[str, object] = {
            "generation": None,
            "prompt_token_count": 0,
            "generation_token_count": 0,
            "stop_reason": "error",
        }
        return self._document(body, {"error": {"error_code": _FAULT, "error_msg": wire_text(error.message)}})

    def _document(self, body: dict[str, object], more: dict[str, object] | None = None) -> bytes:
        counts = {
            "inputTokenCount": body["prompt_token_count"],
            "outputTokenCount": body["generation_token_count"],
        }
        metering = {name: count for name, count in counts.items() if count is not None}
        text = encode_json({"body": body, "metering": metering, "content_type": self.kind, **(more or {})})
        return text + b"\n" if self._streams else text
