"""Model folders as an application of Ray Serve: `trivium.ray:app` for `serve run`, `serve deploy` and KubeRay.

Decides what a replica is: one whole server behind its ASGI application, so that batches, streams, limits and the drain
are those of `trivium serve`. Ray places, starts, supervises and replaces replicas. Needs the extra `ray`.
"""

from collections.abc import Iterable, Mapping
from inspect import Parameter, Signature
from os import PathLike
from typing import Any

from ray import serve
from ray.serve import Application

from trivium import catalogue
from trivium.commands.asgi_application import AsgiApplication
from trivium.commands.stopping import EXTRA
from trivium.types.errors import Code, ServeError

NAME = "trivium"
"""The deployment's name, by which a configuration of Ray Serve changes its replicas and resources."""

_MOST_IN_A_REPLICA = 10_000
"""Requests that Ray lets into one replica at once: so many that the bounds of the replica's own queues decide."""

_HEALTH = "/v2/health/live"


def app(paths: Any, /, **options: Any) -> Application:
    """Make an application of Ray Serve in which each replica serves these model folders and files.

    `paths` is one path or several, and `options` are those of `trivium.asgi`; or `paths` is a mapping that holds both,
    like {"paths": ["/models"], "open": True}, as Ray hands over the `args` of its configuration files. Paths are looked
    up on the node of the replica: give absolute ones, or addresses that are fetched. Nothing is loaded yet. Raises
    ConfigError for an option that there is not, or whose value does not fit, and INVALID for no paths and for options
    of sockets, which are Ray's.
    """
    given = _given(paths, options)
    drain = catalogue.configured(**given[1]).server.drain_timeout
    _application(*given)  # refuses here what every replica would refuse

    class Replica:
        """One whole server in a process of Ray's."""

        app: AsgiApplication

        async def check_health(self) -> None:
            """Raise RuntimeError where the server does not answer that it lives: Ray then replaces the replica."""
            if status := await _fault(self.app):
                raise RuntimeError(f"The server in this replica answers {_HEALTH} with {status}.")

    def made() -> AsgiApplication:
        return _application(*given)

    deployment = serve.deployment(
        serve.ingress(made)(Replica),
        name=NAME,
        max_ongoing_requests=_MOST_IN_A_REPLICA,
        graceful_shutdown_timeout_s=drain + EXTRA,
    )
    return deployment.bind()


# Ray takes builders of one parameter alone.
app.__signature__ = Signature([Parameter("args", Parameter.POSITIONAL_ONLY)])  # type: ignore[attr-defined]


def _given(paths: Any, options: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return paths and options, of either way to give them."""
    if isinstance(paths, Mapping):
        options = {**paths, **options}
        paths = options.pop("paths", ())
    listed: Iterable[Any] = [paths] if isinstance(paths, str | PathLike) else paths
    found = list(listed)
    if not found:
        raise ServeError(
            Code.INVALID, 'trivium.ray:app was given no models. Give folders or files: paths: ["/models"].'
        )
    return found, dict(options)


def _application(paths: list[Any], options: dict[str, Any]) -> AsgiApplication:
    return catalogue.asgi(paths, **options)


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
