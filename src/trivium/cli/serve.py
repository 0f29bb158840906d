"""`trivium serve PATH...`: listens, loads, says what is ready, serves until a signal to stop, then drains."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import click
from rich.console import Console, RenderableType
from rich.text import Text

from trivium import app
from trivium.catalogue import CATALOGUE
from trivium.cli.example_requests import print_requests
from trivium.cli.foreign_configuration import reader_of
from trivium.cli.options import PATHS, GroupedOption, ServerCommand, configure, server_options
from trivium.cli.screen import Progress, models_screen, state_line
from trivium.codecs.visible_text import visible
from trivium.commands import life
from trivium.commands.json_log import SCREEN
from trivium.commands.life import (
    FatalFailure,
    Life,
    LifeWords,
    ListenMoment,
    ServerParts,
    StartReport,
    StopReport,
)
from trivium.commands.process import screen
from trivium.commands.reload import FileFollower, files_of
from trivium.commands.stopping import keep_hangups
from trivium.config.options import ServerConfig
from trivium.core.server import Server
from trivium.fetchers.policy import shown
from trivium.machine.extras import lacking
from trivium.types.errors import ServeError
from trivium.types.operations import VersionStatus
from trivium.types.recording import RECORD_FACTS
from trivium.types.sources import ModelSource, Place
from trivium.types.spec import ModelSpec
from trivium.types.state import VersionState

_NAMED = 5
"""Places that the first line names."""

Greet = Callable[[Console, str, Sequence[ModelSpec]], None]


_ray = partial(
    click.option,
    cls=GroupedOption,
    heading="Ray Serve, on the cluster that RAY_ADDRESS names or that runs here, else on a local one",
)


@click.command("serve", cls=ServerCommand)
@PATHS
@click.option("--on", type=click.Choice(["ray"]), help="Serve on a cluster; see --help ray.")
@_ray(
    "--replicas",
    help="With --on ray: how many whole servers, like 3, or like 1-8 for as many as their saturation asks for.",
)
@_ray(
    "--spread",
    type=click.Choice(["all", "models"]),
    default="all",
    show_default=True,
    help="With --on ray: all models in each replica, or each in an application of its own, below /NAME.",
)
@_ray("--in-place", is_flag=True, help="With --on ray: every node has the paths; no files are handed over.")
@server_options
def command(paths: tuple[Place, ...], config_file: Path | None, on: str | None, **flags: Any) -> None:
    """Serve model folders and files over HTTP and gRPC until SIGTERM or Ctrl-C.

    Exit status 0 after a clean drain, 1 if requests were cut off or nothing could be served.
    """
    keep_hangups()
    wishes = {name: flags.pop(name) for name in ("replicas", "spread", "in_place")}
    config = configure(config_file, flags)
    if on is not None:
        check_reach(config)
        serve_on_ray(paths, config, **wishes)
        return
    for name, value in wishes.items():
        if value not in (None, "all", False):
            flag = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{flag} has no effect without --on ray: this process is the one server.")
    serve(paths, config, partial(print_requests, record=CATALOGUE.servers[config.server.profile]))


def serve(paths: Sequence[Place], config: ServerConfig, greet: Greet) -> None:
    """Serve until a signal to stop; a refusal ends the command with its sentence."""
    check_reach(config)
    if config.http.no_http and config.grpc.no_grpc:
        raise click.ClickException("Nothing would be served: leave out --no-http, or --no-grpc.")
    try:
        if config.server.log_format == "json":
            life.serve(logged(paths, config))
        life.serve(record(paths, config, greet, screen()))
    except ServeError as error:
        hints = filter(None, map(reader_of, paths))
        raise click.ClickException(" ".join((error.message, *hints))) from error


def check_reach(config: ServerConfig) -> None:
    """Refuse to listen beyond this machine where nobody said who may ask."""
    if config.wide and not (config.security.keys or config.security.open):
        raise click.ClickException(
            f"{config.wide} listens beyond this machine. Give --keys FILE to serve those alone who have a key "
            "(`trivium key` makes one), or --open to serve anybody who reaches it, or leave it at 127.0.0.1."
        )


def serve_on_ray(
    paths: Sequence[Place], config: ServerConfig, *, replicas: str | None, spread: str, in_place: bool
) -> None:
    """Serve on a cluster of Ray until a signal to stop. Only this needs Ray."""
    try:
        from trivium.ray.command import RayWishes
        from trivium.ray.command import serve_on_ray as run
    except ImportError as error:
        raise lacking("Clusters of Ray", error, "ray") from error
    run(
        paths,
        config,
        RayWishes(replicas=replicas, is_spread=spread == "models", is_in_place=in_place),
        click.echo,
    )


def record(
    paths: Sequence[Place], config: ServerConfig, greet: Greet, console: Console
) -> Life[RenderableType]:
    """Return how a server of these models lives: it answers while they load, and goes on if any of them serves."""

    def progress(server: Server) -> AbstractContextManager[Progress]:
        """Show what is being loaded."""
        return Progress(console, config.models.reload)

    follower = FileFollower(files_of(paths))

    async def up(server: Server, report: StartReport) -> None:
        """Show how it is asked."""
        follower.begin()
        if report.listeners.url:
            greet(console, report.listeners.url, report.specs)

    return Life(
        parts=ServerParts(catalogue=CATALOGUE, config=config),
        words=LifeWords(
            opening=_opening(paths),
            loaded=partial(_loaded, console, config.models.reload),
            stopping=_stopping,
            cut_off=_cut_off,
            stopped=_stopped,
        ),
        say=lambda line: console.print(line, markup=False, soft_wrap=isinstance(line, Text)),
        add=lambda server: app.add_all(server, paths),
        listens=ListenMoment.ADDED,
        fatal=FatalFailure.NONE if config.models.reload else FatalFailure.ALL,
        progress=progress,
        up=up,
        beside=follower.beside if config.models.reload else life.no_companion,
    )


def logged(paths: Sequence[Place], config: ServerConfig) -> Life[Text]:
    """Return the same life with its sentences in the log, without tables and requests to copy."""
    silent = Console(quiet=True)
    shown = record(paths, config, lambda console, url, specs: None, silent)

    @contextmanager
    def progress(server: Server) -> Iterator[Callable[[VersionStatus], None]]:
        """Log every change of a version's state, and how far fetching is."""
        with shown.progress(server):
            yield _log_state

    return replace(
        cast(Life[Text], shown),
        words=LifeWords(
            opening=_opening(paths),
            loaded=partial(_up, config.models.reload),
            stopping=_stopping,
            cut_off=_cut_off,
            stopped=_stopped,
        ),
        say=lambda line: SCREEN.log(logging.ERROR if line.style == "red" else logging.INFO, "%s", line.plain),
        progress=progress,
    )


