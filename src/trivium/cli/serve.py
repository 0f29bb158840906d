"""`trivium serve PATH...`: listens, loads, says what is ready, serves until a signal to stop, then drains."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from trivium import app
from trivium.app import Site
from trivium.catalogue import CATALOGUE
from trivium.cli.foreign_configuration import reader_of
from trivium.cli.options import PATHS, ServerCommand, configure, server_options
from trivium.cli.screen import Progress, print_models, print_requests
from trivium.commands.collector import COLLECTIONS
from trivium.commands.listeners import Listeners
from trivium.commands.process import observer, run, screen
from trivium.commands.stopping import CUT_OFF, StopSignals, keep_hangups
from trivium.config.options import ServerConfig
from trivium.core.server import Server
from trivium.types.errors import ServeError
from trivium.types.operations import Listing
from trivium.types.sources import Place
from trivium.types.spec import ModelSpec
from trivium.types.state import VersionState

Greet = Callable[[Console, str, Sequence[ModelSpec]], None]


@click.command("serve", cls=ServerCommand)
@PATHS
@server_options
def command(paths: tuple[Place, ...], config_file: Path | None, **flags: Any) -> None:
    """Serve model folders and files over HTTP and gRPC until SIGTERM or Ctrl-C.

    Exit status 0 after a clean drain, 1 if requests were cut off or nothing could be served.
    """
    keep_hangups()
    config = configure(config_file, flags)
    serve(paths, config, partial(print_requests, profile=config.server.profile))


def serve(paths: Sequence[Place], config: ServerConfig, greet: Greet) -> None:
    """Serve until a signal to stop; a refusal ends the command with its sentence."""
    if config.wide and not (config.security.keys or config.security.open):
        raise click.ClickException(
            f"{config.wide} listens beyond this machine. Give --keys FILE to serve those alone who have a key "
            "(`trivium key` makes one), or --open to serve anybody who reaches it, or leave it at 127.0.0.1."
        )
    if config.http.no_http and config.grpc.no_grpc:
        raise click.ClickException("Nothing would be served: leave out --no-http, or --no-grpc.")
    try:
        run(_main(paths, config, greet), is_debuggable=config.security.debuggable)
    except ServeError as error:
        hints = filter(None, map(reader_of, paths))
        raise click.ClickException(" ".join((error.message, *hints))) from error


async def _main(paths: Sequence[Place], config: ServerConfig, greet: Greet) -> int:
    console = screen()
    stop = StopSignals(config.server.drain_timeout)
    async with app.build(CATALOGUE, config, observer(config.workers.shares_processor)) as server:
        app.add_all(server, paths)
        listeners = Listeners(server, Site(CATALOGUE, config, server.regions))
        await listeners.start()
        loading = asyncio.ensure_future(_load(server, console))
        await asyncio.wait(
            {loading, (stopped := asyncio.ensure_future(stop.wait()))}, return_when="FIRST_COMPLETED"
        )
        if not loading.done():
            loading.cancel()
            await asyncio.wait({loading})
        elif _tell(console, server, loading.result(), listeners.lines):
            if listeners.url:
                greet(console, listeners.url, server.specs())
        else:
            await listeners.close()
            stopped.cancel()
            return 1
        COLLECTIONS.settle()
        await stopped
        return await _go_down(server, listeners, console, stop)


async def _load(server: Server, console: Console) -> Listing:
    with Progress(console) as progress:
        return await server.start(progress)


def _tell(console: Console, server: Server, listing: Listing, places: Sequence[str]) -> bool:
    """Print what is up; False if nothing is."""
    specs = server.specs()
    print_models(console, listing, specs)
    if not specs:
        console.print("Nothing can be served; see the reasons above.", style="red")
        return False
    failed = sum(row.state is VersionState.FAILED for row in listing.versions)
    for place in places:
        console.print(place, soft_wrap=True, markup=False)
    if failed:
        console.print(
            f"{failed} of {len(listing.versions)} did not load; /v2/health/ready says so.", style="red"
        )
    return True


async def _go_down(server: Server, listeners: Listeners, console: Console, stop: StopSignals) -> int:
    server.begin_drain()
    console.print(f"Stopping: no new connections; requests in work have {stop.left:.3g} s to finish.")
    report = await listeners.drain(stop.left)
    await listeners.close()
    lines = (*report.unfinished, *await server.close(stop.left))
    for line in lines:
        console.print(f"cut off: {line}", style="red", markup=False, soft_wrap=True)
    console.print(f"Stopped. {report.finished} requests finished, {len(report.unfinished)} cut off.")
    return CUT_OFF if lines else 0
