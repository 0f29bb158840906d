"""Lets in who has a key, over HTTP and gRPC alike.

Source: RFC 6750, section 2.1 (`Authorization: Bearer KEY`); the scheme's case does not matter (RFC 9110, section 11.1).
"""

import time
from collections.abc import Callable, Sequence

from trivium.access.keys import AccessKey, find
from trivium.access.policy import refusal
from trivium.access.sessions import KeySessions
from trivium.codecs.credentials import credential, session_token
from trivium.types.access import AccessScope
from trivium.types.errors import anew
from trivium.types.wire import Head, RpcCall

Keys = Callable[[], Sequence[AccessKey]]
"""Return those that hold at this moment."""


class KeyAuthorizer:
    """Implements `Authorizer` by keys. `now` is a clock in seconds of the epoch, since keys expire at dates. Who shows
    no key may show a token of `sessions`, where there are such.
    """

    def __init__(
        self, keys: Keys, now: Callable[[], float] = time.time, sessions: KeySessions | None = None
    ) -> None:
        self._keys = keys
        self._now = now
        self._sessions = sessions

    def authorize(self, scope: AccessScope, request: Head | RpcCall) -> None:
        """See `Authorizer`."""
        if scope is AccessScope.OPEN:
            return
        shown = _shown(request)
        key = None if shown is None else find(shown, self._keys())
        if shown is None and self._sessions is not None and isinstance(request, Head):
            shown = session_token(request) or None
            key = None if shown is None else self._sessions.key_of(shown)
        if error := refusal(scope, key, shown is not None, self._now()):
            raise anew(error)


def _shown(request: Head | RpcCall) -> str | None:
    """Return the text that is shown as a key; None without one, and for another scheme."""
    scheme, _, text = credential(request).strip().partition(" ")
    return text.strip() or None if scheme.lower() == "bearer" else None
