"""The files of the page, from memory, by their names in one folder."""

import hashlib
from collections.abc import Mapping

from trivium.codecs.path_segments import quoted
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Head, HttpAnswer
from trivium.wires.operate.errors import GUARDS

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


class PageFiles:
    """Answers with files as they are, or that a browser has the same already (RFC 9110, section 13.1.2)."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._tags = {
            name: b'"%b"' % hashlib.sha256(data).hexdigest()[:32].encode() for name, data in files.items()
        }

    def answer(self, head: Head, name: str) -> HttpAnswer:
        """Return a file. Raises NOT_FOUND for one that the page does not have."""
        data = self._files.get(name)
        kind = _TYPES.get(name.rpartition(".")[2])
        if data is None or kind is None:
            raise ServeError(
                Code.NOT_FOUND, f"The console has no file {quoted(name)}; it begins at /console."
            )
        fields = b"Cache-Control: no-cache\r\nETag: %b\r\n" % self._tags[name] + GUARDS
        known = head.headers.get(b"if-none-match", b"")
        if self._tags[name] in (each.strip().removeprefix(b"W/") for each in known.split(b",")):
            return HttpAnswer(304, fields, (), 0)
        return HttpAnswer(200, b"Content-Type: %b\r\n" % kind.encode() + fields, (data,), len(data))
