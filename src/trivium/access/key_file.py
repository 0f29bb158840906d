"""Keeps the keys of a file, and reads it again when it changes."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from trivium.access.keys import AccessKey, parse_keys
from trivium.access.reread import Reread, read_regular
from trivium.types.errors import Code, ServeError
from trivium.types.spoken import spoken


def read_file(path: Path) -> str:
    """Return the text of a key file. Raises ServeError (NOT_FOUND) for what is no small file with text."""
    try:
        return read_regular(path).decode()
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, "it is no UTF-8") from error


def _unreadable(path: Path, why: str) -> ServeError:
    return ServeError(
        Code.NOT_FOUND,
        spoken(
            f"The key file {path} cannot be read: {why}. Give --keys a TOML file with a [[key]] for each key; "
            "`trivium key` prints one."
        ),
    )


class KeyFile(Reread[str, tuple[AccessKey, ...]]):
    """Holds the keys that were read last; see `Reread`. Raises ServeError or ConfigError for a file that cannot be
    used.
    """

    def __init__(self, path: Path, read: Callable[[Path], str] = read_file) -> None:
        super().__init__("The keys", partial(read, path), lambda text: parse_keys(text, str(path)))
