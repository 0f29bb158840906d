"""How many bytes a token can stand for: known for tokenizers that keep every byte, and for no other."""

import json
import random
import unicodedata
from copy import deepcopy
from functools import cache

import pytest

from trivium.engines.hf.token_length_policy import MOST_SHRINKING, UNKNOWN, TokenLength, token_length

FALLBACK = {f"<0x{byte:02X}>": byte for byte in range(256)} | {"▁the": 300, "▁▁▁▁": 301}


def letters():
    tokenizers = pytest.importorskip("tokenizers")
    return {letter: number for number, letter in enumerate(tokenizers.pre_tokenizers.ByteLevel.alphabet())}


def byte_level(**others):
    model = {"type": "BPE", "vocab": letters() | {"Ġword": 300}, "merges": []}
    return {"model": model, "pre_tokenizer": BYTE_LEVEL, **others}


def fallback(**others):
    model = {"type": "BPE", "byte_fallback": True, "unk_token": "<unk>", "vocab": FALLBACK, "merges": []}
    return {"model": model, "normalizer": MARKS, **others}


def sequence(name, *parts):
    return {"type": "Sequence", name: list(parts)}


def replace(pattern, content):
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


def added(content, **others):
    return [{"id": 400, "content": content, "lstrip": False, "rstrip": False, **others}]


def split(behavior, pattern=None):
    return {"type": "Split", "pattern": pattern or {"String": " "}, "behavior": behavior, "invert": False}


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
AS_BYTES = {"type": "ByteLevel"}
MARKS = sequence("normalizers", {"type": "Prepend", "prepend": "▁"}, replace(" ", "▁"))
PATTERN = {"Regex": r"\p{N}{1,3}| ?\p{L}+"}
CUT = sequence("pretokenizers", split("Isolated", PATTERN), BYTE_LEVEL)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (byte_level(), TokenLength(5, False)),
        (byte_level(normalizer={"type": "NFC"}), TokenLength(5 * MOST_SHRINKING, False)),
        (byte_level(added_tokens=added("<|assistant|>")), TokenLength(13, False)),
        (byte_level(pre_tokenizer=CUT), TokenLength(5, True)),
        (
            byte_level(added_tokens=added("ab", normalized=True), normalizer=replace("a", "xxxx")),
            TokenLength(5, False),
        ),
        (
            byte_level(added_tokens=added("aab", normalized=True), normalizer=replace("a", "xxxx")),
            TokenLength(9, False),
        ),
        (byte_level(added_tokens=added("aab"), normalizer=replace("a", "xxxx")), TokenLength(5, False)),
        (byte_level(added_tokens=added("aaaa", normalized=True), normalizer=AS_BYTES), TokenLength(5, False)),
        (byte_level(normalizer=sequence("normalizers", replace("a", "xx"), AS_BYTES)), TokenLength(5, False)),
        (fallback(added_tokens=added("a b", normalized=True)), TokenLength(12, False)),
        (fallback(added_tokens=added("a b c d", normalized=True)), TokenLength(16, False)),
        (fallback(), TokenLength(12, False)),
        (fallback(pre_tokenizer=split("MergedWithPrevious")), TokenLength(12, False)),
    ],
)
def test_a_tokenizer_that_keeps_every_byte_bounds_its_tokens(document, expected):
    assert token_length(document) == expected


