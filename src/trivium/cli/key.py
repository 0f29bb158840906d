"""`trivium key NAME`: makes a key, and prints it with the table that lets a server know it."""

import secrets

import click

from trivium.access.keys import SCOPES, digest_of, parse_keys
from trivium.types.errors import ServeError

_BYTES = 32
_PREFIX = "trivium_"
"""By which people, and programs that look for secrets, see what it is."""


@click.command("key")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(list(SCOPES)),
    default=("infer",),
    show_default=True,
    help="What the key may do; repeatable. manage includes the others.",
)
@click.option("--expires", default="", help="Day from which it is refused (UTC), or a time, like 2027-01-31.")
def command(name: str, scopes: tuple[str, ...], expires: str) -> None:
    """Make a key for NAME.

    Standard output has the table for the file of --keys, standard error the key itself: it is shown this once and kept
    nowhere. `trivium key ci >> keys.toml` adds it to a file.
    """
    key = _PREFIX + secrets.token_urlsafe(_BYTES)
    table = _table(name, key, scopes, expires)
    try:
        parse_keys(table, "trivium key")
    except ServeError as error:
        raise click.ClickException(error.message) from error
    click.echo(table, nl=False)
    click.echo(f"\nThe key of {name}; it is not shown again:\n\n{key}\n", err=True)


def _table(name: str, key: str, scopes: tuple[str, ...], expires: str) -> str:
    listed = ", ".join(f'"{scope}"' for scope in dict.fromkeys(scopes))
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    lines = ["[[key]]", f'name = "{quoted}"', f'sha256 = "{digest_of(key).hex()}"', f"scopes = [{listed}]"]
    if expires:
        lines.append(f"expires = {expires}")
    return "\n".join([*lines, ""])
