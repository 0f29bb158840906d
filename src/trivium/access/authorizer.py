"""Lets in who has a key, over HTTP and gRPC alike.

Source: RFC 6750, section 2.1 (`Authorization: Bearer KEY`); the scheme's case does not matter (RFC 9110, section 11.1).
"""

import hmac
import time
from collections.abc import Callable, Sequence

from trivium.access.keys import AccessKey, digest_of
from trivium.access.policy import refusal
from trivium.codecs.credentials import credential
from trivium.types.access import AccessScope
from trivium.types.errors import anew
from trivium.types.wire import Head, RpcCall

Keys = Callable[[], Sequence[AccessKey]]
"""Return those that hold at this moment."""


class KeyAuthorizer:
    """Implements `Authorizer` by keys. `now` is a clock in seconds of the epoch, since keys expire at dates."""

    def __init__(self, keys: Keys, now: Callable[[], float] = time.time) -> None:
        self._keys = keys
        self._now = now

    def authorize(self, scope: AccessScope, request: Head | RpcCall) -> None:
        """See `Authorizer`."""
        if scope is AccessScope.OPEN:
            return
        shown = _shown(request)
        key = None if shown is None else find(shown, self._keys())
        if error := refusal(scope, key, shown is not None, self._now()):
            raise anew(error)


def find(shown: str, keys: Sequence[AccessKey]) -> AccessKey | None:
    """Return the key that this text is. How long it takes depends on neither."""
    digest, found = digest_of(shown), None
    for key in keys:
        if hmac.compare_digest(digest, key.digest):
            found = key
    return found


def _shown(request: Head | RpcCall) -> str | None:
    """Return the text that is shown as a key; None without one, and for another scheme."""
    scheme, _, text = credential(request).strip().partition(" ")
    return text.strip() or None if scheme.lower() == "bearer" else None
