"""Facts for a page that shows the server, besides what the core knows: settings, places, how to try a model.

The composition root fills it in; the protocol that serves the page reads it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trivium.types.errors import Code, ServeError
from trivium.types.spec import ModelSpec
from trivium.types.spoken import spoken


@dataclass(frozen=True, slots=True)
class ExampleRequest:
    """A request to one model that computes something: the `kinds` of input that its client may have ("tensors",
    "text", "picture", "digit", "body", "chat"), the likeliest first, its path, header fields, and its body as a text.
    Without a `body` one with a `method` other than GET sends a `file` (empty: the client's own). What a client makes
    up goes to `own_path` (empty: to `path`).
    """

    kinds: tuple[str, ...]
    path: str
    method: str = "POST"
    content_type: str = ""
    accept: str = ""
    body: str = ""
    file: str = ""
    own_path: str = ""


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """An option with its value as people read it, and where that was set; empty for a default."""

    name: str
    value: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A token that stands for a key in a browser, and for how many seconds it does."""

    token: str
    seconds: int


def _no_keys(key: str) -> SignedIn:
    raise ServeError(
        Code.INVALID,
        spoken("Nobody signs in here: this server has no keys. Start it with --keys to ask for some."),
    )


def _no_example(spec: ModelSpec) -> ExampleRequest | None:
    return None


@dataclass(slots=True)
class ConsoleFacts:
    """Holds these facts, one for all listeners of a server. With `has_keys` whoever is let in has shown one. `hosts`
    are the names, with commas between, under which this server is asked besides its addresses. `places` are the
    addresses that it listens on, by listener, `connections` counts those of each.
    """

    profile: str = ""
    has_keys: bool = False
    hosts: str = ""
    settings: tuple[ShownSetting, ...] = ()
    places: dict[str, str] = field(default_factory=dict)
    connections: dict[str, Callable[[], int]] = field(default_factory=dict)
    example: Callable[[ModelSpec], ExampleRequest | None] = _no_example
    sign_in: Callable[[str], SignedIn] = _no_keys
    sign_out: Callable[[str], None] = lambda token: None
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The page's files, by their paths."""
