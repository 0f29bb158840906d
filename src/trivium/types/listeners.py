"""Listeners, routes and profiles: the data that say where a server listens and which protocol answers there."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    """The purpose that the clients of a listener have."""

    INFERENCE = "inference"
    MANAGEMENT = "management"
    METRICS = "metrics"


class Transport(Enum):
    """The transport that a listener speaks below its protocols."""

    HTTP = "HTTP"
    GRPC = "gRPC"


def is_loopback(host: str) -> bool:
    """Tell whether an address is reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_far(host: str) -> bool:
    """Tell whether other machines reach this address; a name that is none, such as a test client's, they do not."""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class BindAddress:
    """An address: host and port (0: a free one), or the path of a Unix socket. With `is_shared` other processes may
    listen on the same port.
    """

    host: str = ""
    port: int = 0
    path: str = ""
    is_shared: bool = False

    @property
    def is_local(self) -> bool:
        """Is it reached from this machine alone?"""
        return bool(self.path) or is_loopback(self.host)

    def __str__(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Route:
    """All paths whose first segment is `prefix` (over gRPC: all methods of the service `prefix`) are `protocol`'s, as
    far as they are for the purpose of clients of that `role`.

    A prefix with "..." in it, like "v1/...:predict", owns those paths alone that end so, and goes before its first
    segment; one that begins with "..." owns paths whose first segment nobody else does.
    """

    prefix: str
    protocol: str
    role: Role = Role.INFERENCE


def split_prefix(prefix: str) -> tuple[str, str]:
    """Return the first segment that a route's prefix asks for (empty with an ending: any), and how paths must end."""
    first, dots, ending = prefix.partition("...")
    return first.rstrip("/") if dots else prefix, ending


def is_below(prefix: str, path: str) -> bool:
    """Tell whether a route's prefix fits a path, whatever other routes there are."""
    first, ending = split_prefix(prefix)
    is_first = path.split("/", 2)[1] == first or (bool(ending) and not first)
    return is_first and path.rstrip("/").endswith(ending)


@dataclass(frozen=True, slots=True)
class Listener:
    """One address and what is served there. `fallback` is the protocol that words the refusal of everything that no
    route names. Without `is_logged` nothing asked there is in the access log. With `says_keep_alive` answers behind
    which the connection stays open say so, where HTTP/1.1 need not. One that `is_called` has no address: another
    program's server calls it, over ASGI.
    """

    name: str
    role: Role
    transport: Transport
    routes: Sequence[Route]
    fallback: str
    bind: BindAddress = BindAddress()
    is_logged: bool = True
    says_keep_alive: bool = False
    is_called: bool = False

    @property
    def roles(self) -> frozenset[Role]:
        """The purposes that it serves: its own, and those of its routes."""
        return frozenset((self.role, *(route.role for route in self.routes)))

    @property
    def protocols(self) -> frozenset[str]:
        """The protocols that it needs, by name."""
        return frozenset((*(route.protocol for route in self.routes), self.fallback))
