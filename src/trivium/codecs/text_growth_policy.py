"""Decides how many letters a tokenizer's file may make of one letter: a few lines of it can make a text a billion."""

from collections.abc import Mapping

MOST_PREFIX = 1024
"""Letters that may be put before a text and count for nothing."""


def growth(part: object) -> int:
    """Return how many times longer a normalizer or decoder, as its file describes it, makes a text at most."""
    if not isinstance(part, Mapping):
        return 1
    kind = part.get("type")
    if kind == "Sequence":
        found = 1
        inner = part.get("normalizers") or part.get("decoders")
        for one in inner if isinstance(inner, list) else ():
            found *= growth(one)
        return found
    if kind == "Prepend":
        return max(1, len(str(part.get("prepend"))) // MOST_PREFIX)
    return _of_replacement(part) if kind == "Replace" else 1


def _of_replacement(part: Mapping[str, object]) -> int:
    """A regular expression may match a single letter, and the nothing behind it."""
    pattern, size = part.get("pattern"), len(str(part.get("content") or ""))
    text = pattern.get("String") if isinstance(pattern, Mapping) else None
    if isinstance(text, str) and text:
        return max(1, -(-size // len(text)))
    return size + 1
