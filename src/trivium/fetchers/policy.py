"""Decides what may be fetched: which URIs the allow-list has, and which addresses may be reached for them.

Pure: text in, a place or a refusal out. An address that is not public is reached only where the list names that very
address; one of the link is never reached.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import SplitResult, urlsplit

from trivium.codecs.path_segments import decodings, misleading
from trivium.types.errors import Code, ServeError
from trivium.types.fetching import FetchPlace
from trivium.types.spoken import spoken

FORM = "scheme://host[:port]/prefix"
HUBS = ("hf",)
"""Schemes of one place that everybody knows: the scheme alone is an entry, and means all of it."""

ARCHIVES = (".zip", ".mar", ".tar.gz", ".tgz", ".tar.z", ".tar")
"""Suffixes of files that hold a whole model."""

DEFINITIONS = (".json", ".yml", ".yaml")
"""Suffixes of files that name the models that they consist of."""

PORTS = {"http": 80, "https": 443}
_LONGEST = 8192
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def read_places(text: str, schemes: Sequence[str]) -> tuple[FetchPlace, ...]:
    """Read the allow-list: entries with commas between. Raises INVALID for one that is none."""
    return tuple(_entry(word.strip(), schemes) for word in text.split(",") if word.strip())


def whole_place(uri: str) -> FetchPlace:
    """Return the place that a URI names, as an entry of the list. Raises INVALID for no URI."""
    place = _place(uri)
    return (
        replace(place, path=place.path.partition("@")[0].partition(":")[0]) if place.scheme in HUBS else place
    )


def _entry(word: str, schemes: Sequence[str]) -> FetchPlace:
    if word.lower() in HUBS:
        return FetchPlace(word.lower(), "")
    try:
        place = _place(word)
    except ServeError as error:
        raise ServeError(
            Code.INVALID, spoken(f"--fetch-from: {word[:200]!r}: {error.message} Expected is {FORM}.")
        ) from error
    if place.scheme not in schemes:
        raise ServeError(
            Code.INVALID,
            spoken(
                f"--fetch-from: {word[:200]!r} is not of the form {FORM} with one of the schemes {', '.join(schemes)}. "
                "Correct it."
            ),
        )
    if place.scheme in HUBS and ("@" in place.path or ":" in place.path):
        words = (
            f"--fetch-from: {word[:200]!r} names a revision or a file. Write hf, hf://ORG or hf://ORG/MODEL."
        )
        raise ServeError(Code.INVALID, spoken(words))
    return place


def permitted(uri: str, places: Sequence[FetchPlace]) -> FetchPlace:
    """Return where a URI leads, if the list has that place. Raises FORBIDDEN where it has not, INVALID for no URI."""
    place = _place(uri)
    if any(_covers(entry, place) for entry in places):
        return place
    entries = f"allows {len(places)} other places" if places else "allows none"
    form = f"{place.scheme}, or {uri}," if place.scheme in HUBS else FORM
    raise ServeError(
        Code.FORBIDDEN,
        spoken(
            f"{shown(uri)} is not among the places that models may be fetched from: --fetch-from {entries}. Whoever "
            f"runs the server adds {form} there, or downloads the model and names its folder or archive."
        ),
    )


def judge_address(address: str, host: str) -> None:
    """Raise FORBIDDEN for an address that may not be reached under this name of a host. `host` is on the list."""
    found = _embedded(ipaddress.ip_address(address.partition("%")[0]))
    is_never = found.is_link_local or found.is_multicast or found.is_unspecified
    if not is_never and (found.is_global or _literal(host) == found):
        return
    way = (
        "Addresses of the link, and those of no single machine, are never asked."
        if is_never
        else spoken(
            "It is reached only where --fetch-from names this very address, not by a name or a redirect."
        )
    )
    raise ServeError(
        Code.FORBIDDEN,
        f"{host} is the address {found}, which is not public: nothing is fetched from it. {way}",
    )


def archive_suffix(path: str) -> str:
    """Return the suffix that makes a file of this name an archive; empty where there is none."""
    return next((suffix for suffix in ARCHIVES if path.lower().endswith(suffix)), "")


def is_file(path: str) -> bool:
    """Tell whether what lies at a path is one file: an archive, or a definition."""
    return bool(archive_suffix(path)) or path.lower().endswith(DEFINITIONS)


def safe_name(path: str) -> str:
    """Return the last segment of a path as a name for a file here: odd characters become underscores."""
    last = decodings(path.rstrip("/").rpartition("/")[2])[:2][-1][-200:].lstrip(".")
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in last) or "model"


def shown(uri: str) -> str:
    """Return a URI as it may be shown: without its query, in which there may be secrets."""
    return uri.partition("?")[0][:500]


def _place(uri: str) -> FetchPlace:
    if len(uri) > _LONGEST or "\\" in uri or any(not "!" <= character <= "~" for character in uri):
        raise _unreadable(uri, "it has blanks, backslashes or other odd characters, or is too long")
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError as error:
        raise _unreadable(uri, str(error)) from error
    scheme = parts.scheme.lower()
    if not scheme or not parts.hostname:
        raise _unreadable(uri, "it has no scheme, or no host")
    if "@" in parts.netloc:
        raise _unreadable(uri, "it holds a user or a password")
    if why := misleading(parts.path):
        raise _unreadable(uri, why)
    return FetchPlace(scheme, _host(parts), PORTS.get(scheme, 0) if port is None else port, parts.path)


def _host(parts: SplitResult) -> str:
    return (parts.hostname or "").rstrip(".").lower()


def _covers(entry: FetchPlace, place: FetchPlace) -> bool:
    prefix = entry.path.rstrip("/")
    if not entry.host:
        return entry.scheme == place.scheme
    return (
        (entry.scheme, entry.host, entry.port) == (place.scheme, place.host, place.port)
        and place.path.startswith(prefix)
        and place.path[len(prefix) :][:1] in ("", "/")
    )


def _literal(host: str) -> _Address | None:
    try:
        return _embedded(ipaddress.ip_address(host))
    except ValueError:
        return None


def _embedded(address: _Address) -> _Address:
    """Return the IPv4 address that an IPv6 address stands for, if it stands for one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1] or address


def _unreadable(uri: str, why: str) -> ServeError:
    return ServeError(Code.INVALID, f"{shown(uri)!r} cannot be fetched: {why}. Expected is {FORM}.")
