"""`trivium torchserve`: serve TorchServe's models under the original's own options, properties and variables.

Reads the command line, finds the configuration, and sets the process up; all else is in the modules beside it. Source:
spec sheet `torchserve`, section 1.
"""

import argparse
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

import click

from trivium.app import Catalogue
from trivium.codecs.visible_text import visible
from trivium.commands.command_line import read_properties, takes_words
from trivium.commands.process import run
from trivium.commands.server_line import ServerLine, error, warning
from trivium.commands.stopping import keep_hangups
from trivium.devices import count_gpus
from trivium.machine.control_group import usable_processors
from trivium.servers.torchserve.command import background
from trivium.servers.torchserve.command.certificates import can_sign, signed_pair
from trivium.servers.torchserve.command.life import LifeServices, live_as_torchserve
from trivium.servers.torchserve.command.logs import begin_logs, log_folder, metrics_folder
from trivium.servers.torchserve.command.options import (
    FAILED,
    Refused,
    check_log_config,
    check_model_store,
    check_other_places,
    notices_of,
    parser,
    settings_of,
)
from trivium.servers.torchserve.command.pid_file import PidFile, PidState
from trivium.servers.torchserve.command.properties_table import OWN_WORDS
from trivium.servers.torchserve.command.report import READY_LINE, summary
from trivium.servers.torchserve.command.settings import MakePair, TorchServeSettings, exposure, settle
from trivium.servers.torchserve.command.sources import gather
from trivium.servers.torchserve.command.stopping_command import ORPHAN, stop
from trivium.servers.torchserve.command.token_check import KEY_FILE, KeyFileWriter, make_tokens
from trivium.servers.torchserve.words.original import SERVER_VERSION
from trivium.servers.torchserve.words.tokens import Tokens
from trivium.types.errors import ConfigError, ServeError
from trivium.types.spoken import speak

ALREADY = "TorchServe is already running, please use torchserve --stop to stop TorchServe."


@takes_words("torchserve")
@click.pass_obj
def command(catalogue: Catalogue, words: Sequence[str]) -> None:
    """Serve TorchServe's models, with the options and files of torchserve."""
    speak(OWN_WORDS)
    options = parser().parse_args(list(words))
    try:
        _act(catalogue, options, words, os.environ)
    except (ServeError, Refused) as fault:
        what = "Invalid configuration: " if isinstance(fault, ConfigError) else ""
        click.echo(f"{what}{visible(fault.message)}")
        raise SystemExit(FAILED) from fault


def _act(
    catalogue: Catalogue, options: argparse.Namespace, words: Sequence[str], environment: Mapping[str, str]
) -> None:
    if options.version:
        click.echo(f"TorchServe Version is {SERVER_VERSION}")
        return
    file = PidFile(Path(tempfile.gettempdir()))
    if options.stop:
        stop(file, Path.cwd(), options.foreground)
        return
    check_not_running(file)
    check_log_config(options)
    folder = temp_folder(environment)
    if not options.foreground:
        read_settings(catalogue, options, environment, no_pair)
        background.start(words)
        return
    if folder:
        tempfile.tempdir = folder
    serve(catalogue, options, environment, file)


def check_not_running(file: PidFile) -> None:
    """Raise Refused where a server runs; take away what one has left that is gone."""
    state = file.look().state
    if state is PidState.RUNNING:
        raise Refused(ALREADY)
    if state is PidState.ORPHAN:
        click.echo(ORPHAN)
        file.remove()


def temp_folder(environment: Mapping[str, str]) -> str:
    """Return the folder for temporary files that TEMP names, empty for none. Raises Refused if it is not there."""
    folder = environment.get("TEMP", "")
    if folder and not Path(folder).is_dir():
        raise Refused(f"Invalid temp directory: {folder}, please check TEMP environment variable.")
    return folder


@dataclass(frozen=True, slots=True)
class PreparedStart:
    """The settings of a server, and the file that they were read from."""

    file: Path | None
    settings: TorchServeSettings


