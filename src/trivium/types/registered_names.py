"""Judges names that are to be registered, by whatever road: listings must show them whole, as they can be asked for.

A name is as long as one of a folder at most, and has no character that is shown as another. Pure.
"""

from trivium.types.errors import Code, ServeError

LONGEST = 255
"""Bytes of a name in UTF-8: what a folder's may have, and far less than what an answer shows."""

_SHOWN = 80


def unfit_name(name: str) -> str:
    """Return what keeps a name from being registered; empty where nothing does."""
    if not name.isprintable():
        return "has characters that cannot be printed"
    size = len(name.encode())
    if size > LONGEST:
        return f"has {size} bytes, and a name may have {LONGEST}"
    return "is empty, or stands for a folder" if name in ("", ".", "..") else ""


def judge_name(name: str, what: str) -> None:
    """Raise INVALID for a name that may not be registered; `what` it is of, with an article."""
    if why := unfit_name(name):
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
        raise ServeError(Code.INVALID, f"The name of {what}, {shown!r}, {why}. Give another one.")


def named_version(model: str, version: str) -> str:
    """Return how a sentence names a version; one that could not be read has no number."""
    return f"Model '{model}' version {version}" if version else f"Model '{model}'"
