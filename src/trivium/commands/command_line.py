"""Reads the words and the files of properties of commands whose words are another server's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from trivium.codecs.java_properties import MAX_BYTES, Properties, read
from trivium.files import open_file
from trivium.types.errors import Code, ServeError


def takes_words(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of this name, which is given all words behind it as they are, `--help` among them."""

    def make(function: Callable[..., None]) -> click.Command:
        """Make it of what is called with the words."""
        with_words: Any = click.argument("words", nargs=-1, type=click.UNPROCESSED)(function)
        settings = {"ignore_unknown_options": True, "allow_extra_args": True}
        return click.command(name, add_help_option=False, context_settings=settings)(with_words)

    return make


def read_properties(file: Path | None) -> Properties | None:
    """Read a file of properties; None for none. Raises INVALID for one that cannot be read."""
    if file is None:
        return None
    try:
        with open_file(file) as opened:
            return read(str(file), opened.read(MAX_BYTES + 1))
    except OSError as error:
        raise ServeError(Code.INVALID, f"{file}: {error.strerror}. Give a file that can be read.") from error
