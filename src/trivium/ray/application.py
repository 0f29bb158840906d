"""An application of Ray Serve that serves model folders, with whole servers for its replicas.

Decides what a replica is: one whole server behind its ASGI application, so that batches, streams, limits and the drain
are those of `trivium serve`. Ray places, starts, supervises and replaces replicas.
"""

import os
from collections.abc import Mapping, Sequence
from inspect import Parameter, Signature
from os import PathLike
from typing import Any

from ray import serve
from ray.serve import Application
from ray.serve.schema import LoggingConfig

from trivium import catalogue
from trivium.commands.asgi_application import AsgiApplication
from trivium.commands.stopping import EXTRA
from trivium.frontends.asgi.caller import Message, Receive, Send
from trivium.ray.scaling_policy import METRIC, by_saturation
from trivium.types.errors import Code, ServeError
from trivium.types.sources import Place, located
from trivium.types.spoken import spoken

NAME = "trivium"
"""The deployment's name, by which a configuration of Ray Serve changes its replicas and resources."""

_MOST_IN_A_REPLICA = 10_000
"""Requests that Ray lets into one replica at once: so many that the bounds of the replica's own queues decide."""

QUIET = LoggingConfig(log_level="WARNING", enable_access_log=False)
"""What Ray Serve logs of its own: a line for each request costs more than most requests; ours is `access_log`."""

_HEALTH = "/v2/health/live"


def app(paths: Any, /, **options: Any) -> Application:
    """Make an application of Ray Serve in which each replica serves these model folders and files.

    `paths` is one path or several, and `options` are those of `trivium.asgi` and `replicas`: how many replicas, like 3,
    or between which numbers their saturation decides, like "1-8"; or `paths` is a mapping that holds all of these, like
    {"paths": ["/models"], "open": True}, as Ray hands over the `args` of its configuration files. Paths are looked up
    on the node of the replica: give absolute ones, or those in the working_dir of its runtime_env, or addresses that
    are fetched. Nothing is loaded yet. A `user_config` of the deployment may exchange `paths` while it serves: see
    `Replica.reconfigure`. Raises ConfigError for an option that there is not, or whose value does not fit, and INVALID
    for no paths and for options of sockets, which are Ray's.
    """
    found, given = _given(paths, options)
    amount = _amount(given.pop("replicas", None))
    drain = catalogue.configured(**given).server.drain_timeout
    _application(found, given)  # refuses here what every replica would refuse

    def made() -> ReplicaApplication:
        return ReplicaApplication(_application(found, given))

    deployment = serve.deployment(
        serve.ingress(made)(_replica_class(found)),
        name=NAME,
        max_ongoing_requests=_MOST_IN_A_REPLICA,
        graceful_shutdown_timeout_s=drain + EXTRA,
        logging_config=QUIET,
        **amount,
    )
    return deployment.bind()


class ReplicaApplication:
    """An application as a replica runs it: one whose models cannot be loaded begins all the same, and its first check
    of health raises why. Of a lifespan that fails Ray tells whoever deploys it no more than that.
    """

    def __init__(self, served: AsgiApplication) -> None:
        self.served = served

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """See `AsgiApplication`."""
        if scope["type"] != "lifespan":
            await self.served(scope, receive, send)
            return
        has_failed = False

        async def tell(message: Message) -> None:
            nonlocal has_failed
            has_failed = message["type"] == "lifespan.startup.failed"
            await send({"type": "lifespan.startup.complete"} if has_failed else message)

        try:
            await self.served(scope, receive, tell)
        except Exception:
            if not has_failed:
                raise
            await receive()
            await send({"type": "lifespan.shutdown.complete"})


# Ray takes builders of one parameter alone.
app.__signature__ = Signature([Parameter("args", Parameter.POSITIONAL_ONLY)])  # type: ignore[attr-defined]


