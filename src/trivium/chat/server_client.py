"""Asks a Trivium server over HTTP, as the commands do that speak to one which runs."""

import http.client
import ssl
from urllib.parse import urlsplit

from trivium.types.errors import said_by

MOST_LINE = 2**20
"""Bytes of a line of an answer: one event of a stream."""


class ChatFailure(Exception):
    """Why there is no answer, or no more of it, in a sentence."""


class ServerClient:
    """Speaks to one server, by a connection for each question. `seconds` are waited for each step of an answer."""

    named_by = "its address"
    """What the command that speaks takes another server by."""

    def __init__(self, url: str, key: str = "", seconds: float = 300.0) -> None:
        self._url = urlsplit(url if "://" in url else f"http://{url}")
        self._key = key
        self._seconds = seconds
        is_address = self._url.scheme in ("http", "https") and bool(self._url.hostname)
        try:
            is_address = is_address and self._url.port != 0
        except ValueError:  # a port that is none
            is_address = False
        if not is_address:
            raise ChatFailure(
                f"{url!r} is no address of a server; expected is one like http://127.0.0.1:8080."
            )

    @property
    def place(self) -> str:
        """The server's address."""
        return self._url.geturl()

    def connected(self) -> http.client.HTTPConnection:
        """Return a connection that is not open yet; whoever gets it closes it."""
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=self._seconds, context=context)
        return http.client.HTTPConnection(host, port, timeout=self._seconds)

    def answer(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None
    ) -> http.client.HTTPResponse:
        """Return an answer whose body has not been read, of whatever status. Raises ChatFailure where none comes."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            connection.request(method, self._url.path.rstrip("/") + path, body, headers)
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise self.silence(error) from error

    def silence(self, error: Exception) -> ChatFailure:
        """Return the failure of a server that does not answer."""
        return ChatFailure(
            f"{self.place} does not answer: {said_by(error)}. Start a server there (trivium serve FOLDER), or give "
            f"{self.named_by}."
        )
