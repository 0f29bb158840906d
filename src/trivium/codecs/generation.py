"""Requests to generate as named tensors or fields, and what is generated as tensors.

Source: the names and defaults of Triton's vLLM backend: `text_input`, `stream`, `sampling_parameters` and
`exclude_input_in_output` in, `text_output` out; with `input_ids` and `inputs_embeds` in place of the text. What
`sampling_parameters` holds as JSON may also be sent as parameters.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from trivium.codecs import binary
from trivium.codecs.binding import Wanted
from trivium.codecs.generation_errors import wire_names
from trivium.codecs.generation_outputs import ASKED, ASKS, NEED_SCORES, SUM, TELLS, further_outputs
from trivium.codecs.json_documents import read as read_document
from trivium.codecs.near_names import near
from trivium.codecs.request_fields import RequestFields, field_error, unknown_field
from trivium.codecs.sampling_fields import (
    COMMON_NAMES,
    HIDES_SPECIAL,
    REPORTED,
    Said,
    judge_others,
    read_sampling,
    sampling_of,
)
from trivium.codecs.v2_bodies import decode_members
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Embeddings, Finish, Generate, Generated, Sampling
from trivium.types.ignored_fields import IgnoredFields
from trivium.types.payload import Payload, Raw, RawForm, Scalar, Tensor, Tensors
from trivium.types.spec import TensorSpec

TEXT, IDS, EMBEDS = "text_input", "input_ids", "inputs_embeds"
STREAM, SAMPLING, EXCLUDES = "stream", "sampling_parameters", "exclude_input_in_output"
ADAPTER = "lora_name"
"""What Triton's vLLM backend calls the adapter of a request, among its sampling parameters."""
MOST_PROMPTS = 2048
"""Prompts of one request."""

MOST_AT_ONCE = 64
"""Tokens that are written one by one while others wait."""

INPUTS = (
    TensorSpec(TEXT, DataType.BYTES, (1,), optional=True),
    TensorSpec(STREAM, DataType.BOOL, (1,), optional=True),
    TensorSpec(SAMPLING, DataType.BYTES, (1,), optional=True),
    TensorSpec(EXCLUDES, DataType.BOOL, (1,), optional=True),
    TensorSpec(IDS, DataType.INT64, (-1,), optional=True),
    TensorSpec(EMBEDS, DataType.FP32, (-1, -1), optional=True),
    *ASKS,
)
OUTPUTS = (TensorSpec("text_output", DataType.BYTES, (-1,)), *TELLS)
"""What a model that generates says of itself to clients that send tensors."""

NAMES: Mapping[str, str] = {
    **COMMON_NAMES,
    "max_tokens": "max_tokens",
    "min_tokens": "min_tokens",
    "ignore_eos": "ignores_eos",
    "stop": "stop",
    "stop_token_ids": "stop_ids",
    "include_stop_str_in_output": "keeps_stop",
    "n": "choices",
    "best_of": "best_of",
    "skip_special_tokens": HIDES_SPECIAL,
    "logits_processor": "processor",
    "truncate_prompt_tokens": "truncate",
    "logprobs": "logprobs",
}
WIRE_NAMES = wire_names(NAMES, prompt=TEXT, prompts=TEXT)
"""What a generate request calls its fields, by neutral name."""

_REFUSED: Mapping[str, tuple[str, tuple[object, ...]]] = {
    "use_beam_search": ("Leave it out, or serve the model with static batching.", (False,)),
    "length_penalty": ("It belongs to beam search; leave it out.", (1, 1.0)),
    "early_stopping": ("It belongs to beam search; leave it out.", (False,)),
    "prompt_logprobs": ("Leave it out.", (0,)),
    "detokenize": ("Text is what is answered; leave it out.", (True,)),
    "spaces_between_special_tokens": ("Leave it out.", (True,)),
    "bad_words": ("Use 'logit_bias' against single tokens.", ([],)),
    "allowed_token_ids": ("Use 'logit_bias'.", ()),
    "guided_decoding": ("Say in the prompt which form you want.", ()),
    "structured_outputs": ("Say in the prompt which form you want.", ()),
}
_MAX_TOKENS = 16
_OWN = (TEXT, IDS, EMBEDS, STREAM, SAMPLING, EXCLUDES, *ASKED)
_KNOWN = (*_OWN, ADAPTER, *NAMES, *_REFUSED)


