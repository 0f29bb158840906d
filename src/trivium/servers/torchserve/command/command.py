"""`trivium torchserve`: serve TorchServe's models under the original's own options, properties and variables.

Reads the command line, finds the configuration, and sets the process up; all else is in the modules beside it. Source:
spec sheet `torchserve`, section 1.
"""

import argparse
import logging
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

import click

from trivium.app import Catalogue
from trivium.codecs.java_properties import MAX_BYTES, Properties, read
from trivium.codecs.visible_text import visible
from trivium.commands.process import run
from trivium.commands.stopping import keep_hangups
from trivium.devices import count_gpus
from trivium.files import open_file
from trivium.servers.torchserve.command import background
from trivium.servers.torchserve.command.certificates import can_sign, signed_pair
from trivium.servers.torchserve.command.life import LifeServices, live
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
from trivium.servers.torchserve.command.report import READY_LINE, summary
from trivium.servers.torchserve.command.settings import MakePair, TorchServeSettings, exposure, settle
from trivium.servers.torchserve.command.sources import gather
from trivium.servers.torchserve.command.stopping_command import ORPHAN, stop
from trivium.servers.torchserve.command.token_check import KEY_FILE, KeyFileWriter, make_tokens
from trivium.servers.torchserve.words.original import SERVER_VERSION
from trivium.servers.torchserve.words.tokens import Tokens
from trivium.types.errors import ConfigError, ServeError

ALREADY = "TorchServe is already running, please use torchserve --stop to stop TorchServe."
_log = logging.getLogger("org.pytorch.serve.ModelServer")


@click.command(
    "torchserve",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(catalogue: Catalogue, words: Sequence[str]) -> None:
    """Serve TorchServe's models, with the options and files of torchserve."""
    options = parser().parse_args(list(words))
    try:
        _act(catalogue, options, words, os.environ)
    except (ServeError, Refused) as error:
        what = "Invalid configuration: " if isinstance(error, ConfigError) else ""
        click.echo(f"{what}{visible(error.message)}")
        raise SystemExit(FAILED) from error


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
        read_settings(catalogue, options, environment, _no_pair)
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
    machine = len(os.sched_getaffinity(0)), count_gpus()
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


def read_properties(file: Path | None) -> Properties | None:
    """Read a configuration file; None for none. Raises Refused for one that cannot be read."""
    if file is None:
        return None
    try:
        with open_file(file) as opened:
            return read(str(file), opened.read(MAX_BYTES + 1))
    except OSError as error:
        raise Refused(f"{file}: {error.strerror}. Give a file that can be read.") from error


def _no_pair() -> tuple[str, str]:
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
        _say(options, prepared, logs.fault)
        forget_variables(settings.sources.text("blacklist_env_vars"))
        tokens = _tokens(settings)
        if tokens is not None:
            logs.mask.hide = tokens.hidden
        services = LifeServices(
            tokens,
            None if options.no_config_snapshots else snapshot_folder(environment),
            partial(_announce, options.ready_descriptor),
            ends.close,
            logs,
        )
        is_debuggable = settings.loaded.config.security.debuggable
        # Whoever runs it leaves the process from there: what is held here is given back before.
        run(live(settings, services), is_debuggable=is_debuggable)


def _signed_pair(ends: ExitStack) -> tuple[str, str]:
    folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="trivium-torchserve-"))
    return signed_pair(Path(folder))


def _say(options: argparse.Namespace, prepared: PreparedStart, log_fault: str) -> None:
    settings = prepared.settings
    _log.info("%s", summary(settings, count_gpus(), str(prepared.file or "")))
    for notice in (*settings.loaded.notices, *settings.notices, *notices_of(options)):
        _log.warning("%s", notice)
    if log_fault:
        _log.warning("%s", log_fault)
    if loud := exposure(settings):
        _log.error("%s", loud)


def _tokens(settings: TorchServeSettings) -> Tokens | None:
    if settings.token_seconds is None:
        return None
    writer = KeyFileWriter(Path.cwd() / KEY_FILE)
    _log.info("Requests need the keys in %s.", writer.path)
    return make_tokens(settings.token_seconds, writer)


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