def without(document, *path):
    made = deepcopy(document)
    inner = made
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return made


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"model": None},
        {"model": {"type": "BPE", "vocab": {}}},
        {"model": {"type": "BPE", "vocab": [1, 2]}, "pre_tokenizer": BYTE_LEVEL},
        {"model": {"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "[UNK]"}},
        {"model": {"type": "Unigram", "vocab": [["a", 0.0]], "byte_fallback": True}},
        without(byte_level(), "model", "vocab", "Ġ"),
        without(byte_level(), "pre_tokenizer"),
        without(fallback(), "model", "vocab", "<0x41>"),
        without(fallback(), "model", "byte_fallback"),
        *(
            byte_level(normalizer=one)
            for one in (
                *(
                    {"type": kind}
                    for kind in ("NFKC", "NFD", "Strip", "Lowercase", "StripAccents", "Nmt", "new")
                ),
                {"type": "Precompiled", "precompiled_charsmap": ""},
                replace("  ", " "),
                {"type": "Replace", "pattern": {"Regex": " +"}, "content": " "},
                sequence("normalizers", {"type": "NFC"}, {"type": "NFC"}, {"type": "Strip"}),
            )
        ),
        *(
            byte_level(pre_tokenizer=sequence("pretokenizers", one, BYTE_LEVEL))
            for one in (
                *(
                    {"type": kind}
                    for kind in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "UnicodeScripts", "new")
                ),
                {"type": "CharDelimiterSplit", "delimiter": "a"},
                {"type": "Punctuation", "behavior": "Removed"},
                split("Removed"),
            )
        ),
        byte_level(pre_tokenizer=None, normalizer=sequence("normalizers", AS_BYTES, replace("a", "\u20ac"))),
        byte_level(added_tokens=added("a", normalized=True), normalizer=replace("a", "x" * 100)),
        byte_level(added_tokens=added("<mask>", lstrip=True)),
        byte_level(added_tokens=added("<mask>", rstrip=True)),
    ],
)
def test_a_tokenizer_that_may_drop_text_bounds_nothing(document):
    assert token_length(document).most_bytes is None


def test_of_what_is_no_document_the_worst_is_believed():
    assert UNKNOWN.most_bytes is None
    assert UNKNOWN.may_be_dear


@pytest.mark.parametrize(
    ("part", "brings"),
    [
        ({"normalizer": {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}}, True),
        ({"normalizer": replace("a", "a" * 100)}, True),
        ({"normalizer": sequence("normalizers", *[replace("a", "aa")] * 20)}, True),
        ({"normalizer": {"type": "Prepend", "prepend": "x" * 10_000}}, True),
        ({"pre_tokenizer": sequence("pretokenizers", split("Isolated", {"Regex": "x"}))}, True),
        ({"normalizer": MARKS}, False),
        ({"pre_tokenizer": BYTE_LEVEL}, False),
    ],
)
def test_what_may_be_dear_for_a_short_text_is_known(part, brings):
    assert token_length(byte_level(**part)).may_be_dear is brings


@pytest.mark.slow
def test_composition_makes_no_text_shorter_than_said():
    """Every letter that composition leaves, against the longest text that becomes it."""
    longest: dict[str, int] = {}
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    for letter in every:
        apart = unicodedata.normalize("NFD", letter)
        longest[apart] = max(longest.get(apart, 0), len(letter.encode()))

    @cache
    def most(apart):
        ends = range(1, len(apart) + 1)
        return max((longest[apart[:i]] + most(apart[i:]) for i in ends if apart[:i] in longest), default=0)

    ratios = (
        most(unicodedata.normalize("NFD", letter)) / len(letter.encode())
        for letter in every
        if unicodedata.normalize("NFC", letter) == letter
    )
    assert 3 < max(ratios) <= MOST_SHRINKING


def test_no_text_has_more_bytes_than_its_tokens_may_stand_for():
    tokenizers = pytest.importorskip("tokenizers")
    chance = random.Random(4)
    for document in (byte_level(), byte_level(normalizer={"type": "NFC"}), fallback()):
        made = tokenizers.Tokenizer(tokenizers.models.BPE())
        whole = {**json.loads(made.to_str()), **document}
        read = tokenizers.Tokenizer.from_str(json.dumps(whole))
        each = token_length(whole).most_bytes
        for _ in range(300):
            text = "".join(
                chr(
                    chance.choice(
                        [chance.randrange(32, 127), 32, 0x212B, 0x1FBE, chance.randrange(0x300, 0x3000)]
                    )
                )
                for _ in range(chance.randrange(1, 40))
            )
            assert len(text.encode()) <= each * len(read.encode(text).ids), text
