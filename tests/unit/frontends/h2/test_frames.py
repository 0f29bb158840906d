"""Frames as bytes, by the layouts of RFC 9113, section 6."""

import pytest

from trivium.frontends.h2 import frames

TABLE = [
    (frames.settings([]), "000000 04 00 00000000"),
    (frames.settings([(4, 65535), (5, 16384)]), "00000c 04 00 00000000 0004 0000ffff 0005 00004000"),
    (frames.SETTINGS_ACK, "000000 04 01 00000000"),
    (frames.ping(b"12345678"), "000008 06 00 00000000 3132333435363738"),
    (frames.ping(b"12345678", is_ack=True), "000008 06 01 00000000 3132333435363738"),
    (frames.goaway(7, 11, "no"), "00000a 07 00 00000000 00000007 0000000b 6e6f"),
    (frames.reset(3, 8), "000004 03 00 00000003 00000008"),
    (frames.window_update(0, 2**31 - 1), "000004 08 00 00000000 7fffffff"),
    (frames.headers(5, b"\x88", ends=False), "000001 01 04 00000005 88"),
    (frames.headers(5, b"\x88", ends=True), "000001 01 05 00000005 88"),
    (frames.head(0x123456, 0, 1, 9), "123456 00 01 00000009"),
]


@pytest.mark.parametrize(("made", "expected"), TABLE)
def test_layouts(made: bytes, expected: str) -> None:
    assert made == bytes.fromhex(expected)


def test_settings_are_read() -> None:
    assert frames.read_settings(bytes.fromhex("0004 0000ffff 00ff 00000001")) == [(4, 65535), (255, 1)]
    with pytest.raises(frames.ConnectionFault) as caught:
        frames.read_settings(b"\0\4\0")
    assert caught.value.code == frames.FRAME_SIZE_ERROR


def test_numbers_are_read() -> None:
    assert frames.read_number("WINDOW_UPDATE", b"\x80\0\0\1") == 1  # the reserved bit means nothing
    assert frames.read_number("RST_STREAM", b"\x80\0\0\1") == 2**31 + 1
    with pytest.raises(frames.ConnectionFault) as caught:
        frames.read_number("RST_STREAM", b"\0\0\1")
    assert caught.value.code == frames.FRAME_SIZE_ERROR
