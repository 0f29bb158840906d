"""How values are read by their kinds, from text and from a source's own types."""

import pytest

from trivium.settings.kinds import (
    KEY_STORE,
    PATTERN,
    SWITCH,
    TEXT,
    Address,
    Form,
    Kind,
    ListenerAddress,
    Number,
    OneOf,
    Seconds,
    Size,
    Truth,
    Whole,
    in_units,
)
from trivium.types.listeners import BindAddress


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        (TEXT, " a ", " a "),
        (SWITCH, "TRUE", True),
        (SWITCH, False, False),
        (Truth({"on": True, "1": True}), 1, True),
        (Whole(-1, 9), "-1", -1),
        (Whole(), " 7 ", 7),
        (Whole(), "+7", 7),
        (Whole(0, 2**53), 2**53, 2**53),
        (Size(), "64M", 64 * 2**20),
        (Size(0, 2**53), "2 gib", 2**31),
        (Size(), "7", 7),
        (Size(-1), "-1", -1),
        (Seconds(), "250ms", 0.25),
        (Seconds(), "1.5h", 5400.0),
        (Seconds(), "2", 2.0),
        (Number(), "1.5", 1.5),
        (Number(), 3, 3.0),
        (OneOf(("a", "B")), "B", "B"),
        (OneOf(("a", "B"), any_case=True), "b", "B"),
        (KEY_STORE, "pfx", "pfx"),
        (Form("the word x", {"x": 5}.get), "x", 5),
    ],
)
def test_values(kind: Kind, given: object, value: object) -> None:
    assert kind.read(given) == value
    assert type(kind.read(given)) is type(value)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (TEXT, 1),
        (SWITCH, "yes"),
        (SWITCH, 1.0),
        (SWITCH, 2),
        (Whole(0, 5), "6"),
        (Whole(), True),
        (Whole(), 1.0),
        (Whole(), "1_0"),
        (Whole(), "٣"),
        (Whole(), 10**400),
        (Size(), "64X"),
        (Size(), "1.5M"),
        (Size(0, 1024), "1M"),
        (Seconds(), "1 week"),
        (Seconds(0, 60), "2m"),
        (Number(), "nan"),
        (Number(), "soon"),
        (Number(), 10**400),
        (OneOf(("a",)), "A"),
        (PATTERN, "("),
        (PATTERN, "a{99999999999999}"),
        (KEY_STORE, "JKS"),
        (Form("the word x", {"x": 5}.get), "y"),
    ],
)
def test_what_is_no_value(kind: Kind, given: object) -> None:
    with pytest.raises(ValueError):
        kind.read(given)


@pytest.mark.parametrize(
    ("text", "bind", "is_tls"),
    [
        ("http://127.0.0.1:8080", BindAddress("127.0.0.1", 8080), False),
        ("http://0.0.0.0", BindAddress("0.0.0.0", 80), False),
        ("https://h", BindAddress("h", 443), True),
        ("http://[::1]:9/", BindAddress("::1", 9), False),
        ("unix:/tmp/s.sock", BindAddress(path="/tmp/s.sock"), False),
        ("unix:///tmp/s.sock", BindAddress(path="/tmp/s.sock"), False),
    ],
)
def test_addresses(text: str, bind: BindAddress, is_tls: bool) -> None:
    assert Address().read(text) == ListenerAddress(bind, is_tls)


@pytest.mark.parametrize(
    "text",
    ["", "h:80", "ftp://h", "http://h:65536", "http://h:x", "http://h/x", "unix:x", "http://", "http://u@h"],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError):
        Address().read(text)


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (7, "7"), (2**28, "256M"), (2**10, "1K"), (3 * 2**30, "3G"), (1500, "1500")]
)
def test_a_size_is_written_as_it_is_read(count: int, text: str) -> None:
    assert in_units(count) == text
    assert Size(0, 2**53).read(text) == count