def to_generate(
    payload: Tensors | Raw, parameters: Mapping[str, Scalar], model: str, ignored: IgnoredFields | None = None
) -> tuple[Generate, Mapping[str, Scalar]]:
    """Return what is asked for, and the parameters that are left. Fields of a body without effect are `ignored`, or
    else refused. INVALID for what is no request to generate: the error names the field.
    """
    if isinstance(payload, Raw):
        if payload.form is not RawForm.FIELDS:
            raise ServeError(
                Code.UNSUPPORTED_MEDIA,
                f"Model '{model}' generates text, and cannot tell what this body is. Send '{TEXT}' as a tensor or to "
                f"the model's route generate.",
            )
        given, rest = _members(payload, parameters)
        is_strict = True
    else:
        given, rest = dict(_values(payload, model)), {}
        beside = {key: value for key, value in parameters.items() if key in _KNOWN}
        if twice := next((key for key in beside if key in given), None):
            raise field_error(twice, f"The field '{twice}' is both an input and a parameter. Send it once.")
        given |= beside
        rest = {key: value for key, value in parameters.items() if key not in _KNOWN}
        is_strict, ignored = False, None
    fields = RequestFields(given, as_text=True, ignored=ignored)
    return _generate(fields, model, is_strict, rest), rest


def _members(raw: Raw, parameters: Mapping[str, Scalar]) -> tuple[dict[str, Any], dict[str, Scalar]]:
    """Return the fields of a generate request, and the parameters that came otherwise."""
    fields, repeated = decode_members(raw.parts[0].data, "generate request")
    if repeated:
        name = min(repeated)
        raise field_error(
            name[:80], f"The generate request has the field {name[:80]!r} more than once. Send it once."
        )
    fields.pop("id", None)
    nested = fields.pop("parameters", {})
    words = {"priority", "timeout", "sequence_id", "sequence_start", "sequence_end", "binary_data_output"}
    nested = {key: value for key, value in nested.items() if key not in words}
    for key in nested:
        if key in fields:
            raise field_error(key[:80], f"The field {key[:80]!r} stands in 'parameters', too. Send it once.")
    rest = {key: value for key, value in parameters.items() if key not in fields and key not in nested}
    rest.pop("id", None)
    return {**fields, **nested}, rest


def _values(tensors: Tensors, model: str) -> Iterator[tuple[str, Any]]:
    for tensor in tensors.items:
        name = tensor.name
        if name not in _OWN:
            takes = ", ".join(_OWN)
            raise field_error(
                name, f"Model '{model}' generates text and has no input {name!r}. It takes {takes}."
            )
        if name in (EMBEDS, IDS):
            yield name, tensor
        elif name == TEXT:
            yield name, [_text(one, name) for one in tensor.array.ravel().tolist()]
        else:
            elements = tensor.array.ravel().tolist()
            if len(elements) != 1:
                raise field_error(name, f"The input '{name}' has {len(elements)} elements. Send one.")
            yield name, _text(elements[0], name) if name == SAMPLING else elements[0]


def _text(element: object, name: str) -> str:
    if not isinstance(element, bytes):
        raise field_error(name, f"The input '{name}' is no text. Send it as BYTES.")
    try:
        return element.decode()
    except UnicodeDecodeError as error:
        raise field_error(name, f"The input '{name}' is not UTF-8 ({error}). Send text.") from error


