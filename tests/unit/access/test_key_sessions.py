"""Tokens that stand for keys in browsers: for whom, for how long, on which requests."""

import itertools
from dataclasses import replace

import pytest

from trivium.access.authorizer import KeyAuthorizer
from trivium.access.keys import AccessKey, digest_of
from trivium.access.sessions import MOST_SESSIONS, SESSION_SECONDS, KeySessions
from trivium.codecs.credentials import cookie_of, session_token, without_session
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Head

MANAGER = AccessKey("boss", digest_of("manages"), frozenset({AccessScope.MANAGE}))
CLIENT = AccessKey("client", digest_of("infers"), frozenset({AccessScope.INFER}))


class Door:
    """Sessions, and the authorizer that asks them, at a time that is set."""

    def __init__(self) -> None:
        self.keys = [MANAGER, CLIENT]
        self.time = 1000.0
        numbers = itertools.count()
        self.sessions = KeySessions(lambda: self.keys, lambda: self.time, lambda: f"token{next(numbers)}")
        self.authorizer = KeyAuthorizer(lambda: self.keys, lambda: self.time, self.sessions)

    def refusal(
        self, token: str, method: str = "GET", path: str = "/api/v1/overview", mark: bool = False
    ) -> Code | None:
        """Why a request with this cookie is refused."""
        fields = {b"cookie": b"x=1; trivium_console=" + token.encode()}
        if mark:
            fields[b"trivium-console"] = b"1"
        try:
            self.authorizer.authorize(AccessScope.MANAGE, Head(method, path, "", fields))
        except ServeError as error:
            return error.code
        return None


def test_a_token_is_as_good_as_its_key_for_its_time() -> None:
    door = Door()
    signed_in = door.sessions.sign_in("manages")
    assert signed_in.seconds == SESSION_SECONDS
    assert door.refusal(signed_in.token) is None
    door.time += SESSION_SECONDS - 1
    assert door.refusal(signed_in.token) is None
    door.time += 1
    assert door.refusal(signed_in.token) is Code.UNAUTHENTICATED


def test_a_key_that_goes_or_expires_takes_its_tokens_along() -> None:
    door = Door()
    token = door.sessions.sign_in("manages").token
    door.keys[0] = replace(MANAGER, expires=1001.0)
    assert door.refusal(token) is None
    door.time = 1001.0
    assert door.refusal(token) is Code.UNAUTHENTICATED
    door.keys = [CLIENT]
    assert door.refusal(token) is Code.UNAUTHENTICATED


@pytest.mark.parametrize(("key", "code"), [("infers", Code.FORBIDDEN), ("nobody's", Code.UNAUTHENTICATED)])
def test_only_who_may_manage_signs_in(key: str, code: Code) -> None:
    with pytest.raises(ServeError) as caught:
        Door().sessions.sign_in(key)
    assert caught.value.code is code


def test_who_has_signed_out_is_out() -> None:
    door = Door()
    first, second = (door.sessions.sign_in("manages").token for _ in range(2))
    door.sessions.sign_out(first)
    assert door.refusal(first) is Code.UNAUTHENTICATED
    assert door.refusal(second) is None


def test_there_are_so_many_at_most() -> None:
    door = Door()
    tokens = [door.sessions.sign_in("manages").token for _ in range(MOST_SESSIONS + 3)]
    assert [door.refusal(token) for token in tokens[:4]] == [Code.UNAUTHENTICATED] * 3 + [None]


@pytest.mark.parametrize(
    ("method", "path", "mark", "counts"),
    [
        ("GET", "/api/v1/events", False, True),
        ("GET", "/api/v1/overview", True, True),
        ("POST", "/api/v1/models/m/load", False, False),
        ("POST", "/api/v1/models/m/load", True, True),
        ("DELETE", "/api/v1/models/m", False, False),
        ("GET", "/v2/models/m", False, False),
        ("POST", "/v2/models/m/infer", True, True),
        ("POST", "/v2/repository/models/m/unload", False, False),
        ("GET", "/api/v1x", False, False),
    ],
)
def test_where_a_cookie_counts(method: str, path: str, mark: bool, counts: bool) -> None:
    door = Door()
    token = door.sessions.sign_in("manages").token
    assert (door.refusal(token, method, path, mark) is None) == counts


@pytest.mark.parametrize(
    ("field", "found", "rest"),
    [
        (b"trivium_console=a", "a", None),
        (b"x=1; trivium_console=a; y=2", "a", b"x=1; y=2"),
        (b"x=1, trivium_console=a", "a", b"x=1"),  # of two fields
        (b"trivium_console=a; trivium_console=b", "", None),  # which of them?
        (b"x_trivium_console=a", "", b"x_trivium_console=a"),
        (b"x=trivium_console", "", b"x=trivium_console"),
        (b"", "", b""),
    ],
)
def test_the_sessions_cookie_is_taken_off_what_handlers_get(
    field: bytes, found: str, rest: bytes | None
) -> None:
    headers = {b"cookie": field, b"trivium-console": b"1"}
    assert session_token(Head("GET", "/", "", dict(headers))) == found
    assert cookie_of(Head("GET", "/", "", dict(headers))) == found
    without_session(headers)
    assert headers.get(b"cookie") == rest
