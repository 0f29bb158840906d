"""The front ends of a serving process as one: opened together, drained together, closed together.

Decides what a person is told where one cannot listen. Must not know what they serve.
"""

import asyncio

import click

from trivium import app
from trivium.config.options import ServerConfig
from trivium.core.server import Server
from trivium.frontends.http.frontend import DrainReport
from trivium.types.listeners import BindAddress, Listener, Role, Transport


class CannotListen(click.ClickException):
    """The address of a service cannot be had."""

    def __init__(self, message: str, service: str, address: str) -> None:
        super().__init__(message)
        self.service = service
        self.address = address


class Listeners:
    """A front end for each listener that the profile and the configuration give. `url` is that of the first over HTTP
    that infers; `lines` say where all listen, `places` the address of each by its name.
    """

    def __init__(self, server: Server, config: ServerConfig) -> None:
        self._profile = config.server.profile
        self._fronts = [(each, app.front_end(server, config, each)) for each in app.listeners(config)]
        self.url = ""
        self.lines: list[str] = []
        self.places: dict[str, str] = {}

    async def start(self) -> None:
        """Listen. A port or an access log that cannot be had ends the command with its sentence."""
        for listener, front in self._fronts:
            try:
                bind = await front.start(listener.bind)
            except OSError as error:
                await self.close()
                raise _refusal(error, listener) from error
            self.places[listener.name] = str(bind)
            self.lines.append(self._line(listener, bind))

    async def drain(self, grace: float) -> DrainReport:
        """Let nobody new in, let what is in work finish for `grace` seconds, cut off the rest."""
        draining = [front.drain(grace) for each, front in self._fronts if each.role is not Role.METRICS]
        done = await asyncio.gather(*draining)  # metrics go on meanwhile: a drain is worth watching
        unfinished = tuple(line for report in done for line in report.unfinished)
        return DrainReport(sum(report.finished for report in done), unfinished)

    async def close(self) -> None:
        """End at once."""
        for _, front in self._fronts:
            await front.close()

    def _line(self, listener: Listener, bind: BindAddress) -> str:
        if listener.transport is Transport.GRPC:
            return f"{listener.name} on {bind}"
        if listener.role is Role.METRICS:
            return f"Metrics on http://{bind}/metrics"
        self.url = self.url or f"http://{bind}"
        return f"{listener.name} on http://{bind} ({self._profile} profile)"


def _refusal(error: OSError, listener: Listener) -> click.ClickException:
    if error.filename is not None:
        return click.ClickException(
            f"Cannot write the access log {error.filename}: {error.strerror}. Choose another file with "
            "--access-log, or '-' for standard output."
        )
    name, bind = listener.name.lower(), listener.bind
    off = "--metrics-port=-1" if listener.role is Role.METRICS else f"--no-{name}"
    return CannotListen(
        f"Cannot listen on {bind.host} port {bind.port}: {error.strerror or error}. Choose another with "
        f"--{name}-port (0 takes a free one), or switch it off with {off}, or stop what listens there.",
        listener.name,
        str(bind),
    )