def _generate(fields: RequestFields, model: str, is_strict: bool, rest: Mapping[str, Scalar]) -> Generate:
    streams = fields.flag(STREAM) or False
    excludes = fields.flag(EXCLUDES)
    if streams and excludes is False:
        raise fields.contradiction(
            EXCLUDES, "a streamed answer has no prompt in front of it. Send true, or nothing."
        )
    prompts, ids, embeds = _prompts(fields), _ids(fields), _embeds(fields, model)
    if (prompts is not None) + (ids is not None) + (embeds is not None) != 1:
        raise field_error(
            TEXT, f"Exactly one of '{TEXT}', '{IDS}' and '{EMBEDS}' is needed. Send one of them."
        )
    asked = tuple(output for name, output in ASKED.items() if fields.flag(name))
    if streams and SUM in asked:
        raise fields.contradiction(
            f"return_{SUM}", "a sum is known with the whole answer. Ask for it without 'stream'."
        )
    sampling, adapter = _sampling(fields, is_strict)
    if NEED_SCORES.intersection(asked) and sampling.logprobs is None:
        sampling = msgspec.structs.replace(sampling, logprobs=0)
    if not is_strict:
        for name in rest:
            if near(name, NAMES, 0.75):
                raise unknown_field("", name, _KNOWN)
    echoes = prompts is not None and not streams and not excludes
    return Generate(
        *(prompts, None, ids, embeds, sampling, streams, echoes),
        adapter=adapter,
        counts_parts=bool(asked),
        outputs=asked,
    )


def _sampling(fields: RequestFields, is_strict: bool) -> tuple[Sampling, str]:
    """Return what the parameters say, and the JSON in `sampling_parameters`, which may not contradict them; and the
    adapter that one of them names.
    """
    packed = fields.take(SAMPLING)
    adapter = fields.text(ADAPTER) or ""
    said = _said(fields)
    if is_strict:
        fields.refuse_others(_KNOWN)
    if packed is not None:
        inner = RequestFields(_object(packed, fields), f"{SAMPLING}.", as_text=True, ignored=fields.ignored)
        for attribute, value in _said(inner).items():
            if said.setdefault(attribute, value) != value:
                name = next(name for name, own in NAMES.items() if own in (attribute, HIDES_SPECIAL))
                raise inner.contradiction(
                    name, "a parameter says the same thing with another value. Send one."
                )
        if (named := inner.text(ADAPTER) or adapter) != adapter and adapter:
            raise inner.contradiction(ADAPTER, "a parameter names another one. Send one.")
        adapter = named
        inner.refuse_others((ADAPTER, *NAMES, *_REFUSED))
    return sampling_of(_filled(said), fields, NAMES), adapter


def _filled(said: Said) -> Said:
    """Fill in the defaults: tokens are drawn, by a temperature of 1 unless the model has one of its own; a minimum of
    tokens above the default maximum is that as well.
    """
    filled: Said = {"max_tokens": max(said.get("min_tokens", 0), _MAX_TOKENS)}
    return (filled if "temperature" in said else {**filled, "samples": True}) | said


def _said(fields: RequestFields) -> Said:
    said = read_sampling(fields, NAMES)
    judge_others(fields, _REFUSED, REPORTED)
    return said


def _object(packed: object, fields: RequestFields) -> dict[str, Any]:
    if isinstance(packed, str):
        try:
            packed = msgspec.json.decode(packed) if packed.strip() else {}
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise field_error(
                SAMPLING, f"The field '{SAMPLING}' is no JSON: {error}. Send an object."
            ) from error
    if not isinstance(packed, dict):
        raise fields.unfit(SAMPLING, packed, "a JSON object, as text")
    return packed


def _prompts(fields: RequestFields) -> tuple[str, ...] | None:
    if TEXT not in fields:
        return None
    value = fields.take(TEXT)
    found = value if isinstance(value, list) else [value]
    if not 0 < len(found) <= MOST_PROMPTS or not all(isinstance(one, str) for one in found):
        raise fields.unfit(TEXT, value, f"a text, or a list of at most {MOST_PROMPTS} texts")
    return tuple(found)


