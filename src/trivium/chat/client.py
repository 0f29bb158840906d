"""Asks a server for an answer over HTTP, and gives its pieces as they come."""

import http.client
import json
from collections.abc import Generator, Mapping
from contextlib import closing

from trivium.chat.server_client import MOST_LINE, ChatFailure, ServerClient
from trivium.types.errors import said_by


class ChatClient(ServerClient):
    """Has conversations with the language models of one server."""

    named_by = "its --url"

    def models(self) -> list[str]:
        """Return the names that a chat can ask for."""
        with closing(self.connected()) as connection:
            answer = self._asked(connection, "GET", "/v1/models", None)
            try:
                return [str(row["id"]) for row in json.loads(answer.read(MOST_LINE))["data"]]
            except (ValueError, KeyError, TypeError) as error:
                raise ChatFailure(f"{self.place} answers, but not as OpenAI's API does.") from error

    def ask(self, body: Mapping[str, object]) -> Generator[str]:
        """Give the pieces of an answer; closed before its end, it ends there, too. Raises ChatFailure."""
        with closing(self.connected()) as connection:
            answer = self._asked(connection, "POST", "/v1/chat/completions", json.dumps(body).encode())
            try:
                while line := answer.readline(MOST_LINE):
                    if line.startswith(b"data:") and line[5:].strip() != b"[DONE]":
                        yield piece(line[5:])
            except (OSError, http.client.HTTPException) as error:
                raise ChatFailure(f"The answer broke off: {said_by(error)}.") from error

    def _asked(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None
    ) -> http.client.HTTPResponse:
        answer = self.answer(connection, method, path, body)
        if answer.status == 200:
            return answer
        try:
            said = answer.read(MOST_LINE)
        except (OSError, http.client.HTTPException) as error:
            raise self.silence(error) from error
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
