"""Texts for tokenizers of every kind: what is refused unread is really longer than the context,
and nothing is cut."""

import json
import random
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tests.fuzz.target import Change, Target
from tokenizers import Tokenizer, pre_tokenizers

from trivium.codecs.text_bounds import byte_size
from trivium.codecs.vanishing_tokens import vanishing_token
from trivium.engines.hf.prompts import PromptTokenizer
from trivium.engines.hf.requests import GenerationLimits
from trivium.engines.hf.token_length_policy import TokenLength, token_length
from trivium.types.errors import ServeError
from trivium.types.generation import Generate

VARIANTS, KEPT = 1000, 50
CONTEXTS = (2, 3, 8, 100)

CORPUS = (
    b"hello world",
    b"the the the the the",
    "a\u0301\u1fbe\u212b \u1112\u1161\u11ab e\u0302\u0323".encode(),
    "\U0001f600 \u4f60\u597d <s> <mask> [UNK]".encode(),
    b"  \t\n    x\r\n",
    b"12345 67890",
    b"ab" * 200,
)
TOKENS = (
    b"the", b" the", b"    ", b" ", b"\n", b"<s>", b"<mask>", b"  <mask>  ", b"<|a long token that is added|>",
    b"[UNK]", b"<0x41>",
    "\u2581".encode(), "\u0301".encode(), "\u1fbe".encode(), "\u212b".encode(), "\ufb01".encode(), "\u0120".encode(),
    "\u1112\u1161\u11ab".encode(), "\u03c9\u0314\u0342\u0345".encode(), b"xxxxxxxx", b"aaaaaaaaaaaaaaaa", b"\0",
    b"\xff", b"\xed\xa0\x80",
    "\U0001f468\u200d\U0001f469".encode(), b"," * 30, b"0" * 30,
)  # fmt: skip
WORDS = ("the", "he", "th", "aa", "aaaa", "aaaaaaaa", "xx", "xxxx", "12", "ab", "abab")

Document = dict[str, Any]


def _merged(vocabulary: dict[str, int], chance: random.Random, mark: str) -> list[list[str]]:
    """Merges of letters into some words, and what they make."""
    merges: list[list[str]] = []
    for word in chance.sample(WORDS, chance.randrange(len(WORDS))):
        for whole in (word, mark + word) if chance.random() < 0.5 else (word,):
            made = whole[0]
            for letter in whole[1:]:
                if made not in vocabulary or letter not in vocabulary:
                    break
                if made + letter not in vocabulary:
                    vocabulary[made + letter] = len(vocabulary)
                    merges.append([made, letter])
                made += letter
    return merges


def _bytes_bpe(chance: random.Random) -> Document:
    vocabulary = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    if chance.random() < 0.1:
        vocabulary.pop(chance.choice(list(vocabulary)))
    merges = _merged(vocabulary, chance, "\u0120")
    cut = {
        "type": "ByteLevel",
        "add_prefix_space": chance.random() < 0.5,
        "trim_offsets": True,
        "use_regex": True,
    }
    as_normalizer = chance.random() < 0.2
    return {
        "model": {
            "type": "BPE",
            "vocab": vocabulary,
            "merges": merges,
            "ignore_merges": chance.random() < 0.3,
        },
        "normalizer": {"type": "ByteLevel"} if as_normalizer else None,
        "pre_tokenizer": None if as_normalizer and chance.random() < 0.8 else cut,
    }


