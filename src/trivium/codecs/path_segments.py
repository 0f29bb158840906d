"""Segments of the paths of URLs: decoded once the path has been split, judged, and shown in sentences. Pure."""

import re
import unicodedata
from urllib.parse import unquote

from trivium.types.errors import Code, ServeError

LONGEST_SHOWN = 200
MOST_DECODINGS = 5
"""How often a path is decoded to be judged: each server and proxy on its way may do so once."""


_OF_UNICODE = re.compile(r"%u[0-9a-fA-F]{4}")


def decoded(segment: str) -> str:
    """A segment percent-decoded: a %2F is part of a name. INVALID for what is not UTF-8."""
    if "%" not in segment:
        return segment
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError as error:
        raise ServeError(
            Code.INVALID,
            f"The path segment {quoted(segment)} is not percent-encoded UTF-8. Encode the name so.",
        ) from error


def decoded_whole(path: bytes) -> str:
    """Return a whole path as a server hands it over that decodes it before it is split: bytes that are no UTF-8 are
    replaced. For comparing with one such; what is served is found by its segments.
    """
    return unquote(path.decode("latin-1"))


def decodings(text: str) -> list[str]:
    """Return a text as it is, and as it becomes by each further percent-decoding, as long as that changes it."""
    found = [text]
    while len(found) < MOST_DECODINGS and "%" in found[-1] and (further := unquote(found[-1])) != found[-1]:
        found.append(further)
    return found


def misleading(path: str) -> str:
    """Return why the path of a URL may lead somewhere else than it says, to one server or another on its way; empty
    where it does not.
    """
    for raw in path.split("/"):
        texts = decodings(raw)
        if unquote(texts[-1]) != texts[-1]:
            return f"its path is encoded more than {MOST_DECODINGS - 1} times"
        for text in texts:
            if _OF_UNICODE.search(text):
                return "its path has a character that is encoded as %uXXXX, which some servers read"
            text = unicodedata.normalize("NFKC", text)  # some take a fullwidth slash or dot for the plain one
            if "/" in text or "\\" in text:
                return "its path has a backslash, or a slash that is encoded"
            if "\ufffd" in text or any(sign < " " or sign == "\x7f" for sign in text):
                return "its path has a control character that is encoded, or bytes that are no UTF-8"
            name = text.partition(";")[0].strip()
            if name and not name.strip("."):
                return "its path has . or .."
    return ""


def quoted(text: str) -> str:
    """Return text that a client sent, in quotes and of bounded length."""
    return repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}...")