def _replica_class(first: Sequence[Any]) -> type:
    """Return the class of a replica that begins with these paths. Made here: Ray hands over by value what it finds in a
    function, and cannot derive from what it finds in a module.
    """

    class Replica:
        """One whole server in a process of Ray's."""

        app: ReplicaApplication

        async def check_health(self) -> None:
            """Raise RuntimeError where the server does not answer that it lives: Ray then replaces the replica.
            ServeError where it could not be started.
            """
            try:
                status = await _fault(self.app.served)
            except ServeError as error:
                raise _on_this_node(error) from error
            if status:
                raise RuntimeError(f"The server in this replica answers {_HEALTH} with {status}.")

        async def reconfigure(self, user_config: Any) -> None:
            """Serve the `paths` of a user_config from now on, those of the application where it names none: what is new
            or has changed is loaded before what it replaces is dropped, and requests go on meanwhile. Any other change,
            like one of `revision`, has the files looked at anew. Raises ServeError for what cannot be served; what
            served before does so still.
            """
            await self.app.served.exchange(_changed(user_config, first))

        async def record_autoscaling_stats(self) -> dict[str, float]:
            """Report how full the fullest model is."""
            return {METRIC: await self.app.served.saturation()}

    return Replica


def _on_this_node(error: ServeError) -> ServeError:
    """Return an error of the start with where the files are looked for."""
    where = f"Paths are those of the replica's node, relative ones of {os.getcwd()}."
    way = "Give paths that every node has, or addresses, or the folder as the working_dir of the runtime_env."
    return ServeError(error.code, spoken(f"{error.message} {where} {way}"))


def _changed(user_config: Any, first: Sequence[Any]) -> list[Place]:
    """Return the places that a user_config has served. Raises INVALID."""
    known = ("paths", "revision")
    if not isinstance(user_config, Mapping) or (unknown := [key for key in user_config if key not in known]):
        found = f"has {unknown[0]!r}" if isinstance(user_config, Mapping) else f"is {user_config!r}"
        raise ServeError(
            Code.INVALID,
            spoken(
                f"The user_config of {NAME} {found}. It takes paths, the folders and files to serve from now on, and "
                "revision, any value, whose change has the files looked at anew: {paths: [/models/b]}. Options of the "
                "server are args of the application."
            ),
        )
    return [located(path) for path in _found(_listed(user_config.get("paths", first)))]


def bounds(replicas: Any) -> tuple[int, int]:
    """Return the least and the most replicas that somebody asks for, like "1-8" or 3; one where nobody says. Raises
    INVALID.
    """
    least, has_most, most = str(1 if replicas is None else replicas).partition("-")
    try:
        low, high = int(least), int(most if has_most else least)
    except ValueError:
        low = high = 0
    if not 1 <= low <= high:
        raise ServeError(
            Code.INVALID,
            spoken(
                f"replicas is {replicas!r}. Give how many there shall be, like 3, or the least and the most, like 1-8, "
                "between which their saturation decides."
            ),
        )
    return low, high


def _amount(replicas: Any) -> dict[str, Any]:
    """Return the options of a deployment that say how many replicas it has: none where nobody says. Raises INVALID."""
    low, high = bounds(replicas)
    if replicas is None:
        return {}
    if low == high:
        return {"num_replicas": low}
    policy = {"policy_function": f"{by_saturation.__module__}:{by_saturation.__name__}"}
    return {"autoscaling_config": {"min_replicas": low, "max_replicas": high, "policy": policy}}


def _listed(paths: Any) -> list[Any]:
    return [paths] if isinstance(paths, str | PathLike) else list(paths)


def _given(paths: Any, options: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return paths and options, of either way to give them."""
    if isinstance(paths, Mapping):
        options = {**paths, **options}
        paths = options.pop("paths", ())
    found = _listed(paths)
    if not found:
        raise ServeError(
            Code.INVALID, 'trivium.ray:app was given no models. Give folders or files: paths: ["/models"].'
        )
    return found, dict(options)


def _application(paths: list[Any], options: dict[str, Any]) -> AsgiApplication:
    return catalogue.asgi(_found(paths), **options)


def _found(paths: Sequence[Any]) -> list[str]:
    """Return paths by which this process and its workers find the same: a replica begins in its working_dir."""
    return [text if "://" in text else os.path.abspath(text) for text in map(os.fspath, paths)]


async def _fault(application: AsgiApplication) -> int:
    """Ask a server whether it lives; return the status of 500 or above with which it answers, or 0."""
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": _HEALTH,
        "raw_path": _HEALTH.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 0),
    }
    await application(scope, receive, send)
    return next((status for status in statuses if status >= 500), 0)
