"""Paths of URLs, as this server reads them and as a proxy before it may: what is let through leads to one place."""

import random
import re
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from tests.fuzz.target import Change, Target

from trivium.codecs.path_segments import decoded, misleading
from trivium.fetchers.policy import permitted, read_places, safe_name
from trivium.servers.djl.wire.routes import tree_of as of_djl
from trivium.servers.torchserve.wire.config import TorchServeConfig
from trivium.servers.torchserve.wire.tree import tree_of as of_torchserve
from trivium.servers.torchserve.words.allowed_urls import AllowedUrls
from trivium.servers.torchserve.words.model_urls import ModelStore
from trivium.servers.torchserve.words.model_urls import read_patterns as read_url_patterns
from trivium.types.errors import ServeError
from trivium.types.listeners import Role
from trivium.types.wire import Head
from trivium.wires.openai.routes import TREE as OF_OPENAI
from trivium.wires.v2.routes import TREE as OF_V2

INFERS, MANAGES = frozenset({Role.INFERENCE}), frozenset({Role.MANAGEMENT})
OPEN = TorchServeConfig(open_inference=True, kserve=True)
ROUTES = (
    OF_V2,
    OF_OPENAI,
    *(of_djl(roles) for roles in (INFERS, MANAGES)),
    *(of_torchserve(roles, OPEN, True) for roles in (INFERS, MANAGES)),
)
METHODS = ("GET", "POST", "PUT", "DELETE")
MOST_HOPS = 9
"""Servers in a row, of which each decodes once."""

PLACES = read_places("https://models.example/m,http://models.example:81/a/b/", ("http", "https"))
BASES = ("/m", "/a/b")
STORE = ModelStore("/srv/store", read_url_patterns(r"https://models\.example/m/.*"))
ALLOWED = AllowedUrls((r"https://models\.example/m/.*",))

CORPUS = (
    b"/v2/models/bert/versions/1/infer",
    b"/v2/repository/models/bert/load",
    b"/v2/models/org%2Fbert/ready",
    b"/predictions/bert/1.0",
    b"/models/bert/invoke",
    b"/workflows/w",
    b"/v1/models/bert",
    b"/m/folder/bert%20large.tar.gz",
    b"/a/b/c%25d.zip",
    b"/m/caf%C3%A9/model.mar",
)
TOKENS = (
    b"..", b".", b"/", b"//", b"/../", b"/./", b"%2e", b"%2E%2e", b"%2f", b"%5c", b"\\", b"%252e%252e", b"%25",
    b"%25252e",
    b"%2525252e", b"%25252525252e", b"%2525252525252e%2525252525252e", b"%2525252525252f", b"%00", b"%0a", b"..;",
    b";x=1",
    b"..;x=%2f", b"%3b", b"%c0%ae%c0%ae", b"%u002e%u002e", b"%u2215", b"%EF%BC%8E%EF%BC%8E", b"%EF%BC%8F",
    b"%E2%80%A5",
    b"%EF%BC%BC", b"%E2%80%A4%E2%80%A4", b"%20..", b"..%20", b"..%09", b"%", b"%%32%65", b"%2", b"%ff", b"#", b"?",
    b"%3f", b"%23",
)  # fmt: skip


def _without_dots(path: str) -> str:
    """RFC 3986, section 5.2.4."""
    out: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            out[1:] = out[1:-1]
        elif segment != ".":
            out.append(segment)
    return "/".join(out)


def _of_iis(text: str) -> str:
    return re.sub(r"%u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)


HABITS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: text.replace("\\", "/"),
    lambda text: "/".join(segment.partition(";")[0] for segment in text.split("/")),
    lambda text: "/".join(segment.strip() for segment in text.split("/")),
    lambda text: unicodedata.normalize("NFKC", text),
    lambda text: text.partition("\0")[0],
    _of_iis,
)
"""What servers do to a path beside decoding it."""


def readings(path: str) -> Iterator[tuple[str, str]]:
    """The path as each of a row of servers may take it, and that without its dots."""
    text = path
    for _ in range(MOST_HOPS):
        for habit in HABITS:
            kept = habit(text)
            yield kept, _without_dots(kept)
        further = unquote(text)
        if further == text:
            return
        text = further


def check_path(path: str) -> None:
    """Whoever reads it sees as many segments, and none that leads upwards."""
    if misleading(path):
        raise Refused
    segments = path.count("/")
    for kept, plain in readings(path):
        assert kept == plain, f"{path!r} is let through, and is {plain!r} to somebody"
        assert kept.count("/") == segments, f"{path!r} is let through, and is {kept!r} to somebody"


class Refused(Exception):
    """Is what a reader that returns a reason would have raised."""


def read_path(data: bytes, chance: random.Random) -> None:
    """What is let through, and what is found by it."""
    text = data.decode("latin-1")
    check_path(text)
    assert "/" not in safe_name(text)
    assert safe_name(text).strip(".")


def read_route(data: bytes, chance: random.Random) -> None:
    """A path that leads nowhere else means the same behind a proxy that normalizes it."""
    path = data.decode("latin-1")
    head = Head(chance.choice(METHODS), path, "", {})
    find = chance.choice(ROUTES).find
    target = find(head)
    check_path(path)
    behind = "/".join(decoded(segment) for segment in path.split("/"))
    if "%" not in behind:
        again = find(Head(head.method, behind, "", {}))
        assert again == target, f"{path!r} is {target}, and {again} where it is decoded before"


def read_url(data: bytes, chance: random.Random) -> None:
    """What may be fetched lies below a place of the list, to whoever serves it."""
    path = data.decode("latin-1")
    origin = chance.choice(
        ("https://models.example", "http://models.example:81", "HTTPS://models.example:443")
    )
    place = permitted(origin + path, PLACES)
    check_path(place.path)
    for _, plain in readings(place.path):
        assert any(plain == base or plain.startswith(f"{base}/") for base in BASES), (path, plain)


def read_store(data: bytes, chance: random.Random) -> None:
    """What is registered by its name or URL lies in the store, or at a place that is allowed."""
    text = data.decode("utf-8", "replace")
    url = chance.choice(("", "https://models.example", "file://", "/srv/store")) + text
    found = STORE.place(url)
    assert ".." not in unquote(found).split("/")
    if found.startswith("https:"):
        assert not ALLOWED.refusal(found), found
    elif not found.startswith("s3:"):
        assert _without_dots(found) == found
        assert found.startswith("/srv/store/"), (url, found)


def rebuilt(entry: bytes, change: Change, chance: random.Random) -> bytes:
    """One segment is another one, or encoded once more."""
    segments = entry.split(b"/")
    at = chance.randrange(1, len(segments))
    match chance.randrange(4):
        case 0:
            segments[at] = chance.choice(TOKENS)
        case 1:
            segments[at] = b"".join(b"%%%02X" % byte for byte in segments[at])
        case 2:
            segments[at] = segments[at].replace(b"%", b"%25")
        case _:
            segments.insert(at, chance.choice(TOKENS) + chance.choice((b"", *TOKENS)))
    return b"/".join(segments)


TARGETS = (
    Target("url_path", CORPUS, read_path, (Refused,), TOKENS, rebuild=rebuilt, most=2**10),
    Target("url_route", CORPUS, read_route, (ServeError, Refused), TOKENS, rebuild=rebuilt, most=2**10),
    Target("url_fetched", CORPUS, read_url, (ServeError, Refused), TOKENS, rebuild=rebuilt, most=2**10),
    Target("url_stored", CORPUS, read_store, (ServeError,), TOKENS, rebuild=rebuilt, most=2**10),
)
