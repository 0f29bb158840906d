"""Reads what OpenVINO says of an error: the words for people, without the places in its own sources. Pure."""

_SOURCES = ("Exception from ", "Check '", "Caught exception")


def plain_words(words: str) -> str:
    """Return what OpenVINO says of an error without the places in its own sources that it comes from."""
    lines = [one.strip() for one in words.splitlines()]
    kept = [one for one in lines if one and not one.startswith(_SOURCES)]
    return " ".join(kept).rstrip(".") or words
