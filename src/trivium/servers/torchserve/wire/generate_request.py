"""Reads a request of the LLM-API: `text` or `inputs_embeds`, and how to choose tokens, in a form or as JSON.

Source: spec sheet `torchserve`, section 10. The values of a form are text; of a field that comes again the last counts.
The inputs of a gRPC message are such fields. A single one that is called data or body, as handlers know it, is JSON.
Parameters have the names of Hugging Face's `generate`; those that are not served are refused by name.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from trivium.codecs.generation import read_embeddings
from trivium.codecs.json_groups import Unbalanced, has_many_values
from trivium.codecs.request_fields import RequestFields, field_error
from trivium.codecs.sampling_fields import COMMON_NAMES, HIDES_SPECIAL, Said, read_sampling, sampling_of
from trivium.codecs.v2_bodies import MOST_VALUES
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Generate
from trivium.types.payload import Raw

TEXT, EMBEDS = "text", "inputs_embeds"
_WHOLE_BODY = ("", "data", "body")
NEW_TOKENS = 2048
"""Tokens of an answer of which neither the request nor the model says how many."""

SAMPLING: Mapping[str, str] = {
    "do_sample": "samples",
    **COMMON_NAMES,
    "max_new_tokens": "max_tokens",
    "min_new_tokens": "min_tokens",
    "ignore_eos": "ignores_eos",
    "stop_strings": "stop",
    "stop": "stop",
    "stop_token_ids": "stop_ids",
    "skip_special_tokens": HIDES_SPECIAL,
    "truncate": "truncate",
    "logits_processor": "processor",
}
_STATIC = "Leave it out: beams need static batching."
REFUSED: Mapping[str, tuple[str, tuple[object, ...]]] = {
    "num_beams": (_STATIC, (1,)),
    "num_beam_groups": (_STATIC, (1,)),
    "diversity_penalty": (_STATIC, (0, 0.0)),
    "length_penalty": (_STATIC, (1, 1.0)),
    "early_stopping": (_STATIC, (False,)),
    "max_length": ("Send max_new_tokens.", ()),
    "min_length": ("Send min_new_tokens.", (0,)),
    "max_time": ("Leave it out.", ()),
    "num_return_sequences": ("One text is answered; send several requests.", (1,)),
    "no_repeat_ngram_size": ("Send repetition_penalty.", (0,)),
    "encoder_no_repeat_ngram_size": ("Leave it out.", (0,)),
    "bad_words_ids": ("Send logit_bias.", ()),
    "eos_token_id": ("Send stop_token_ids.", ()),
    "penalty_alpha": ("Leave it out.", ()),
    "epsilon_cutoff": ("Send min_p.", (0, 0.0)),
    "eta_cutoff": ("Send min_p.", (0, 0.0)),
    "use_cache": ("Leave it out.", (True,)),
}
MOST_BYTES = 2**26
"""Bytes of a request in JSON, of which one call passes over the embeddings."""

_read_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def read_request(raw: Raw, parameters: Mapping[str, str], streams: bool = True) -> Generate:
    """Return what is asked for of a model that has these parameters. INVALID, naming the field."""
    given, as_text = _given(raw)
    embeds = given.pop(EMBEDS, None)
    fields = RequestFields(given, as_text=as_text)
    fields.take("model_name")  # by which /invocations finds the model
    text = fields.text(TEXT)
    said = read_sampling(fields, SAMPLING)
    for name, (way_out, neutral) in REFUSED.items():
        fields.refuse(name, way_out, *neutral)
    fields.refuse_others((TEXT, EMBEDS, *SAMPLING, *REFUSED))
    sampling = sampling_of(_filled(said, parameters), fields, SAMPLING)
    if embeds is not None and text is None:
        return Generate(embeds=read_embeddings(embeds, EMBEDS, ""), sampling=sampling, streams=streams)
    if text is None or embeds is not None:
        raise field_error(TEXT, f"Exactly one of '{TEXT}' and '{EMBEDS}' is needed. Send one of them.")
    return Generate((text,), sampling=sampling, streams=streams)


def _given(raw: Raw) -> tuple[dict[str, Any], bool]:
    """Return the fields of the request, and whether their values are text. Embeddings stay the JSON that they are."""
    parts = raw.parts
    if len(parts) == 1 and parts[0].name in _WHOLE_BODY:
        return _members(parts[0].data), False
    found: dict[str, Any] = {}
    for part in parts:
        if part.name == EMBEDS:
            found[EMBEDS] = part.data
            continue
        try:
            found[part.name] = str(part.data, "utf-8")
        except UnicodeDecodeError as error:
            name = part.name[:80]
            raise field_error(name, f"The field {name!r} is not UTF-8. Send text.") from error
    return found, True


def _members(data: bytes | memoryview) -> dict[str, Any]:
    if len(data) > MOST_BYTES:
        words = f"The JSON of the request has {len(data)} bytes; at most {MOST_BYTES} are read. Send a form."
        raise ServeError(Code.INVALID, words)
    try:
        members = _read_members(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        words = f"The request is no JSON object ({error}). Send one with '{TEXT}', or a form."
        raise ServeError(Code.INVALID, words) from error
    return {
        name: memoryview(value) if name == EMBEDS else _value(name[:80], bytes(value))
        for name, value in members.items()
        if bytes(value) != b"null"
    }


def _value(name: str, text: bytes) -> Any:
    try:
        if len(text) > MOST_VALUES and has_many_values(text, MOST_VALUES):
            raise field_error(name, f"The field {name!r} has more than {MOST_VALUES} values. Send fewer.")
        return msgspec.json.decode(text)
    except (Unbalanced, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise field_error(name, f"The field {name!r} is no JSON ({error}). Correct it.") from error


def _filled(said: Said, parameters: Mapping[str, str]) -> Said:
    """Fill in what the model or the LLM-API says of tokens; a temperature is a wish to sample."""
    own = parameters.get("max_new_tokens", "")
    most = int(own) if own.isascii() and own.isdigit() and len(own) < 10 and int(own) else NEW_TOKENS
    samples = said.get("samples")
    if samples is None:
        samples = said.get("temperature", 0) > 0
    return {"max_tokens": max(most, said.get("min_tokens", 0)), **said, "samples": samples}
