"""Says which command reads a `config.properties`, for whoever gives it to another one."""

from pathlib import Path

from trivium.commands.command_line import read_properties
from trivium.servers.djl.command.keys import CONFIG as DJL
from trivium.servers.torchserve.command.properties_table import CONFIG as TORCHSERVE
from trivium.types.errors import ServeError

_SUFFIX = ".properties"
_TORCHSERVE = (
    "TorchServe's configuration is read by `trivium torchserve --ts-config {0}`, and explained by `trivium check "
    "--ts-config {0}`."
)
_DJL = (
    "DJL Serving's configuration is read by `trivium djl-serving -f {0}`, and explained by `trivium check --djl-config "
    "{0}`."
)


def reader_of(path: object) -> str:
    """Return a sentence that names the commands which read a file; empty for one that is no such configuration."""
    if not isinstance(path, Path) or path.suffix != _SUFFIX or not path.is_file():
        return ""
    try:
        properties = read_properties(path)
    except ServeError:
        properties = None
    names = set() if properties is None else set(properties.entries)
    djl, torchserve = len(names & DJL.rows.keys()), len(names & TORCHSERVE.rows.keys())
    texts = [_TORCHSERVE] if torchserve >= djl else []
    texts += [_DJL] if djl >= torchserve else []
    return " ".join(texts).format(path)
