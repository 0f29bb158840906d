"""Finds where the `url` of a registration leads: to a file of the model store, to another server, or nowhere.

Source: spec sheet `torchserve`, sections 5.1 and 13. Nothing outside the store is taken unless the operator's patterns
have its URL, not even by a link in it. Pure text: what lies at the place is found out by whoever reads it.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote

from trivium.codecs.error_table import said
from trivium.codecs.path_segments import decodings
from trivium.types.errors import Code, ServeError
from trivium.types.spoken import spoken

_URL = re.compile(r"(file|https?)://", re.IGNORECASE)
_S3 = re.compile(r"s3://", re.IGNORECASE)
_LONGEST = 8192


@dataclass(frozen=True, slots=True)
class ModelStore:
    """The folder whose models may be registered by name, and patterns of the URLs that may be registered besides. An
    empty `folder`: there is none.
    """

    folder: str = ""
    allowed: tuple[re.Pattern[str], ...] = ()

    def place(self, url: str) -> str:
        """Return the path or the URL that is to be registered. Raises NOT_FOUND."""
        if not url:
            raise _refused("empty url", "The parameter url is empty; give the name of a model in the store.")
        _judge_text(url)
        if _URL.match(url):
            return self._elsewhere(url)
        if _S3.match(url):
            return url  # the fetchers' own list says which may be fetched
        if not self.folder:
            raise _refused(
                f"Model not found at: {url}",
                spoken(
                    "This server has no model store to look in. Start it with --torchserve-model-store FOLDER."
                ),
            )
        return self._stored(url)

    def bounds(self, url: str) -> str:
        """Return the folder in which what a URL names has to lie, wherever links lead; empty for what the operator
        allows by the URL of its own place.
        """
        return "" if _URL.match(url) or _S3.match(url) else self.folder

    def shown(self, place: str) -> str:
        """Return the place of a model as its clients know it: by name, if it is in the store."""
        path = PurePosixPath(place)
        if not self.folder or not path.is_relative_to(self.folder):
            return place
        return str(path.relative_to(self.folder))

    def _stored(self, url: str) -> str:
        """Return the entry of the store that is meant. Of a path elsewhere the last part is looked for here."""
        folder, path = PurePosixPath(self.folder), PurePosixPath(url)
        if path.is_relative_to(folder) and path != folder:
            return str(path)
        if not path.name:
            raise _refused(f"Model not found at: {url}", "The URL names no model. Give a name in the store.")
        return str(folder / path.name)

    def _elsewhere(self, url: str) -> str:
        if not any(pattern.fullmatch(url) for pattern in self.allowed):
            raise _refused(
                f"Given URL {url} does not match any allowed URL(s)",
                spoken(
                    "Only models of the store are registered here. Put it there, or let the operator allow its URL "
                    "with --torchserve-allowed-urls."
                ),
            )
        if url[:5].lower() != "file:":
            return url
        path = unquote(url[len("file://") :])
        return "/" + path.lstrip("/")


def _refused(text: str, message: str) -> ServeError:
    """Return the refusal of a URL; `text` says it in the original's words."""
    return said(Code.NOT_FOUND, message, text)


def read_patterns(text: str) -> tuple[re.Pattern[str], ...]:
    """Read regular expressions with commas between. Raises INVALID for one that is none."""
    found = []
    for word in filter(None, map(str.strip, text.split(","))):
        try:
            found.append(re.compile(word, re.IGNORECASE))
        except re.error as error:
            raise ServeError(
                Code.INVALID,
                spoken(
                    f"--torchserve-allowed-urls: {word[:200]!r} is no regular expression ({error}). Correct it; one is "
                    r"https://models\.example\.com/.*"
                ),
            ) from error
    return tuple(found)


def _judge_text(url: str) -> None:
    """Raise NOT_FOUND for a URL that leads upwards, however often it is encoded, or that no path can be."""
    for text in decodings(url):
        if ".." in text:
            raise _refused(
                f"Relative path is not allowed in url: {url}",
                "A URL may not lead upwards. Give the name of a model in the store.",
            )
        if "\0" in text or len(text) > _LONGEST:
            raise _refused(f"Model not found at: {url}", "Such a name no model can have. Correct it.")