def _log_state(status: VersionStatus) -> None:
    facts = {"model": status.model, "version": status.version, "state": status.state.value}
    level = logging.ERROR if status.state is VersionState.FAILED else logging.INFO
    SCREEN.log(level, "%s", state_line(status).plain, extra={RECORD_FACTS: facts})


def _opening(paths: Sequence[Place]) -> Iterator[Text]:
    """Say what is being read, since that may take a while."""
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    yield Text(f"Reading {', '.join(visible(_shown(path)) for path in paths[:_NAMED])}{more} ...")


def _shown(place: Place) -> str:
    if not isinstance(place, ModelSource):
        return str(place)
    return f"{place.name}={shown(place.uri)}" if place.name else shown(place.uri)


def _loaded(console: Console, goes_on: bool, report: StartReport) -> Iterator[RenderableType]:
    """Say what is up."""
    yield from models_screen(report.listing, report.specs, console)
    yield from _up(goes_on, report)


def _up(goes_on: bool, report: StartReport) -> Iterator[Text]:
    """Say where it listens, and what did not load."""
    if not report.specs:
        more = " Save a mended file, and it is loaded." if goes_on else ""
        yield Text(f"Nothing can be served; see the reasons above.{more}", "red")
    if not (report.specs or goes_on):
        return
    yield from map(Text, report.listeners.lines)
    if report.failed:
        count = f"{len(report.failed)} of {len(report.listing.versions)}"
        yield Text(f"{count} did not load; /v2/health/ready says so.", "red")


def _stopping(left: float) -> Iterator[Text]:
    yield Text(f"Stopping: no new connections; requests in work have {left:.3g} s to finish.")


def _cut_off(what: str) -> Iterator[Text]:
    yield Text(f"cut off: {what}", "red")


def _stopped(report: StopReport) -> Iterator[Text]:
    answered = "1 request" if report.answered == 1 else f"{report.answered} requests"
    yield Text(f"Stopped: {answered} answered, {report.unfinished or 'none'} cut off.")
