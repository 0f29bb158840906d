"""Tells requests that a web page has its reader's browser send from those of programs, by the headers Host and Origin.

A page can send requests to addresses that its own server does not reach: loopback, or a network behind a wall. By a
name of its own that it points there (DNS rebinding) it even reads the answers. Browsers say which name was asked for,
and which page asks; other clients have no page to name. Source: RFC 9110, section 7.2; RFC 6454, section 7. Pure.
"""

import ipaddress
from dataclasses import dataclass

from trivium.types.errors import Code, ServeError
from trivium.types.spoken import spoken
from trivium.types.wire import Head

_PORTS = {"http": "80", "https": "443"}


@dataclass(frozen=True, slots=True)
class PageRule:
    """Lets through what no page of another server can have sent. `hosts`: names by which this server is reached, in
    lower case, in addition to localhost and to addresses.
    """

    hosts: frozenset[str] = frozenset()

    def check(self, head: Head) -> None:
        """Raise FORBIDDEN for a Host that is not ours, and for an Origin that is not the server asked."""
        host = head.headers.get(b"host", b"").decode("latin-1").strip().lower()
        if not self._is_ours(_name_of(host)):
            raise ServeError(
                Code.FORBIDDEN,
                spoken(
                    f"Whoever changes something here has to name this server by an address, as localhost, or by one of "
                    f"--allowed-hosts; the header Host is {host[:80]!r}. A name that anybody may point here could be "
                    "a web page's. Ask by the address, or start the server with --allowed-hosts."
                ),
            )
        origin = head.headers.get(b"origin")
        if origin is not None and not _is_own(origin.decode("latin-1").strip().lower(), host):
            raise ServeError(
                Code.FORBIDDEN,
                f"Web pages may not change this server; this request comes from {origin[:80].decode('latin-1')!r} (its "
                "header Origin). Send it from a program.",
            )

    def _is_ours(self, name: str) -> bool:
        if name == "localhost" or name in self.hosts:
            return True
        try:
            return bool(ipaddress.ip_address(name))
        except ValueError:
            return False


def rule_of(text: str) -> PageRule:
    """Make the rule from names with commas between. INVALID for one that is no name, such as an URL."""
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    for name in names:
        if not all(letter.isalnum() or letter in "-._" for letter in name):
            raise ServeError(
                Code.INVALID,
                spoken(
                    f"--allowed-hosts: {name[:80]!r} is no host name. Give names without scheme and port, with commas "
                    "between, like models.example.org."
                ),
            )
    return PageRule(frozenset(names))


def _name_of(host: str) -> str:
    """Return a Host without its port, and an address of IPv6 without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


def _is_own(origin: str, host: str) -> bool:
    """Say whether this is the origin of a page that the server itself, or a proxy in front of it, has sent."""
    scheme, _, place = origin.partition("://")
    if scheme not in _PORTS or not place:
        return False
    end = f":{_PORTS[scheme]}"
    return place.removesuffix(end) == host.removesuffix(end)
