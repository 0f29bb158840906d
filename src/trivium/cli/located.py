"""The argument of commands that take models: a path, a URL of what is to be fetched, or a model's name at a hub, each
with the name that the model gets in front, if it shall have another one than its files say: `NAME=PATH`.
"""

import os
from dataclasses import replace
from pathlib import Path

import click

from trivium.codecs.near_names import near
from trivium.fetchers.hub_policy import SCHEME, HubModel, looks_like_a_name, read_uri
from trivium.types.errors import Code, ServeError
from trivium.types.registered_names import judge_name
from trivium.types.sources import ModelSource, Place, located

_SIGNS = frozenset("/:?@")
"""What stands before a sign of equality that belongs to a URL or a path."""

_NAMED = (SCHEME, "s3")
"""Schemes of what is fetched because the command line names it. The web's wait for --fetch-from: redirects lead on."""


def place_of(word: str) -> Place:
    """Return what somebody named in one word. What is there goes before a name at the hub; and where a folder of the
    name's first part is there, a path was meant. Raises NOT_FOUND for that, without asking anybody; INVALID for a name
    that no model may have.
    """
    name, equals, rest = word.partition("=")
    if equals and not _SIGNS & set(name) and not os.path.lexists(word):
        return _named(name, place_of(rest), word)
    place = located(word)
    if isinstance(place, ModelSource):
        return replace(place, is_named=word.partition(":")[0].lower() in _NAMED)
    file = word.rpartition(":")[0]  # of a handler's class
    if os.path.lexists(place) or os.path.lexists(file) or not looks_like_a_name(word):
        return place
    folder = Path(word.partition("/")[0])
    if folder.is_dir():
        raise _mistyped(word, folder)
    return ModelSource(f"{SCHEME}://{word}", is_named=True)


def _named(name: str, place: Place, word: str) -> ModelSource:
    """Return the place of a model that gets this name."""
    judge_name(name, f"a model before =, in {word}")
    source = place if isinstance(place, ModelSource) else ModelSource(str(place))
    return replace(source, name=name)


def hub_model(word: str) -> HubModel:
    """Return the model of a hub that a word names, with or without the scheme. Raises INVALID."""
    return read_uri(word if "://" in word else f"{SCHEME}://{word}")


def _mistyped(word: str, folder: Path) -> ServeError:
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        names = []
    meant = near(word.partition("/")[2], names)
    hint = f"Did you mean {folder / meant}?" if meant else "Correct the path."
    return ServeError(
        Code.NOT_FOUND,
        f"No such file or directory: {word}. {hint} Since {folder} is a folder here, no model of the Hugging Face hub "
        f"is looked for; for that, write {SCHEME}://{word}.",
    )


class _Located(click.ParamType[Place]):
    """Reads a path, a URL of what is to be fetched, or a model's name at a hub."""

    name = "path, URL or ORG/MODEL"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        return place_of(value)


LOCATED = _Located()
