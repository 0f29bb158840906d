"""The text of an error as any wire can carry it, valid UTF-8 of bounded length, and what it quotes. Pure."""

import json

from trivium.types.errors import Code, ServeError
from trivium.types.spoken import spoken

LONGEST = 4000
"""Characters of a message: it may quote the request, which may be huge."""


def wire_text(message: str) -> str:
    """The message with lone surrogates, which hostile paths bring, escaped; the middle of a long one is left out."""
    if len(message) > LONGEST:
        message = f"{message[: LONGEST // 2]} [...] {message[-LONGEST // 2 :]}"
    return message.encode("utf-8", "backslashreplace").decode()


def quoted_json(value: object, longest: int) -> str:
    """Return the JSON of a value that somebody sent, or its beginning: what comes behind is not even written, however
    much or deeply nested it is.
    """
    text = ""
    for piece in _JSON.iterencode(value):
        text += piece
        if len(text) > longest:
            return f"{text[: longest - 3]}..."
    return text


_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def not_from_here() -> ServeError:
    """Return the refusal of a change where whoever reaches the server could make it."""
    return ServeError(
        Code.FORBIDDEN,
        spoken(
            "This server listens beyond its own machine, and whoever reaches it may not register, scale or unregister "
            "anything. Have it listen on loopback alone, or start it with --keys and send a key that may manage models."
        ),
    )
