"""`trivium djl-serving`: serve DJL's models under the original's own flags, files and variables.

Reads the command line and sets the process up; all else is in the modules beside it. Source: spec sheet `djl`, sections
1.1 and 1.2.
"""

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import click

from trivium.app import Catalogue
from trivium.commands.command_line import read_properties, takes_words
from trivium.commands.life import serve
from trivium.commands.process import VisibleFormatter, log_through
from trivium.commands.server_line import write_to
from trivium.commands.stopping import keep_hangups
from trivium.devices import count_gpus
from trivium.servers.djl.command.keys import OWN_WORDS
from trivium.servers.djl.command.life import STATUSES, record
from trivium.servers.djl.command.report import opening
from trivium.servers.djl.command.server_metrics import failure
from trivium.servers.djl.command.settings import ServingSettings, settle
from trivium.servers.djl.command.sources import gather
from trivium.types.errors import ServeError
from trivium.types.spoken import speak

_log = logging.getLogger("ModelServer")
_LEVELS = {"WARNING": "WARN", "CRITICAL": "ERROR"}


class _Parser(argparse.ArgumentParser):
    """Refuses in the manner of the original: the usage, and exit status 1."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(STATUSES.failed, f"{self.prog}: {message}\n")


class ServingLogFormatter(VisibleFormatter):
    """Formats records as the original's console shows them: the level, five characters wide, and who logs."""

    def format(self, record: logging.LogRecord) -> str:
        record.levelname = _LEVELS.get(record.levelname, record.levelname)
        return super().format(record)


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    made = _Parser("djl-serving", usage="djl-serving [OPTIONS]", allow_abbrev=False)
    made.add_argument(
        "-f", "--config-file", metavar="FILE", default="", help="Path to the configuration properties file."
    )
    made.add_argument(
        "-m", "--models", "-w", "--workflows", dest="models", nargs="+", action="extend", default=[], metavar="URL",
        help="Models to load at startup: [name[:version[:engine[:devices]]]=]url.",
    )  # fmt: skip
    made.add_argument(
        "-s", "--model-store", metavar="DIR", default="", help="Model store where models are loaded from."
    )
    made.add_argument("-i", "--install", nargs="+", action="extend", default=[], help=argparse.SUPPRESS)
    return made


@takes_words("djl-serving")
@click.pass_obj
def command(catalogue: Catalogue, words: Sequence[str]) -> None:
    """Serve DJL's models, with the flags and files of djl-serving."""
    keep_hangups()
    speak(OWN_WORDS)
    options = parser().parse_args(list(words))
    if options.install:
        raise click.ClickException(
            "-i installs Java packages, which do not run here. Leave it out; a model in Python names its own in "
            "requirements.txt."
        )
    log_through(ServingLogFormatter("[%(levelname)-5s] %(name)s - %(message)s"), logging.INFO)
    file, settings = _settled(catalogue, options, os.environ)
    serve(record(settings, opening(settings, os.environ, count_gpus(), file)))


def _settled(
    catalogue: Catalogue, options: argparse.Namespace, environment: Mapping[str, str]
) -> tuple[str, ServingSettings]:
    """Return the configuration file and all settings. Ends the command where they are at fault."""
    try:
        home = home_of(environment)
        file = config_file(options.config_file, home)
        properties = read_properties(file)
        sources = gather(properties, options.models, options.model_store, environment)
        return str(file or ""), settle(catalogue, sources, environment, home)
    except ServeError:
        write_to(_log)(failure("ConfigurationError"))
        raise


def home_of(environment: Mapping[str, str]) -> Path:
    """Return the server's home. Raises ClickException for one that is not there."""
    home = Path(environment.get("MODEL_SERVER_HOME") or Path.cwd())
    if not home.is_dir():
        raise click.ClickException(f"Model server home not found: {home}. Correct MODEL_SERVER_HOME.")
    return home


def config_file(given: str, home: Path) -> Path | None:
    """Return the configuration file: the one that is given, or one of the home's. Raises ClickException."""
    if given:
        path = Path(given)
        if not path.is_file():
            raise click.ClickException(f"Configuration file not found: {path}")
        return path
    places = (home / "conf" / "config.properties", home / "config.properties")
    return next((place for place in places if place.is_file()), None)
