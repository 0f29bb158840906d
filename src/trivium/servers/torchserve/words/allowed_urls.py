"""Rules for the URLs that models are fetched from: TorchServe's `allowed_urls`, which a whole URL has to match.

Without the property nothing outside the model store may be registered; the original allows everything. Source: spec
sheet `torchserve`, sections 2 and 13. Pure.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trivium.codecs.path_segments import decodings

_META = re.compile(r"(?<!\\)[\[\](){}?*+|^$.]")
_SCHEMES = {"http(s)?://": ("http", "https"), "https?://": ("http", "https"), "http://": ("http",)}
_SCHEMES |= {"https://": ("https",), "s3://": ("s3",)}
_HOST = re.compile(r"[a-z0-9.-]+(:[0-9]{1,5})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AllowedUrls:
    """Holds the patterns of a server; without any only its model store is open."""

    patterns: Sequence[str] = ()

    def refusal(self, url: str) -> str:
        """Return why a model may not be registered from this URL; empty where it may. Case does not matter."""
        if any(".." in text for text in decodings(url)):
            return f"Relative path is not allowed in url: {url}"
        if any(re.fullmatch(pattern, url, re.IGNORECASE) for pattern in self.patterns):
            return ""
        return f"Given URL {url} does not match any allowed URL(s)"

    @property
    def places(self) -> tuple[str, ...]:
        """Return the places that the patterns name literally, as `--fetch-from` has them."""
        return tuple(dict.fromkeys(itertools.chain.from_iterable(map(places_of, self.patterns))))


def places_of(pattern: str) -> Iterator[str]:
    """Yield a pattern's places: its scheme, its host, and as much of the path as is literal. None where the host is
    not: a pattern for any host names no place.
    """
    for start, schemes in _SCHEMES.items():
        if not pattern.lower().startswith(start):
            continue
        rest = pattern[len(start) :].replace(r"\.", "\0").replace(r"\-", "-").replace(r"\/", "/")
        host, slash, path = rest.partition("/")
        host = _literal_host(host)
        if not slash or not _HOST.fullmatch(host):
            return
        literal = _META.split(path, maxsplit=1)[0].replace("\0", ".").rpartition("/")
        for scheme in schemes:
            yield f"{scheme}://{host}/{literal[0]}{literal[1]}"
        return


def _literal_host(text: str) -> str:
    """Return a host as it is meant: a dot that is not escaped stands for a dot in all such lists."""
    return text.replace("\0", ".")


def read_patterns(text: str) -> tuple[str, ...]:
    """Return the patterns of a list with commas between. Raises `re.error` for one that is none."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    for pattern in found:
        re.compile(pattern)
    return found
