"""Opens what makes tokens of a model's texts, and texts of its tokens: by transformers, without PyTorch.

Engines that compute in different ways share it. Whatever a broken or hostile file makes the library raise is
LOAD_FAILED.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import msgspec
import transformers

from trivium.codecs.vanishing_tokens import vanishing_token
from trivium.engines.hf.answers import TokenReading
from trivium.engines.hf.detokenizer import Decode
from trivium.engines.hf.folder import unfit
from trivium.engines.hf.gguf_model import GgufModel
from trivium.engines.hf.prompt_work import TokenizerSource, prompt_work
from trivium.engines.hf.prompts import PromptTokenizer
from trivium.engines.hf.requests import GenerationLimits
from trivium.engines.hf.texts import PromptReader
from trivium.engines.hf.token_length_policy import UNKNOWN, TokenLength, token_length
from trivium.engines.hf.token_names import TokenNames
from trivium.machine.helper_process import WorkOpener
from trivium.types.errors import Code, ServeError, named, said_by
from trivium.types.spec import ModelSpec

_LETTERS = ("a", "▁a", "Ġa", "e", "▁the", "1")


def open_tokenizer(spec: ModelSpec, source: TokenizerSource, gguf: GgufModel | None) -> Any:
    """Return the tokenizer of a model. LOAD_FAILED for one that the library cannot open."""
    try:
        return source.open() if gguf is None else gguf.tokenizer()
    except Exception as error:
        raise unopened(spec, "tokenizer", error) from error


def text_work(
    spec: ModelSpec, source: TokenizerSource, tokenizer: Any, limits: GenerationLimits
) -> tuple[TokenLength, WorkOpener]:
    """Return what is known of a tokenizer's texts, and what opens it elsewhere."""
    try:
        length = _length(tokenizer)
        return length, prompt_work(source, tokenizer, limits, length)
    except Exception as error:
        raise unopened(spec, "tokenizer for a process beside the worker", error) from error


def _length(tokenizer: Any) -> TokenLength:
    """Return what a tokenizer's document says of its tokens, where nothing but the document decides."""
    kind, known = type(tokenizer), transformers.PreTrainedTokenizerFast
    does_more = any(getattr(kind, name) is not getattr(known, name) for name in ("__call__", "_encode_plus"))
    if not issubclass(kind, known) or does_more or not kind.__module__.startswith("transformers."):
        return UNKNOWN
    backend = tokenizer.backend_tokenizer
    length = token_length(msgspec.json.decode(backend.to_str()))
    return length if vanishing_token(backend) is None else replace(length, may_be_dear=True)


def prompt_reader(
    spec: ModelSpec, tokenizer: PromptTokenizer, work: WorkOpener, slots: int, wake: Callable[[], None]
) -> PromptReader:
    """Return what reads prompts for a model, by a copy of its tokenizer. LOAD_FAILED for one that has no copy."""
    try:
        copied = deepcopy(tokenizer)
    except Exception as error:
        raise unopened(spec, "tokenizer for a thread beside the steps", error) from error
    return PromptReader(copied, work, slots, wake)


def token_reading(tokenizer: Any, ends: frozenset[int]) -> TokenReading:
    """Return what reads the tokens of a model whose texts end with these."""

    def decode(tokens: Any) -> str:
        return str(tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def decode_all(tokens: Any) -> str:
        return str(tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    special = frozenset(tokenizer.all_special_ids)
    added = getattr(tokenizer, "added_tokens_decoder", {})
    specials = special.union(number for number, token in added.items() if token.special)
    hidden = frozenset(one for one in specials if _said(decode, one) == "" and _said(decode_all, one))
    names = token_names(tokenizer, decode_all)
    return TokenReading(decode, decode_all, names, special, ends, hidden)


def token_names(tokenizer: Any, decode_all: Decode) -> TokenNames:
    """Return what names the tokens of a tokenizer."""

    def piece(token: int) -> str | None:
        found = tokenizer.convert_ids_to_tokens(token)
        return None if found is None else str(found)

    backend = getattr(tokenizer, "backend_tokenizer", None)
    decoder = "" if backend is None or backend.decoder is None else repr(backend.decoder)
    # found without encoding a text, which some tokenizers never end
    letters = (tokenizer.convert_tokens_to_ids(letter) for letter in _LETTERS)
    known = (one for one in letters if isinstance(one, int) and one != tokenizer.unk_token_id)
    anchor = next((one for one in known if (_said(decode_all, one) or "").strip()), None)
    return TokenNames(decode_all, piece, anchor, "ByteLevel" in decoder)


def _said(decode: Decode, token: int) -> str | None:
    """Return what one token says; None where the tokenizer cannot read it."""
    try:
        return decode([token])
    except BaseException:  # a panic of Rust is no Exception, and ends no load: requests are told of it
        return None


def unopened(spec: ModelSpec, what: str, error: Exception) -> ServeError:
    """Return the error of a part of a model that transformers cannot open."""
    if isinstance(error, MemoryError) or "out of memory" in str(error):
        return unfit(spec, f"there is not memory enough for its {what}: {said_by(error)}", Code.OUT_OF_MEMORY)
    text = f"{named(error)}".strip()
    return unfit(spec, f"transformers {transformers.__version__} cannot open its {what}: {text[:1000]}")
