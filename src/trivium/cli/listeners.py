"""The front ends of a serving process as one: opened together, drained together, closed together.

Decides what a person is told where one cannot listen. Must not know what they serve.
"""

import asyncio

import click

from trivium import app
from trivium.config.options import ServerConfig
from trivium.core.server import Server
from trivium.frontends.h2.frontend import H2Frontend
from trivium.frontends.http.frontend import DrainReport, HttpFrontend
from trivium.types.listeners import BindAddress

HTTP, GRPC, METRICS = "HTTP", "gRPC", "metrics"


class CannotListen(click.ClickException):
    """The address of a service cannot be had."""

    def __init__(self, message: str, service: str, address: str) -> None:
        super().__init__(message)
        self.service = service
        self.address = address


class Listeners:
    """The front ends for HTTP, gRPC and metrics, each unless it is switched off. `url` is HTTP's; `lines` say where
    all listen, `places` the address of each.
    """

    def __init__(self, server: Server, config: ServerConfig) -> None:
        self._config = config
        self._http: HttpFrontend | None = None if config.http.no_http else app.http_frontend(server, config)
        self._metrics = None if config.metrics.port < 0 else app.metrics_frontend(server, config)
        self._grpc: H2Frontend | None = None if config.grpc.no_grpc else app.grpc_frontend(server, config)
        self.url = ""
        self.lines: list[str] = []
        self.places: dict[str, str] = {}

    async def start(self) -> None:
        """Listen. A port or an access log that cannot be had ends the command with its sentence."""
        config = self._config
        try:
            if self._http is not None:
                await self._start_http(self._http, config)
            if self._grpc is not None:
                await self._start_grpc(self._grpc, config)
            if self._metrics is not None:
                await self._start_metrics(self._metrics, config)
        except click.ClickException:
            await self.close()
            raise

    async def drain(self, grace: float) -> DrainReport:
        """Let nobody new in, let what is in work finish for `grace` seconds, cut off the rest."""
        reports = [front.drain(grace) for front in (self._http, self._grpc) if front is not None]
        done = await asyncio.gather(*reports)  # metrics go on meanwhile: a drain is worth watching
        unfinished = tuple(line for report in done for line in report.unfinished)
        return DrainReport(sum(report.finished for report in done), unfinished)

    async def close(self) -> None:
        """End at once."""
        for front in (self._http, self._grpc, self._metrics):
            if front is not None:
                await front.close()

    async def _start_http(self, front: HttpFrontend, config: ServerConfig) -> None:
        try:
            asked = BindAddress(config.server.host, config.http.port, is_shared=config.http.reuse_http_port)
            bind = await front.start(asked)
        except OSError as error:
            raise _refusal(error, HTTP, config.server.host, config.http.port) from error
        self.places[HTTP] = str(bind)
        self.url = f"http://{self.places[HTTP]}"
        self.lines.append(f"HTTP on {self.url} ({config.server.profile} profile)")

    async def _start_grpc(self, front: H2Frontend, config: ServerConfig) -> None:
        host = config.grpc.host or config.server.host
        try:
            bind = await front.start(
                BindAddress(host, config.grpc.port, is_shared=config.grpc.reuse_grpc_port)
            )
        except OSError as error:
            raise _refusal(error, GRPC, host, config.grpc.port) from error
        self.places[GRPC] = str(bind)
        self.lines.append(f"gRPC on {self.places[GRPC]}")

    async def _start_metrics(self, front: HttpFrontend, config: ServerConfig) -> None:
        host = config.metrics.host or config.server.host
        try:
            bind = await front.start(BindAddress(host, config.metrics.port))
        except OSError as error:
            raise _refusal(error, METRICS, host, config.metrics.port) from error
        self.places[METRICS] = str(bind)
        self.lines.append(f"Metrics on http://{self.places[METRICS]}/metrics")


def _refusal(error: OSError, service: str, host: str, port: int) -> click.ClickException:
    if error.filename is not None:
        return click.ClickException(
            f"Cannot write the access log {error.filename}: {error.strerror}. Choose another file with "
            "--access-log, or '-' for standard output."
        )
    name = service.lower()
    off = "--metrics-port=-1" if service == METRICS else f"--no-{name}"
    return CannotListen(
        f"Cannot listen on {host} port {port}: {error.strerror or error}. Choose another with --{name}-port "
        f"(0 takes a free one), or switch it off with {off}, or stop what listens there.",
        service,
        str(BindAddress(host, port)),
    )
