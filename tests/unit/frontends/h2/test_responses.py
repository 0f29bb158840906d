"""Responses as a client decodes them."""

from urllib.parse import unquote

import pytest
from hpack import Decoder
from hypothesis import given
from hypothesis import strategies as st

from trivium.frontends.h2 import frames, responses


def decoded(block: bytes, table: int = 4096) -> dict[str, str]:
    decoder = Decoder()
    decoder.max_allowed_table_size = table  # as a client says by its SETTINGS
    return dict(decoder.decode(block))


@pytest.mark.parametrize("table", [0, 4096])
def test_blocks(table: int) -> None:
    grpc = {":status": "200", "content-type": "application/grpc"}
    accepts = {"grpc-accept-encoding": "identity, gzip, deflate"}
    assert decoded(responses.OPENING, table) == grpc
    assert decoded(responses.opening("gzip"), table) == {**grpc, "grpc-encoding": "gzip"}
    assert decoded(responses.OK, table) == {"grpc-status": "0"}
    assert decoded(responses.trailers(3, "no"), table) == {"grpc-status": "3", "grpc-message": "no"}
    assert decoded(responses.refusal(8, "full")) == {
        **grpc,
        **accepts,
        "grpc-status": "8",
        "grpc-message": "full",
    }
    assert decoded(responses.refusal(13, "", 415)) == {
        **grpc,
        **accepts,
        ":status": "415",
        "grpc-status": "13",
    }


def test_long_values() -> None:
    assert decoded(responses.field(b"n" * 127, b"v" * 300)) == {"n" * 127: "v" * 300}


def test_an_answer_is_what_its_frames_would_be() -> None:
    message = bytes(70_000)
    made = responses.before_answer(77, len(message)) + message + responses.behind_answer(77)
    prefixed = responses.PREFIX.pack(0, len(message)) + message
    assert made == (
        frames.headers(77, responses.OPENING, ends=False)
        + frames.head(len(prefixed), frames.DATA, 0, 77)
        + prefixed
        + frames.headers(77, responses.OK, ends=True)
    )


@pytest.mark.parametrize(
    ("details", "sent"),
    [
        ("plain text ~!", b"plain text ~!"),
        ("100 %", b"100 %25"),
        ("é\n", b"%C3%A9%0A"),
        ("\ud800", b"\\ud800"),
    ],
)
def test_escapes(details: str, sent: bytes) -> None:
    assert responses.escaped(details) == sent


@given(st.text(max_size=200))
def test_escapes_come_back(details: str) -> None:
    sent = responses.escaped(details)
    assert all(0x20 <= byte < 0x7F for byte in sent)
    assert unquote(sent.decode()) == details.encode("utf-8", "backslashreplace").decode()


@pytest.mark.parametrize("text", ["x" * 20_000, "é" * 20_000, "xé" * 20_000])
def test_what_is_too_long_to_arrive_is_cut_between_escapes(text: str) -> None:
    sent = responses.escaped(text)
    assert 7900 < len(sent) <= 8000
    assert text.startswith(unquote(sent.decode(), errors="strict"))
