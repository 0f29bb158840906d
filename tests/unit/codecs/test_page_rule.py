"""Which requests a web page of another server can have sent."""

import pytest

from trivium.codecs.page_rule import rule_of
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Head

RULE = rule_of("models.example.org, Other ,")


@pytest.mark.parametrize(
    ("host", "origin", "is_let_in"),
    [
        (b"localhost", None, True),
        (b"LOCALHOST:80", None, True),
        (b"localhost.", None, True),
        (b"127.0.0.1:8080", None, True),
        (b"10.1.2.3", None, True),
        (b"[::1]", None, True),
        (b"[2001:db8::1]:8080", None, True),
        (b"models.example.org:443", None, True),
        (b"other", None, True),
        (b"", None, False),
        (None, None, False),
        (b"example.org", None, False),
        (b"models.example.org.evil.org", None, False),
        (b"a.localhost", None, False),
        (b"127.0.0.1.nip.io", None, False),
        (b"0x7f.1", None, False),
        (b"2130706433", None, False),
        (b"[::1", None, True),
        (b"[evil.org]", None, False),
        (b"\xff", None, False),
        (b"localhost", b"http://localhost", True),
        (b"localhost:80", b"http://localhost", True),
        (b"localhost", b"HTTP://LOCALHOST:80", True),
        (b"localhost:443", b"https://localhost", True),
        (b"[::1]:8080", b"http://[::1]:8080", True),
        (b"localhost:8080", b"http://localhost", False),
        (b"localhost:8080", b"http://localhost:3000", False),
        (b"localhost", b"null", False),
        (b"localhost", b"", False),
        (b"localhost", b"localhost", False),
        (b"localhost", b"http://", False),
        (b"localhost", b"chrome-extension://localhost", False),
        (b"localhost", b"http://localhost.evil.org", False),
        (b"localhost", b"http://localhost@evil.org", False),
        (b"localhost", b"http://localhost http://evil.org", False),
        (b"evil.org", b"http://evil.org", False),
        (b"localhost", b"http://\xff", False),
    ],
)
def test_host_and_origin(host: bytes | None, origin: bytes | None, is_let_in: bool) -> None:
    headers = {name: value for name, value in ((b"host", host), (b"origin", origin)) if value is not None}
    head = Head("POST", "/v2/logging", "", headers)
    if is_let_in:
        RULE.check(head)
        return
    with pytest.raises(ServeError) as caught:
        RULE.check(head)
    assert caught.value.code is Code.FORBIDDEN


def test_names_are_names() -> None:
    for text in ("http://a", "a/b", "a b", "a:80", "[::1]"):
        with pytest.raises(ServeError, match="is no host name"):
            rule_of(text)
