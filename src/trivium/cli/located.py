"""The argument of commands that take models: a path, or a URL of what is to be fetched."""

import click

from trivium.types.sources import Place, located


class _Located(click.ParamType[Place]):
    """Reads a path, or a URL of what is to be fetched."""

    name = "path or URL"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        return located(value)


LOCATED = _Located()
