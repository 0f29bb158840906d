"""The text of an error as any wire can carry it: valid UTF-8 of bounded length. Pure."""

LONGEST = 4000
"""Characters of a message: it may quote the request, which may be huge."""


def wire_text(message: str) -> str:
    """The message with lone surrogates, which hostile paths bring, escaped; the middle of a long one is left out."""
    if len(message) > LONGEST:
        message = f"{message[: LONGEST // 2]} [...] {message[-LONGEST // 2 :]}"
    return message.encode("utf-8", "backslashreplace").decode()
