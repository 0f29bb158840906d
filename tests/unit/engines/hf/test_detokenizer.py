"""Text from tokens that come one by one: whole characters only, and joined what they say together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.engines.hf.detokenizer import Detokenizer

BROKEN = "\N{REPLACEMENT CHARACTER}"
WORDS = ("你好，世界", "مرحبا بالعالم", "👩‍👩‍👧‍👦 and 🏳️‍🌈", "naïve café", "plain text", "")


def of_bytes(tokens):
    """Reads as byte-level tokenizers do: each token is some bytes."""
    return b"".join(PIECES[token] for token in tokens).decode("utf-8", "replace")


def of_runs(tokens):
    """Reads as tokenizers with a fall-back to bytes do: a run of them is characters, or U+FFFD for each byte."""
    out, run = "", b""
    for token in [*tokens, None]:
        if token is not None and token < 256:
            run += bytes([token])
            continue
        try:
            out += run.decode()
        except UnicodeDecodeError:
            out += BROKEN * len(run)
        out, run = out + ("" if token is None else NAMES[token]), b""
    return out.removeprefix(" ")


PIECES = [bytes([i]) for i in range(256)] + [
    b"ab",
    " \N{GRINNING FACE}".encode()[:3],
    b"\xbd\xa0\xe5",
    b" the",
]
NAMES = {256: " word", 257: "ing", 258: " ", 259: "你"}


def pushed(decode, tokens):
    made = Detokenizer(decode)
    parts = [made.push(token) for token in tokens]
    return parts, made.end()


@pytest.mark.parametrize("text", WORDS)
@pytest.mark.parametrize("decode", [of_bytes, of_runs])
def test_joined_parts_are_the_text_and_no_part_ends_in_a_character(text, decode):
    parts, rest = pushed(decode, text.encode())
    assert "".join(parts) == text
    assert rest == ""
    assert all(BROKEN not in part for part in parts)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (b"a\xff", f"a{BROKEN}"),
        (b"\xff\xfe\xfdb", f"{BROKEN * 3}b"),
        (b"\xff" * 100, BROKEN * 100),
        ("你".encode()[:2], BROKEN),
        ("你".encode() + b"\xffok", f"你{BROKEN}ok"),
    ],
)
def test_bytes_that_are_no_character_become_one_sign_each(tokens, expected):
    parts, rest = pushed(of_bytes, tokens)
    assert "".join(parts) + rest == expected


def test_a_character_that_was_given_out_stays_when_its_run_breaks():
    parts, rest = pushed(of_runs, [*"你".encode(), 0xFF, 256])
    assert "".join(parts) + rest == f"你{BROKEN} word"


def test_a_sign_of_the_text_itself_is_given_out_with_what_follows():
    assert pushed(of_bytes, f"{BROKEN}a".encode())[0][-1] == f"{BROKEN}a"


@given(st.lists(st.integers(0, len(PIECES) - 1), max_size=80))
def test_any_tokens_of_bytes(tokens):
    parts, rest = pushed(of_bytes, tokens)
    assert "".join(parts) + rest == of_bytes(tokens)


@given(st.lists(st.integers(256, 259), max_size=80))
def test_any_tokens_whose_first_loses_its_space(tokens):
    parts, rest = pushed(of_runs, tokens)
    assert "".join(parts) + rest == of_runs(tokens)


def test_what_is_read_together_stays_short():
    longest = 0

    def decode(tokens):
        nonlocal longest
        longest = max(longest, len(tokens))
        return of_bytes(tokens)

    pushed(decode, (b"some words, " + b"\xff" * 50) * 20)
    assert longest < 40


def fallback_tokenizer():
    tokenizers = pytest.importorskip("tokenizers")
    words = {f"<0x{i:02X}>": i for i in range(256)} | {"▁word": 256, "ing": 257, "▁": 258, "你": 259}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(words, [], byte_fallback=True))
    decoders = tokenizers.decoders
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return made


@pytest.mark.parametrize(
    "tokens",
    [
        [256, 257, 258, *"é你👍".encode(), 256],
        [*"你好".encode(), 259, 256, *"مرحبا".encode()],
        [258, 258, 256, 0xFF, 256],
        [*"你".encode()[:2], 256, *"好".encode()],
    ],
)
def test_a_real_tokenizer_with_a_fall_back_to_bytes(tokens):
    decode = fallback_tokenizer().decode
    parts, rest = pushed(decode, tokens)
    assert "".join(parts) + rest == decode(tokens)
