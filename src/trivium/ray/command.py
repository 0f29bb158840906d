"""`trivium serve PATH... --on ray`: runs `trivium.ray.app` on the cluster at hand, or on one of this machine alone.

Decides what is started, what is refused before, and what is taken away at the end: only what this command started.
"""

import asyncio
import contextlib
import logging
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import ray
from ray import serve
from ray.serve.context import _get_global_client

from trivium.catalogue import CATALOGUE
from trivium.commands.stopping import EXTRA, StopSignals
from trivium.config.options import ServerConfig
from trivium.machine.control_group import usable_processors
from trivium.ray.application import QUIET, app, bounds
from trivium.ray.shipment import laid_out, spread
from trivium.ray.token_policy import MODE, fault
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.sources import ModelSource, Place

APPLICATION = "trivium"
"""The name of the application on the cluster."""

RAY_ENDS = 30.0
"""Seconds that Ray may take to end its own processes once the models are drained."""

_TOO_LARGE = (
    "Files that are too large for Ray's package are read by each node itself: name them by an address that is fetched "
    "(s3://, hf://), or by a path that all nodes have, with --in-place."
)

_RAYS = frozenset({"host", "http_port"})
"""Options of addresses that Ray Serve's proxies take."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RayWishes:
    """Says what somebody wants of a cluster, beyond the options of a server."""

    replicas: str | None = None
    """How many there shall be of each application; see `app`."""

    is_spread: bool = False
    """Each model is an application of its own, below its name."""

    is_in_place: bool = False
    """Every node has the paths already."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that this process is attached to, and what it brought into it."""

    address: str
    is_own: bool
    """It was started here, and ends with this command."""

    is_serve_own: bool
    """Ray Serve was started here."""


def serve_on_ray(places: Sequence[Place], config: ServerConfig, wishes: RayWishes, say: Say) -> None:
    """Serve until a signal to stop, drain, and take away what was started. Raises ServeError for options that cannot
    hold there, for a cluster without a token, and where an application does not come up.
    """
    logging.getLogger("ray.serve").setLevel(QUIET.log_level)
    options = {**_options(config, places), "replicas": wishes.replicas}
    by_name = spread(places) if wishes.is_spread else {"": places}
    _applications(by_name, options)  # refuses before anything starts
    with tempfile.TemporaryDirectory(prefix="trivium-ray-") as folder:
        with _attached(len(by_name) * bounds(wishes.replicas)[1]) as cluster:
            is_shipped = not (cluster.is_own or wishes.is_in_place)
            if not is_shipped:
                asyncio.run(_live(_applications(by_name, options), cluster, config, say))
        if is_shipped:
            targets = _applications(by_name, options, Path(folder))
            with _attached(shipped=folder) as cluster:  # anew: files go only where the first look allowed it
                asyncio.run(_live(targets, cluster, config, say))
    say("Stopped.")


def _applications(
    by_name: Mapping[str, Place | Sequence[Place]], options: Mapping[str, Any], folder: Path | None = None
) -> list[serve.RunTarget]:
    """Make the applications by their names, of paths as they are or as they are laid out in a folder."""
    made = []
    for number, (name, given) in enumerate(by_name.items()):
        places = [given] if isinstance(given, Path | ModelSource) else list(given)
        if folder is None:
            paths = [
                place.uri if isinstance(place, ModelSource) else os.path.abspath(place) for place in places
            ]
        else:
            paths = laid_out(places, folder, f"{number}-")
        made.append(
            serve.RunTarget(
                app(paths, **options),
                name=f"{APPLICATION}-{name}" if name else APPLICATION,
                route_prefix=f"/{quote(name)}",
            )
        )
    return made


async def _live(targets: Sequence[serve.RunTarget], cluster: Cluster, config: ServerConfig, say: Say) -> None:
    # Made behind Ray, which has handlers of its own for these signals.
    stop = StopSignals(config.server.drain_timeout + EXTRA + RAY_ENDS)
    say(
        f"Starting on {'a local cluster' if cluster.is_own else 'the cluster'} of Ray at {cluster.address} ..."
    )
    asked = asyncio.create_task(stop.wait())
    try:
        await _up(targets, config, asked)
        if not asked.done():
            for target in targets:
                say(f"HTTP on {_url()}{(target.route_prefix or '').rstrip('/')}")
        await asked
        say(f"Stopping: requests in work have {config.server.drain_timeout:.3g} s to finish.")
    finally:
        asked.cancel()
        await asyncio.to_thread(_taken_away, {target.name for target in targets}, cluster, stop)