def _pieces_bpe(chance: random.Random) -> Document:
    """As models made by SentencePiece are, by pairs, with bytes for what has no piece."""
    vocabulary = {"<unk>": 0} | {f"<0x{byte:02X}>": byte + 1 for byte in range(256)}
    if chance.random() < 0.1:
        vocabulary.pop("<0x41>")
    for letter in "\u2581abehtx12":
        vocabulary.setdefault(letter, len(vocabulary))
    merges = _merged(vocabulary, chance, "\u2581")
    model = {
        "type": "BPE",
        "vocab": vocabulary,
        "merges": merges,
        "unk_token": "<unk>",
        "fuse_unk": chance.random() < 0.5,
    }
    model["byte_fallback"] = chance.random() < 0.9
    scheme = chance.choice(("always", "first", "never"))
    metaspace = {
        "type": "Metaspace",
        "replacement": "\u2581",
        "prepend_scheme": scheme,
        "split": chance.random() < 0.5,
    }
    marks = [{"type": "Prepend", "prepend": "\u2581"}, _replace(" ", "\u2581")]
    if chance.random() < 0.5:
        return {
            "model": model,
            "normalizer": {"type": "Sequence", "normalizers": marks},
            "pre_tokenizer": None,
        }
    return {"model": model, "normalizer": None, "pre_tokenizer": metaspace}


def _unigram(chance: random.Random) -> Document:
    vocabulary = [["<unk>", 0.0], *((word, -float(len(word))) for word in ("\u2581", *WORDS, *"abehtx12"))]
    vocabulary += [(f"<0x{byte:02X}>", -20.0) for byte in range(256)]
    model = {"type": "Unigram", "vocab": vocabulary, "unk_id": 0, "byte_fallback": chance.random() < 0.5}
    cut = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    return {"model": model, "normalizer": None, "pre_tokenizer": cut}


def _word_piece(chance: random.Random) -> Document:
    words = ["[UNK]", *WORDS, *"abehtx12", *(f"##{word}" for word in (*WORDS, *"abehtx12"))]
    model = {
        "type": "WordPiece", "vocab": {word: number for number, word in enumerate(words)}, "unk_token": "[UNK]",
        "continuing_subword_prefix": "##", "max_input_chars_per_word": chance.choice((5, 100)),
    }  # fmt: skip
    cut = {"type": chance.choice(("BertPreTokenizer", "Whitespace"))}
    return {"model": model, "normalizer": None, "pre_tokenizer": cut}


def _word_level(chance: random.Random) -> Document:
    vocabulary = {word: number for number, word in enumerate(("<unk>", *WORDS))}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"}
    return {"model": model, "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"}}


MAKERS = (_bytes_bpe, _pieces_bpe, _unigram, _word_piece, _word_level)


def _replace(found: str, content: str) -> Document:
    return {"type": "Replace", "pattern": {"String": found}, "content": content}


def _split(behavior: str, pattern: Mapping[str, str]) -> Document:
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": False}


