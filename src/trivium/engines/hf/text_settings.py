"""Reads what a model's own files say of its texts: the tokens that end one, and how tokens are chosen by default.

The ends are all those that any of the files names: tuned models name theirs in one of them, and not always the same.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from trivium.codecs.gguf import TOKENS, GgufHead, ListLength
from trivium.engines.hf.chat_template import template_fault, template_of
from trivium.engines.hf.folder import CONFIG, Checkpoint, unfit
from trivium.engines.hf.tokenizer_size import beyond_embedding, highest_token
from trivium.files import open_file
from trivium.types.generation import Sampling
from trivium.types.spec import ModelSpec

GENERATION, TOKENIZER_CONFIG, TOKENIZER = "generation_config.json", "tokenizer_config.json", "tokenizer.json"
_MOST_BYTES = 2**27
_END = "eos_token_id"

_RANGES: Mapping[str, tuple[float, float]] = {
    "temperature": (0.0, 100.0),
    "top_k": (0, 2**31 - 1),
    "top_p": (1e-6, 1.0),
    "min_p": (0.0, 1.0),
    "typical_p": (1e-6, 1.0),
    "repetition_penalty": (0.01, 100.0),
}
_WITHOUT_EFFECT: Mapping[str, float] = {"temperature": 1, "top_p": 1, "typical_p": 1, "repetition_penalty": 1}


class TextChoices(Protocol):
    """The options of a model that decide about its texts, of whichever engine."""

    @property
    def generation_config(self) -> str:
        """Return `none` where the model's own sampling settings do not hold."""
        ...

    @property
    def eos_token_id(self) -> tuple[int, ...] | None:
        """Return the tokens that end a text, if the operator names them."""
        ...


@dataclass(frozen=True, slots=True)
class TextSettings:
    """Holds the tokens that end a text, each with where it was found, and the model's own `sampling` by field."""

    ends: Mapping[int, str] = field(default_factory=dict)
    is_chosen: bool = False  # whether the ends are the operator's, and nothing else counts
    sampling: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def with_ends(self, named: Mapping[str, object], vocabulary: int) -> frozenset[int]:
        """Return all ends: these, and those that the loaded parts name, unless they are chosen."""
        found = dict(self.ends)
        if not self.is_chosen:
            for origin, told in named.items():
                _add(found, told, origin, vocabulary)
        return frozenset(found)


def text_settings(spec: ModelSpec, files: Checkpoint, chosen: TextChoices, vocabulary: int) -> TextSettings:
    """Return what the files say. LOAD_FAILED for settings that cannot be read, and are not switched off."""
    has_sampling = chosen.generation_config != "none"
    generation = _generation(spec, files.folder / GENERATION, has_sampling)
    sampling, warnings = _sampling(generation) if has_sampling else ({}, ())
    if chosen.eos_token_id is not None:
        if beyond := [one for one in chosen.eos_token_id if one >= vocabulary]:
            raise unfit(spec, f"its parameter '{_END}' names token {beyond[0]}, and it has {vocabulary}.")
        ends = dict.fromkeys(chosen.eos_token_id, f"parameter '{_END}'")
        return TextSettings(ends, True, sampling, warnings)
    ends = {}
    _add(ends, generation.get(_END), f"{GENERATION} ({_END})", vocabulary)
    for told in (files.config, files.config.get("text_config")):
        if isinstance(told, Mapping):
            _add(ends, told.get(_END), f"{CONFIG} ({_END})", vocabulary)
    if not files.gguf:
        _add(ends, _tokenizer_end(files.folder), f"{TOKENIZER_CONFIG} (eos_token)", vocabulary)
    return TextSettings(ends, False, sampling, warnings)


def text_faults(files: Checkpoint, vocabulary: int, head: GgufHead | None) -> tuple[str, ...]:
    """Return a sentence for each thing that is wrong with a model's tokenizer and chat template, and ends no load."""
    if head is not None:
        tokens, text = head.metadata.get(TOKENS), head.metadata.get("tokenizer.chat_template")
        last = int(tokens) - 1 if isinstance(tokens, ListLength) else -1
        place, size = str(files.folder / files.gguf), f"{head.architecture}.vocab_size"
        fault = (
            template_fault(f"{place} (tokenizer.chat_template)", text, {}) if isinstance(text, str) else ""
        )
        return tuple(
            filter(None, (beyond_embedding(place, (last, f"number {last}"), vocabulary, size), fault))
        )
    try:
        told = _read(files.folder / TOKENIZER_CONFIG)
    except ValueError:
        told = {}
    place, template = template_of(files.folder, told)
    highest = highest_token(_content(files.folder / TOKENIZER))
    found = (
        beyond_embedding(str(files.folder / TOKENIZER), highest, vocabulary, f"{CONFIG}, vocab_size"),
        template_fault(place, template, told) if template else "",
    )
    return tuple(filter(None, found))


