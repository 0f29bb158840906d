"""Asks a server for an answer over HTTP, and gives its pieces as they come."""

import http.client
import json
import ssl
from collections.abc import Generator, Mapping
from contextlib import closing
from urllib.parse import urlsplit

from trivium.types.errors import said_by

MOST_LINE = 2**20
"""Bytes of a line of an answer: one event of a stream."""


class ChatFailure(Exception):
    """Why there is no answer, or no more of it, in a sentence."""


class ChatClient:
    """Speaks to one server, by a connection for each question."""

    def __init__(self, url: str, key: str = "", seconds: float = 300.0) -> None:
        self._url = urlsplit(url if "://" in url else f"http://{url}")
        self._key = key
        self._seconds = seconds
        if self._url.scheme not in ("http", "https") or not self._url.hostname:
            raise ChatFailure(
                f"{url!r} is no address of a server; expected is one like http://127.0.0.1:8080."
            )

    def models(self) -> list[str]:
        """Return the names that a chat can ask for."""
        with closing(self._connected()) as connection:
            answer = self._asked(connection, "GET", "/v1/models", None)
            try:
                return [str(row["id"]) for row in json.loads(answer.read(MOST_LINE))["data"]]
            except (ValueError, KeyError, TypeError) as error:
                raise ChatFailure(f"{self._url.geturl()} answers, but not as OpenAI's API does.") from error

    def ask(self, body: Mapping[str, object]) -> Generator[str]:
        """Give the pieces of an answer; closed before its end, it ends there, too. Raises ChatFailure."""
        with closing(self._connected()) as connection:
            answer = self._asked(connection, "POST", "/v1/chat/completions", json.dumps(body).encode())
            try:
                while line := answer.readline(MOST_LINE):
                    if line.startswith(b"data:") and line[5:].strip() != b"[DONE]":
                        yield piece(line[5:])
            except (OSError, http.client.HTTPException) as error:
                raise ChatFailure(f"The answer broke off: {said_by(error)}.") from error

    def _connected(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=self._seconds, context=context)
        return http.client.HTTPConnection(host, port, timeout=self._seconds)

    def _asked(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None
    ) -> http.client.HTTPResponse:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            connection.request(method, self._url.path.rstrip("/") + path, body, headers)
            answer = connection.getresponse()
            if answer.status == 200:
                return answer
            said = answer.read(MOST_LINE)
        except (OSError, http.client.HTTPException) as error:
            words = f"{self._url.geturl()} does not answer: {said_by(error)}."
            raise ChatFailure(
                f"{words} Start a server there (trivium serve FOLDER), or give its --url."
            ) from error
        raise ChatFailure(refusal(answer.status, said))


def piece(event: bytes) -> str:
    """Return the text of one event of a stream. Raises ChatFailure for one that says what has failed."""
    try:
        document = json.loads(event)
        if "error" in document:
            raise ChatFailure(str(document["error"]["message"]))
        choices = document["choices"]
        return str(choices[0]["delta"].get("content") or "") if choices else ""
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ChatFailure(f"An event of the answer cannot be read: {event[:100]!r}.") from error


def refusal(status: int, said: bytes) -> str:
    """Return the sentence of a refused request."""
    try:
        return str(json.loads(said)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"The server answers with status {status}: {said[:200].decode('utf-8', 'replace')}"
