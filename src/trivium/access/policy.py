"""Decides whether a request may be made with a key: (right that is needed, key, time) -> refusal or none. Pure."""

from trivium.access.keys import AccessKey
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError

_HOW = "Send it in the header (over gRPC the metadata) Authorization: Bearer KEY."


def refusal(needed: AccessScope, key: AccessKey | None, is_shown: bool, now: float) -> ServeError | None:
    """Return why a request is refused that needs this right, at this time in seconds of the epoch; None if it is not.

    `is_shown`: it came with something; `key` is the one that this is, None for what is no key here.
    """
    if needed is AccessScope.OPEN:
        return None
    if key is None:
        found = "What was sent as a key is none of this server's" if is_shown else "This needs a key"
        return ServeError(Code.UNAUTHENTICATED, f"{found}. {_HOW}")
    if key.expires is not None and now >= key.expires:
        return ServeError(
            Code.UNAUTHENTICATED,
            f"The key {key.name!r} has expired, at {key.expires_text}. Ask this server's operator for another.",
        )
    if needed is AccessScope.ANY or needed in key.scopes or AccessScope.MANAGE in key.scopes:
        return None
    had = ", ".join(sorted(scope.value for scope in key.scopes))
    return ServeError(
        Code.FORBIDDEN,
        f"The key {key.name!r} is for {had}, and this needs one for {needed.value}. Use such a key.",
    )