NORMALIZERS: tuple[Document, ...] = (
    {"type": "NFC"}, {"type": "NFC"}, {"type": "NFKC"}, {"type": "NFD"}, {"type": "Lowercase"},
    {"type": "StripAccents"},
    {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Prepend", "prepend": "x"},
    {"type": "ByteLevel"},
    _replace("a", "xxxxxxxx"), _replace("x", "a"), _replace("aa", "a"), _replace(" ", "\u2581"), _replace("h",
    "\u20ac"),
    _replace("\u0120", "\u20ac"),
)  # fmt: skip
CUTTERS: tuple[Document, ...] = (
    {"type": "Digits", "individual_digits": True}, {"type": "Whitespace"}, {"type": "WhitespaceSplit"},
    {"type": "UnicodeScripts"},
    {"type": "Punctuation", "behavior": "Isolated"}, {"type": "Punctuation", "behavior": "Removed"},
    {"type": "CharDelimiterSplit", "delimiter": "a"},
    {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never", "split": True},
    {"type": "Metaspace", "replacement": "a", "prepend_scheme": "first", "split": False},
    {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
    *(_split(behavior, {"String": " "}) for behavior in ("Isolated", "Removed", "MergedWithPrevious", "Contiguous")),
    _split("MergedWithNext", {"Regex": "\\p{N}+"}), _split("Isolated", {"Regex": ".*"}), _split("Removed",
    {"Regex": "x+"}),
)  # fmt: skip
ADDED = ("<s>", "<mask>", "<|a long token that is added|>", "a", " ", "the", "\u212b")


def document_of(kind: int, variant: int) -> Document:
    """A tokenizer's document; it follows from the two numbers."""
    chance = random.Random(f"{kind} {variant}")
    made = MAKERS[kind](chance)
    normalizers = [made["normalizer"]] if made["normalizer"] else []
    cutters = [made["pre_tokenizer"]] if made["pre_tokenizer"] else []
    for parts, choices in ((normalizers, NORMALIZERS), (cutters, CUTTERS)):
        for _ in range(chance.choice((0, 0, 1, 1, 2))):
            parts.insert(chance.randrange(len(parts) + 1), chance.choice(choices))
    made["normalizer"] = {"type": "Sequence", "normalizers": normalizers} if normalizers else None
    made["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": cutters} if cutters else None
    names = chance.sample(ADDED, chance.choice((0, 0, 1, 3)))
    made["added_tokens"] = [
        {
            "id": 1000 + number, "content": name, "single_word": chance.random() < 0.2,
            "lstrip": chance.random() < 0.1,
            "rstrip": chance.random() < 0.1, "normalized": chance.random() < 0.5, "special": chance.random() < 0.5,
        }
        for number, name in enumerate(names)
    ]  # fmt: skip
    return made


@lru_cache(KEPT)
def tokenizer_of(kind: int, variant: int) -> tuple[Tokenizer, TokenLength]:
    """A tokenizer, and what its own document says of it."""
    tokenizer = Tokenizer.from_str(json.dumps({"version": "1.0", **document_of(kind, variant)}))
    if hasattr(tokenizer.model, "_resize_cache"):
        tokenizer.model._resize_cache(0)  # of words: with many tokenizers it is what grows
    return tokenizer, token_length(json.loads(tokenizer.to_str()))


class _Called:
    """A tokenizer as `transformers` has them, as far as prompts need it."""

    bos_token_id = None
    chat_template = None

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def apply_chat_template(self, messages: object) -> str:
        raise NotImplementedError

    def __call__(self, text: str, add_special_tokens: bool) -> dict[str, list[int]]:
        return {"input_ids": self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids}


def read(data: bytes, chance: random.Random) -> None:
    """A text is refused unread only where it is too long, and all its tokens come where it is not."""
    text = data.decode("utf-8", "replace")
    kind, variant = chance.choice((0, 0, 1, 1, 2, 3, 4)), chance.randrange(VARIANTS)
    tokenizer, length = tokenizer_of(kind, variant)
    if vanishing_token(tokenizer) is not None:
        return  # such texts are tokenized where that can be ended
    if kind > 1:
        assert length.most_bytes is None, "nothing bounds what its tokens stand for"
    context = chance.choice(CONTEXTS)
    limits = GenerationLimits("m", context, 2000, 1)
    prompts = PromptTokenizer(_Called(tokenizer), limits, length)
    try:
        ids = tokenizer.encode(text, add_special_tokens=True).ids
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        prompts.prompts(Generate(prompts=(text,)))
        raise AssertionError("the tokenizer panicked, and the prompt was read") from None
    most = length.most_bytes
    assert most is None or byte_size(text) <= most * len(ids), (
        f"{len(ids)} tokens of {most} bytes at most stand for {byte_size(text)} bytes (kind {kind}, variant {variant})"
    )
    generate = Generate(prompts=(text,))
    try:
        prompts.judge(generate)
    except ServeError:
        assert len(ids) >= context, f"it was refused unread, and has {len(ids)} tokens of {context}"
        raise
    if len(ids) < context and ids:
        (prompt,) = prompts.prompts(generate)
        assert list(prompt.ids) == ids, "it was cut"


def rebuilt(entry: bytes, change: Change, chance: random.Random) -> bytes:
    """What a few letters make, over and over: texts that tokenizers shorten."""
    made = b"".join(chance.choice((*TOKENS, entry[:3])) * chance.choice((1, 1, 2, 9, 60)) for _ in range(3))
    return change(made) if chance.random() < 0.3 else made


TARGETS = (Target("token_length", CORPUS, read, tokens=TOKENS, rebuild=rebuilt, most=2**11),)
