"""`trivium serve PATH... --on ray`: runs `trivium.ray.app` on the cluster at hand, or on one of this machine alone.

Decides what is started, what is refused before, and what is taken away at the end: only what this command started.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray import serve
from ray.serve.context import _get_global_client

from trivium.catalogue import CATALOGUE
from trivium.commands.stopping import EXTRA, StopSignals
from trivium.config.options import ServerConfig
from trivium.ray.application import QUIET, app
from trivium.ray.token_policy import MODE, fault
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.sources import ModelSource, Place

APPLICATION = "trivium"
"""The name of the application on the cluster."""

RAY_ENDS = 30.0
"""Seconds that Ray may take to end its own processes once the models are drained."""

_RAYS = frozenset({"host", "http_port"})
"""Options of addresses that Ray Serve's proxies take."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that this process is attached to, and what it brought into it."""

    address: str
    is_own: bool
    """It was started here, and ends with this command."""

    is_serve_own: bool
    """Ray Serve was started here."""


def serve_on_ray(places: Sequence[Place], config: ServerConfig, say: Say, **wishes: Any) -> None:
    """Serve until a signal to stop, drain, and take away what was started. `wishes` are those of `app` that are no
    options of a server. Raises ServeError for options that cannot hold there, for a cluster without a token, and where
    the application does not come up.
    """
    logging.getLogger("ray.serve").setLevel(QUIET.log_level)
    made = app([_written(place) for place in places], **_options(config, places), **wishes)
    with _attached() as cluster:
        asyncio.run(_live(made, cluster, config, say))
    say("Stopped.")


async def _live(application: serve.Application, cluster: Cluster, config: ServerConfig, say: Say) -> None:
    # Made behind Ray, which has handlers of its own for these signals.
    stop = StopSignals(config.server.drain_timeout + EXTRA + RAY_ENDS)
    say(
        f"Starting on {'a local cluster' if cluster.is_own else 'the cluster'} of Ray at {cluster.address} ..."
    )
    asked = asyncio.create_task(stop.wait())
    try:
        await _up(application, config, asked)
        if not asked.done():
            say(f"HTTP on {_url()}")
        await asked
        say(f"Stopping: requests in work have {config.server.drain_timeout:.3g} s to finish.")
    finally:
        asked.cancel()
        await asyncio.to_thread(_taken_away, cluster, stop)


async def _up(application: serve.Application, config: ServerConfig, asked: "asyncio.Task[None]") -> None:
    """Return once the application serves, or the command is asked to stop. Raises ServeError where it does not come
    up.
    """

    def up() -> None:
        serve.start(http_options={"host": config.server.host, "port": config.http.port}, logging_config=QUIET)
        serve.run(application, name=APPLICATION, route_prefix="/")

    running = asyncio.create_task(asyncio.to_thread(up))
    await asyncio.wait({running, asked}, return_when=asyncio.FIRST_COMPLETED)
    if not running.done():  # it fails once the application is taken away
        running.add_done_callback(lambda task: task.cancelled() or task.exception())
    elif (error := running.exception()) is not None:
        raise ServeError(Code.LOAD_FAILED, f"The application did not come up on Ray. {said_by(error)}")


def _taken_away(cluster: Cluster, stop: StopSignals) -> None:
    """Drain and remove the application, and Ray Serve if this command started it and nobody else uses it."""
    if _get_global_client(raise_if_no_controller_running=False) is None:
        return
    while stop.left:
        with contextlib.suppress(TimeoutError):  # Ray waits for a minute; the drain may take longer
            serve.delete(APPLICATION)
            break
    if cluster.is_serve_own and not set(serve.status().applications) - {APPLICATION}:
        serve.shutdown()


@contextlib.contextmanager
def _attached() -> Iterator[Cluster]:
    """Attach to the cluster that RAY_ADDRESS names or that runs on this machine, or start a local one."""
    is_own = _begun()
    try:
        address = ray.get_runtime_context().gcs_address
        if wrong := fault(address, os.environ, _variables_there()):
            raise ServeError(Code.INVALID, wrong)
        yield Cluster(address, is_own, not serve.status().proxies)
    finally:
        ray.shutdown()


def _begun() -> bool:
    """Attach, or start a cluster; return whether it was started."""
    try:
        try:
            ray.init(address="auto", logging_level="warning")
        except ConnectionError:
            if os.environ.get("RAY_ADDRESS"):
                raise
            ray.init(address="local", logging_level="warning")
            return True
        return False
    except Exception as error:
        raise ServeError(Code.INVALID, f"There is no cluster of Ray to serve on. {said_by(error)}") from error


def _variables_there() -> Mapping[str, str]:
    """Return what processes of the cluster are told of its token."""

    def told() -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if name == MODE}

    found: dict[str, str] = ray.get(ray.remote(num_cpus=0, max_retries=0)(told).remote())
    return found


def _options(config: ServerConfig, places: Sequence[Place]) -> dict[str, Any]:
    """Return the options that were given, as `trivium.asgi` takes them, and leave to fetch what the command names."""
    schema = CATALOGUE.schema
    given = {name: schema.value(config, name) for name in config.origins if name not in _RAYS}
    named = [place.uri for place in places if isinstance(place, ModelSource) and place.is_named]
    if named:
        given["fetch_from"] = ",".join(filter(None, [given.get("fetch_from", ""), *named]))
    return given


def _written(place: Place) -> str:
    return place.uri if isinstance(place, ModelSource) else str(place.absolute())


def _url() -> str:
    """Return where the proxies of Ray Serve listen, which may have run before this command."""
    http = _get_global_client().http_config  # no public call says it
    return f"http://{http.host}:{http.port}"
