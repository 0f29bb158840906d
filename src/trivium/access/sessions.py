"""Tokens that stand for keys in browsers, for a bounded time: a page cannot keep a key, and asks with a cookie.

A token is worth what its key is at the moment: one whose key has gone, or has expired, opens nothing. Kept in memory,
by digests, in a bounded number.
"""

import secrets
from collections.abc import Callable, Sequence

from trivium.access.keys import AccessKey, digest_of, find
from trivium.access.policy import refusal
from trivium.types.access import AccessScope
from trivium.types.console_facts import SignedIn
from trivium.types.errors import anew

SESSION_SECONDS = 12 * 3600
MOST_SESSIONS = 256
"""Of which the oldest goes for a further one."""


def make_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(32)


class KeySessions:
    """Holds them. `keys` are those that hold at this moment, `now` is a clock in seconds of the epoch."""

    def __init__(
        self,
        keys: Callable[[], Sequence[AccessKey]],
        now: Callable[[], float],
        make: Callable[[], str] = make_token,
    ) -> None:
        self._keys = keys
        self._now = now
        self._make = make
        self._held: dict[bytes, tuple[bytes, float]] = {}  # token -> its key, and when it ends

    def sign_in(self, text: str) -> SignedIn:
        """Return a token for a key that may manage. Raises as `refusal`."""
        key = find(text, self._keys())
        if error := refusal(AccessScope.MANAGE, key, True, self._now()):
            raise anew(error)
        assert key is not None, "it would have been refused"
        token = self._make()
        self._held[digest_of(token)] = key.digest, self._now() + SESSION_SECONDS
        if len(self._held) > MOST_SESSIONS:
            del self._held[next(iter(self._held))]
        return SignedIn(token, SESSION_SECONDS)

    def sign_out(self, token: str) -> None:
        """Let a token stand for nothing any more."""
        self._held.pop(digest_of(token), None)

    def key_of(self, token: str) -> AccessKey | None:
        """Return the key that a token stands for; None for one that has ended, or is none."""
        digest = digest_of(token)
        key, end = self._held.get(digest, (b"", 0.0))
        if self._now() >= end:
            self._held.pop(digest, None)
            return None
        return next((each for each in self._keys() if each.digest == key), None)