def completed(sampling: Sampling, own: Mapping[str, float]) -> Sampling:
    """Return a request's sampling with the model's own where the request says nothing. Whether tokens are drawn at all
    is the request's to say; a model's temperature of 0 means the likeliest one.
    """
    said: dict[str, Any] = {
        name: value
        for name, value in own.items()
        if name != "temperature" and getattr(sampling, name) is None
    }
    if sampling.samples and sampling.temperature is None and "temperature" in own:
        said |= {"temperature": own["temperature"]} if own["temperature"] else {"samples": False}
    return msgspec.structs.replace(sampling, **said) if said else sampling


def _add(found: dict[int, str], told: object, origin: str, vocabulary: int) -> None:
    for one in told if isinstance(told, list) else [told]:
        if type(one) is int and 0 <= one < vocabulary:
            found[one] = f"{found[one]}, {origin}" if one in found else origin


def _generation(spec: ModelSpec, path: Path, is_needed: bool) -> Mapping[str, object]:
    try:
        told = _read(path)
    except ValueError as error:
        if not is_needed:
            return {}
        raise unfit(
            spec, f"{path} {error}. Correct it, or set its parameter 'generation_config' to none."
        ) from error
    return told


def _read(path: Path) -> Mapping[str, object]:
    """Return the JSON object of a file; an empty one where there is no file. ValueError says what is wrong with it."""
    text = _content(path)
    if not text and not path.is_file():
        return {}
    if len(text) > _MOST_BYTES:
        raise ValueError(f"has more than {_MOST_BYTES} bytes")
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is no JSON: {error}") from error
    if not isinstance(told, dict):
        raise ValueError("holds no JSON object")
    return told


def _content(path: Path) -> bytes:
    """Return a file, or so much of it that it is seen to be too long; nothing where it cannot be read."""
    try:
        with open_file(path) as file:
            return file.read(_MOST_BYTES + 1)
    except OSError:
        return b""


def _sampling(generation: Mapping[str, object]) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return what is said of how tokens are chosen, and a sentence for each value that cannot be."""
    found: dict[str, float] = {}
    wrong: list[str] = []
    for name, (least, most) in _RANGES.items():
        told = generation.get(name)
        if told is None or told == _WITHOUT_EFFECT.get(name):
            continue
        is_number = isinstance(told, int | float) and not isinstance(told, bool) and math.isfinite(told)
        if not (is_number and least <= told <= most and (name != "top_k" or told == int(told))):  # type: ignore[operator, call-overload]
            expected = f"expected a number from {least:g} to {most:g}"
            wrong.append(f"{GENERATION} has '{name}' {str(told)[:80]!r}; {expected}, and it is not used.")
            continue
        found[name] = int(told) if name == "top_k" else float(told)  # type: ignore[call-overload, arg-type]
    return found, tuple(wrong)


def _tokenizer_end(folder: Path) -> int | None:
    """Return the id of the token that the tokenizer calls its end; None where its files do not say."""
    try:
        told = _read(folder / TOKENIZER_CONFIG)
        name = told.get("eos_token") or _read(folder / "special_tokens_map.json").get("eos_token")
        name = name.get("content") if isinstance(name, Mapping) else name
        if not isinstance(name, str):
            return None
        added = told.get("added_tokens_decoder")
        for number, token in added.items() if isinstance(added, Mapping) else ():
            if isinstance(token, Mapping) and token.get("content") == name and number.isdecimal():
                return int(number)
        return next(_numbers(_read(folder / TOKENIZER), name), None)
    except ValueError:
        return None  # whoever opens the tokenizer says what is wrong with it


def _numbers(document: Mapping[str, object], name: str) -> Iterator[int]:
    added = document.get("added_tokens")
    for token in added if isinstance(added, list) else ():
        if isinstance(token, Mapping) and token.get("content") == name and type(token.get("id")) is int:
            yield token["id"]
    model = document.get("model")
    vocabulary = model.get("vocab") if isinstance(model, Mapping) else None
    if isinstance(vocabulary, Mapping) and type(vocabulary.get(name)) is int:
        yield vocabulary[name]
