"""TorchServe's keys: what opens what, when they expire, what renewal does, and how they are written."""

import itertools
import json
from collections.abc import Callable

import pytest

from trivium.servers.torchserve.words.tokens import TokenPurpose, Tokens


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def made(clock: Clock, written: list[bytes], write: Callable[[bytes], None] | None = None) -> Tokens:
    keys = (f"key{number}" for number in itertools.count())
    return Tokens(lambda: next(keys), clock, 60.0, write or written.append)


def key(written: list[bytes], purpose: TokenPurpose) -> str:
    return f"Bearer {json.loads(written[-1])[purpose.value]['key']}"


def test_each_key_opens_its_own_until_it_expires_and_that_of_renewal_does_not() -> None:
    clock, written = Clock(), list[bytes]()
    tokens = made(clock, written)
    for shown, needed in itertools.product(TokenPurpose, TokenPurpose):
        assert tokens.opens(needed, key(written, shown)) is (shown is needed)
    clock.now += 60
    assert [tokens.opens(each, key(written, each)) for each in TokenPurpose] == [False, False, True]


@pytest.mark.parametrize(
    "shown",
    ["", "key1", "Bearer", "Bearer ", "bearer key1", "Basic key1", "Bearer key1 x", "Bearer kéy", "\x00"],
)
def test_what_is_no_such_header_opens_nothing(shown: str) -> None:
    assert not made(Clock(), []).opens(TokenPurpose.INFERENCE, shown)


def test_blanks_between_the_words_are_allowed() -> None:
    written = list[bytes]()
    tokens = made(Clock(), written)
    shown = key(written, TokenPurpose.INFERENCE).replace(" ", " \t ")
    assert tokens.opens(TokenPurpose.INFERENCE, shown)
    assert not tokens.opens(TokenPurpose.INFERENCE, "Bearer " + "x" * 2**20)


def test_a_renewed_key_ends_the_one_before_and_leaves_the_others() -> None:
    clock, written = Clock(), list[bytes]()
    tokens = made(clock, written)
    old = {each: key(written, each) for each in TokenPurpose}
    clock.now += 30
    tokens.renew(TokenPurpose.INFERENCE)
    assert len(written) == 2
    assert not tokens.opens(TokenPurpose.INFERENCE, old[TokenPurpose.INFERENCE])
    assert tokens.opens(TokenPurpose.INFERENCE, key(written, TokenPurpose.INFERENCE))
    assert tokens.opens(TokenPurpose.MANAGEMENT, old[TokenPurpose.MANAGEMENT])
    clock.now += 45
    assert tokens.opens(TokenPurpose.INFERENCE, key(written, TokenPurpose.INFERENCE))
    assert not tokens.opens(TokenPurpose.MANAGEMENT, old[TokenPurpose.MANAGEMENT])


def test_a_key_that_cannot_be_written_is_not_renewed() -> None:
    written = list[bytes]()

    def write(document: bytes) -> None:
        if written:
            raise OSError("full")
        written.append(document)

    tokens = made(Clock(), written, write)
    with pytest.raises(OSError, match="full"):
        tokens.renew(TokenPurpose.INFERENCE)
    assert tokens.opens(TokenPurpose.INFERENCE, key(written, TokenPurpose.INFERENCE))


def test_the_document_is_the_originals() -> None:
    written = list[bytes]()
    made(Clock(), written)
    assert written[0].decode() == (
        '{\n  "management": {\n    "key": "key0",\n    "expiration time": "1970-01-01T00:17:40Z"\n  },\n'
        '  "inference": {\n    "key": "key1",\n    "expiration time": "1970-01-01T00:17:40Z"\n  },\n'
        '  "API": {\n    "key": "key2"\n  }\n}\n'
    )


@pytest.mark.parametrize("purpose", TokenPurpose)
def test_a_text_for_a_log_has_no_key_however_it_is_encoded(purpose: TokenPurpose) -> None:
    clock, written = Clock(), list[bytes]()
    tokens = made(clock, written)
    text = key(written, purpose).removeprefix("Bearer ")
    encoded = "".join(f"%{ord(sign):02x}" for sign in text)
    for shown in (text, encoded, encoded.upper(), encoded.replace("%", "%2525"), f"{encoded[:3]}{text[1:]}"):
        assert tokens.hidden(f'"GET /x?k={shown}&a=50%25 HTTP/1.1"') == '"GET /x?k=(a key)&a=50%25 HTTP/1.1"'
    assert tokens.hidden(f"[{text}{text}] other") == "[(a key)(a key)] other"
    assert tokens.hidden("kay1 %41 100%") == "kay1 %41 100%"