async def _up(targets: Sequence[serve.RunTarget], config: ServerConfig, asked: "asyncio.Task[None]") -> None:
    """Return once all applications serve, or the command is asked to stop. Raises ServeError where one does not come
    up.
    """

    def up() -> None:
        serve.start(http_options={"host": config.server.host, "port": config.http.port}, logging_config=QUIET)
        serve.run_many(targets, wait_for_applications_running=True)

    running = asyncio.create_task(asyncio.to_thread(up))
    await asyncio.wait({running, asked}, return_when=asyncio.FIRST_COMPLETED)
    if not running.done():  # it fails once the applications are taken away
        running.add_done_callback(lambda task: task.cancelled() or task.exception())
    elif (error := running.exception()) is not None:
        raise ServeError(Code.LOAD_FAILED, f"What is to be served did not come up on Ray. {said_by(error)}")


def _taken_away(names: Collection[str], cluster: Cluster, stop: StopSignals) -> None:
    """Drain and remove the applications, and Ray Serve if this command started it and nobody else uses it."""
    if _get_global_client(raise_if_no_controller_running=False) is None:
        return
    for name in names:
        serve.delete(name, _blocking=False)
    for name in names:
        while stop.left:
            with contextlib.suppress(TimeoutError):  # Ray waits for a minute; the drain may take longer
                serve.delete(name)
                break
    if cluster.is_serve_own and not set(serve.status().applications) - set(names):
        serve.shutdown()


@contextlib.contextmanager
def _attached(room: int = 0, shipped: str | None = None) -> Iterator[Cluster]:
    """Attach to the cluster that RAY_ADDRESS names or that runs on this machine, or start a local one, with `room` for
    so many replicas; have a folder `shipped` to whatever node needs it.
    """
    is_own = _begun(room, shipped)
    try:
        address = ray.get_runtime_context().gcs_address
        if wrong := fault(address, os.environ, _variables_there()):
            raise ServeError(Code.INVALID, wrong)
        yield Cluster(address, is_own, not serve.status().proxies)
    finally:
        ray.shutdown()


def _begun(room: int, shipped: str | None) -> bool:
    """Attach, or start a cluster; return whether it was started."""
    os.environ.setdefault(
        "RAY_RUNTIME_ENV_IGNORE_GITIGNORE", "1"
    )  # models are what repositories of code leave out
    environment = None if shipped is None else {"working_dir": shipped}
    try:
        try:
            ray.init(address="auto", runtime_env=environment, logging_level="warning")
        except ConnectionError:
            if os.environ.get("RAY_ADDRESS"):
                raise
            # By itself Ray gives each replica a processor, and has those wait for ever that find none.
            ray.init(address="local", num_cpus=max(room, usable_processors()), logging_level="warning")
            return True
        return False
    except ServeError:
        raise
    except Exception as error:
        way_out = "" if shipped is None else f" {_TOO_LARGE}"
        raise ServeError(
            Code.INVALID, f"There is no cluster of Ray to serve on. {said_by(error)}{way_out}"
        ) from error


def _variables_there() -> Mapping[str, str]:
    """Return the variables by which processes of the cluster know whether its token is required."""

    def known() -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if name == MODE}

    found: dict[str, str] = ray.get(ray.remote(num_cpus=0, max_retries=0)(known).remote())
    return found


def _options(config: ServerConfig, places: Sequence[Place]) -> dict[str, Any]:
    """Return the options that were given, as `trivium.asgi` takes them, and leave to fetch what the command names."""
    schema = CATALOGUE.schema
    given = {name: schema.value(config, name) for name in config.origins if name not in _RAYS}
    named = [place.uri for place in places if isinstance(place, ModelSource) and place.is_named]
    if named:
        given["fetch_from"] = ",".join(filter(None, [given.get("fetch_from", ""), *named]))
    return given


def _url() -> str:
    """Return where the proxies of Ray Serve listen, which may have run before this command."""
    http = _get_global_client().http_config  # no public call says it
    return f"http://{http.host}:{http.port}"
