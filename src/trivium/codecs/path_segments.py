"""Segments of a request's path: decoded once the path has been split, and shown in sentences. Pure."""

from urllib.parse import unquote

from trivium.types.errors import Code, ServeError

LONGEST_SHOWN = 200


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


def quoted(text: str) -> str:
    """Return text that a client sent, in quotes and of bounded length."""
    return repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}...")
