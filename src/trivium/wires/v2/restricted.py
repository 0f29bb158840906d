"""Restricted APIs: groups of routes that are served only to who sends a header with the right value.

Source: spec sheet `triton`, sections 1.1 and 4.14. Which group a route belongs to is said here and nowhere else.
"""

import hmac
from collections.abc import Collection, Iterator, Mapping

import msgspec

from trivium.codecs.credentials import credential
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Head, RpcCall
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.routes import Verb

GROUPS: Mapping[str, tuple[Verb, ...]] = {
    "health": (Verb.LIVE, Verb.READY),
    "metadata": (Verb.METADATA,),
    "inference": (Verb.INFER, Verb.GENERATE, Verb.GENERATE_STREAM),
    "shared-memory": (
        Verb.REGIONS,
        Verb.REGISTER,
        Verb.UNREGISTER,
        Verb.DEVICE_REGIONS,
        Verb.DEVICE_REGISTER,
        Verb.DEVICE_UNREGISTER,
    ),
    "model-config": (Verb.CONFIG,),
    "model-repository": (Verb.INDEX, Verb.LOAD, Verb.UNLOAD),
    "statistics": (Verb.STATISTICS,),
    "trace": (Verb.TRACE_SETTINGS,),
    "logging": (Verb.LOG_SETTINGS,),
}


class Key(msgspec.Struct, frozen=True):
    """The header that opens a group, its name in lower case, and the value that it must have."""

    header: str
    value: str

    def opens(self, request: Head | RpcCall) -> bool:
        """Return whether a request shows it. How long that takes does not depend on how much of it is right."""
        shown = credential(request, self.header).encode("latin-1" if isinstance(request, Head) else "utf-8")
        return hmac.compare_digest(shown, self.value.encode())


Restrictions = Mapping[str, Key]
"""By verb."""


def parse_restrictions(text: str) -> dict[str, Key]:
    """Read `GROUP,GROUP:HEADER=VALUE`, several of them with a `;` between. INVALID for what is not of that form, and
    for a group that is named twice.
    """
    keys: dict[str, Key] = {}
    for group, key in parse_rules(text, "--restricted-apis", GROUPS):
        keys |= dict.fromkeys(GROUPS[group], key)
    return keys


def parse_rules(text: str, option: str, known: Collection[str]) -> Iterator[tuple[str, Key]]:
    """Each group of `known` that such a text names, with its key. INVALID, naming the option, as above."""
    seen: set[str] = set()
    for rule in filter(None, (part.strip() for part in text.split(";"))):
        groups, colon, secret = rule.partition(":")
        header, equals, value = secret.partition("=")
        if not (colon and equals and header.strip() and value):
            raise _unfit(option, known, f"{groups[:80]!r} has no header and value")
        for group in (word.strip() for word in groups.split(",")):
            if group not in known:
                raise _unfit(option, known, f"there is no group {group[:80]!r}")
            if group in seen:
                raise _unfit(option, known, f"{group!r} is restricted twice")
            seen.add(group)
            yield group, Key(header.strip().lower(), value)


def check_key(head: Head, verb: str, restrictions: Restrictions) -> None:
    """Nothing for a route that is open, or opened by this head; else FORBIDDEN."""
    key = restrictions.get(verb)
    if key is None:
        return
    if not key.opens(head):
        raise ServeError(
            Code.FORBIDDEN,
            f"This API is restricted: send the header {key.header!r} with the value that its server was started with.",
            info=ErrorInfo.of(request_reasons.RESTRICTED_API, header=key.header),
        )


def _unfit(option: str, known: Collection[str], found: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"{option} cannot be read: {found}. Write it like 'model-repository,logging:admin-key=SECRET', "
        f"several with a ';' between; the groups are: {', '.join(known)}.",
    )