def read_settings(
    catalogue: Catalogue, options: argparse.Namespace, environment: Mapping[str, str], make_pair: MakePair
) -> PreparedStart:
    """Read everything that configures a server. Raises Refused and ServeError."""
    file = config_file(options, environment)
    check_model_store(options)
    sources = gather(read_properties(file), settings_of(options), environment)
    if not sources.faults and not sources.is_given("model_store"):
        raise Refused("Missing mandatory parameter --model-store")
    if not sources.faults and not os.path.isdir(sources.text("model_store")):
        raise Refused(
            f"{sources.origin('model_store')} directory not found: {sources.text('model_store')}. Make it, or name "
            "another."
        )
    check_other_places(options)
    machine = usable_processors(), count_gpus()
    return PreparedStart(file, settle(catalogue, sources, make_pair, machine, {"log_level": "info"}))


def config_file(options: argparse.Namespace, environment: Mapping[str, str]) -> Path | None:
    """Return the configuration file: the variable's, the flag's, the newest snapshot, or that of this folder."""
    named = environment.get("TS_CONFIG_FILE", "")
    if named:
        if not Path(named).is_file():
            raise Refused(f"TS_CONFIG_FILE file not found: {named}")
        return Path(named)
    if options.ts_config:
        if not Path(options.ts_config).is_file():
            raise Refused(f"--ts-config file not found: {options.ts_config}")
        return Path(options.ts_config)
    here = Path("config.properties")
    snapshot = None if options.no_config_snapshots else newest_snapshot(snapshot_folder(environment))
    return snapshot or (here if here.is_file() else None)


def snapshot_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of snapshots, below that of the logs."""
    return log_folder(environment) / "config"


def newest_snapshot(folder: Path) -> Path | None:
    """Return the last snapshot in a folder, whose names begin with the time; None where there is none."""
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix == ".cfg")
    except OSError:
        return None
    return found[-1] if found else None


def no_pair() -> tuple[str, str]:
    """Make no certificate; refuse where one could not be made."""
    can_sign()
    return "", ""


def serve(
    catalogue: Catalogue, options: argparse.Namespace, environment: Mapping[str, str], file: PidFile
) -> NoReturn:
    """Serve in this process, until a signal to stop. Raises Refused and ServeError for what keeps it from starting."""
    keep_hangups()
    with ExitStack() as ends:
        prepared = read_settings(catalogue, options, environment, partial(_signed_pair, ends))
        settings = prepared.settings
        level = settings.loaded.config.server.log_level
        logs = begin_logs(log_folder(environment), metrics_folder(environment), level)
        if not file.take():
            raise Refused(ALREADY)
        ends.callback(file.release)
        opening = [*_opening(options, prepared, logs.fault)]
        forget_variables(settings.sources.text("blacklist_env_vars"))
        tokens = _tokens(settings)
        if tokens is not None:
            logs.mask.hide = tokens.hidden
            opening.append(ServerLine(f"Requests need the keys in {Path.cwd() / KEY_FILE}."))
        services = LifeServices(
            opening,
            tokens,
            None if options.no_config_snapshots else snapshot_folder(environment),
            partial(_announce, options.ready_descriptor),
            ends.close,
            logs,
        )
        is_debuggable = settings.loaded.config.security.debuggable
        # Whoever runs it leaves the process from there: what is held here is given back before.
        run(live_as_torchserve(settings, services), is_debuggable=is_debuggable)


def _signed_pair(ends: ExitStack) -> tuple[str, str]:
    folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="trivium-torchserve-"))
    return signed_pair(Path(folder))


def _opening(options: argparse.Namespace, prepared: PreparedStart, log_fault: str) -> Iterator[ServerLine]:
    settings = prepared.settings
    yield ServerLine(summary(settings, count_gpus(), str(prepared.file or "")))
    yield from map(warning, (*settings.loaded.notices, *settings.notices, *notices_of(options)))
    if log_fault:
        yield warning(log_fault)
    if loud := exposure(settings):
        yield error(loud)


def _tokens(settings: TorchServeSettings) -> Tokens | None:
    if settings.token_seconds is None:
        return None
    return make_tokens(settings.token_seconds, KeyFileWriter(Path.cwd() / KEY_FILE))


def _announce(descriptor: int) -> None:
    with suppress(OSError):  # whoever has started it may read no more
        click.echo(READY_LINE)
    if descriptor >= 0:
        background.say_ready(descriptor)


def forget_variables(pattern: str) -> None:
    """Take the variables whose whole name the pattern matches out of this process's environment, and so out of that of
    every worker.
    """
    if pattern:
        for name in [name for name in os.environ if re.fullmatch(pattern, name)]:
            del os.environ[name]
