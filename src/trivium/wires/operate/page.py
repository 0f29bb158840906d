"""The files of the page, from memory, by their names in one folder."""

import gzip
import hashlib
from collections.abc import Mapping

from trivium.codecs.compression import accepted
from trivium.codecs.path_segments import quoted
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Head, HttpAnswer, costly
from trivium.wires.operate.errors import DOCS_GUARDS, GUARDS

INDEX = "index.html"
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/vnd.microsoft.icon",
    "json": "application/json",
    "woff2": "font/woff2",
}


DOCS = "docs/"
"""Before the names of the files of the page that describes the API."""

_PACKED = ".gz"


class PageFiles:
    """Answers with files as they are, or that a browser has the same already (RFC 9110, section 13.1.2). A file that is
    kept compressed is sent so to who takes that.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._tags = {name: tag_of(data) for name, data in files.items()}

    def answer(self, head: Head, name: str) -> HttpAnswer:
        """Return a file. Raises NOT_FOUND for one that the page does not have."""
        kind = _TYPES.get(name.rpartition(".")[2])
        kept = name if name in self._files else name + _PACKED
        data = self._files.get(kept)
        if data is None or kind is None:
            raise ServeError(
                Code.NOT_FOUND, f"The console has no file {quoted(name)}; it begins at /console."
            )
        guards = DOCS_GUARDS if name.startswith(DOCS) else GUARDS
        fields = b"Cache-Control: no-cache\r\nETag: %b\r\n" % self._tags[kept] + guards
        if kept != name:
            fields += b"Vary: Accept-Encoding\r\n"
        if is_known(self._tags[kept], head.headers.get(b"if-none-match", b"")):
            return HttpAnswer(304, fields, (), 0)
        fields = b"Content-Type: %b\r\n" % kind.encode() + fields
        if kept == name:
            return HttpAnswer(200, fields, (data,), len(data))
        if accepted(head.headers.get(b"accept-encoding", b"")) == "gzip":
            return HttpAnswer(200, fields + b"Content-Encoding: gzip\r\n", (data,), len(data))
        return costly(lambda: _unpacked(fields, data))


def tag_of(data: bytes) -> bytes:
    """Return the tag by which a browser knows these bytes again."""
    return b'"%b"' % hashlib.sha256(data).hexdigest()[:32].encode()


def is_known(tag: bytes, named: bytes) -> bool:
    """Tell whether a header If-None-Match names this tag."""
    return tag in (each.strip().removeprefix(b"W/") for each in named.split(b","))


def _unpacked(fields: bytes, data: bytes) -> HttpAnswer:
    plain = gzip.decompress(data)
    return HttpAnswer(200, fields, (plain,), len(plain))