def _ids(fields: RequestFields) -> tuple[tuple[int, ...], ...] | None:
    if IDS not in fields:
        return None
    value = fields.take(IDS)
    expected = "ids of tokens, a list for a prompt"
    if isinstance(value, Tensor):
        if value.datatype.dtype.kind not in "iu" or not 1 <= len(value.shape) <= 2:
            raise field_error(
                IDS, f"The input '{IDS}' is {value.datatype.wire}{list(value.shape)}; expected is INT64."
            )
        value = value.array.tolist()
    rows = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    return checked_ids(rows, IDS, expected)


def checked_ids(rows: Any, field: str, expected: str) -> tuple[tuple[int, ...], ...]:
    """Return lists of ids as tuples. INVALID, naming the field, for what is none."""
    are_lists = isinstance(rows, list) and 0 < len(rows) <= MOST_PROMPTS
    if (
        are_lists
        and all(isinstance(row, list) and row and set(map(type, row)) == {int} for row in rows)
        and all(min(row) >= 0 and max(row) < 2**31 for row in rows)
    ):
        return tuple(map(tuple, rows))
    raise field_error(field, f"The field '{field}' is none of what was expected: {expected}. Correct it.")


def _embeds(fields: RequestFields, model: str) -> Embeddings | None:
    if EMBEDS not in fields:
        return None
    value = fields.take(EMBEDS)
    if not isinstance(value, Tensor):
        try:
            value = msgspec.json.encode(value) if not isinstance(value, str) else value.encode()
        except UnicodeEncodeError as error:
            raise field_error(EMBEDS, f"The field '{EMBEDS}' is no JSON. Send lists of numbers.") from error
        return read_embeddings(value, EMBEDS, model)
    return _embeddings(value, EMBEDS)


def read_embeddings(text: bytes | memoryview, field: str, model: str) -> Embeddings:
    """Return a prompt of embeddings from its JSON: a list of rows. INVALID, naming the field."""
    wanted = Wanted(model, (TensorSpec(field, DataType.FP32, (-1, -1)),))
    try:
        tensors = read_document(text, wanted)
    except ServeError as error:
        raise field_error(field, f"The field '{field}' cannot be read: {error.message}") from error
    if not tensors:
        raise field_error(field, f"The field '{field}' is no list of rows of numbers. Send one.")
    return _embeddings(tensors[0], field)


def _embeddings(tensor: Tensor, field: str) -> Embeddings:
    shape = tensor.shape[1:] if len(tensor.shape) == 3 and tensor.shape[0] == 1 else tensor.shape
    if tensor.datatype is not DataType.FP32 or len(shape) != 2 or not all(shape):
        found = f"{tensor.datatype.wire}{list(tensor.shape)}"
        raise field_error(
            field, f"The field '{field}' is {found}; expected is FP32[tokens, width]. Correct it."
        )
    return Embeddings(shape[0], shape[1], binary.encode(tensor))


def generated_of(payload: Payload | None) -> Generated:
    """Return what is generated by a part of an answer to a request to generate, whose last part may have no payload.
    Raises why a sequence of it has failed.
    """
    part = payload or Generated()
    assert isinstance(part, Generated), "a request to generate is answered by what is generated"
    for choice in part.choices:
        if choice.finish is Finish.ERROR:
            raise ServeError(Code.MODEL_FAILED, choice.error or "The model could not go on with the text.")
    return part


def is_slow_to_tell(payload: object) -> bool:
    """Would writing the tokens of an answer one by one keep others waiting?"""
    return type(payload) is Generated and any(len(each.tokens) > MOST_AT_ONCE for each in payload.choices)


def as_tensors(part: Generated, asked: Sequence[str] = ()) -> Tensors:
    """One part of an answer: the text of each sequence that goes on in it, in order; an empty one where none does; and
    the further outputs that were asked for. MODEL_FAILED where one has failed.
    """
    generated_of(part)
    choices = sorted(part.choices, key=lambda choice: choice.index)
    texts = np.array([choice.text.encode() for choice in choices] or [b""], dtype=object)
    text = Tensor("text_output", DataType.BYTES, texts.shape, texts)
    return Tensors((text, *further_outputs(part, choices, asked)) if asked else (text,))
