"""Decides who may look at a console, and change something there: (head, what it asks, the server) -> refusal.

A browser sends what any page tells it to, so that being reached from this machine alone is no proof: a request has to
name this server by an address or a known name, to come from its own page or from no page at all, and a change has to
carry the page's own header. Where keys are asked for, the front end has looked at them before; a cookie counts there
only together with that header. Source: RFC 9110, section 7.2; RFC 6454, section 7; W3C Fetch Metadata. Pure.
"""

from dataclasses import dataclass

from trivium.codecs.credentials import CONSOLE_HEADER
from trivium.codecs.page_rule import PageRule
from trivium.types.errors import Code, ServeError
from trivium.types.spoken import spoken
from trivium.types.wire import Head
from trivium.wires.operate.routes import CHANGES, FILES, OPEN, OperateVerb

_SITE = b"sec-fetch-site"
_OWN_SITES = frozenset({b"same-origin", b"none"})


@dataclass(frozen=True, slots=True)
class VisitorRule:
    """Decides by what holds for a listener: names of this server (`pages`), whether it is reached from this machine
    alone, or asks for keys, or lets everybody manage (`may_come`), and whether it asks for keys (`has_keys`).
    """

    pages: PageRule
    may_come: bool
    has_keys: bool

    def check(self, head: Head, verb: OperateVerb) -> None:
        """Raise FORBIDDEN for who may not ask this."""
        self.pages.check(head)
        if verb in FILES:
            return
        if head.headers.get(_SITE, b"none").strip().lower() not in _OWN_SITES:
            raise ServeError(
                Code.FORBIDDEN,
                "A page of another server asks for this (the header Sec-Fetch-Site). Ask from the console, or from a "
                "program.",
            )
        if verb in OPEN or verb is OperateVerb.DESCRIPTION:  # which tells what all clients may ask
            return
        if not self.may_come:
            raise ServeError(
                Code.FORBIDDEN,
                spoken(
                    "This server listens beyond its own machine without keys, and its console tells more than its "
                    "clients need to know. Start it with --keys and show a key that may manage, or have it listen on "
                    "loopback alone."
                ),
            )
        if verb in CHANGES and not self.has_keys and head.headers.get(CONSOLE_HEADER, b"").strip() != b"1":
            raise ServeError(
                Code.FORBIDDEN,
                "What changes something needs the header `Trivium-Console: 1`, which no page of another server can "
                "send. Send it with the request.",
            )
