"""The front ends of a serving process as one: opened together, drained together, closed together.

Decides what a person is told where one cannot listen. Must not know what they serve.
"""

import asyncio
from typing import TYPE_CHECKING

import click

from trivium import app
from trivium.config import ServerConfig
from trivium.core.server import Server
from trivium.frontends.http import DrainReport, HttpFrontend
from trivium.types.errors import Code, ServeError

if TYPE_CHECKING:
    from trivium.frontends.grpc_server import GrpcFrontend


class Listeners:
    """HTTP, and gRPC unless it is switched off or grpcio lacks. `url` is HTTP's; `lines` say where all listen,
    `why_no_grpc` what lacks.
    """

    def __init__(self, server: Server, config: ServerConfig) -> None:
        self._config = config
        self._http: HttpFrontend = app.http_frontend(server, config)
        self._grpc: GrpcFrontend | None = None
        self.why_no_grpc = ""
        if not config.no_grpc:
            try:
                self._grpc = app.grpc_frontend(server, config)
            except ServeError as error:
                if error.code is not Code.UNSUPPORTED:
                    raise
                self.why_no_grpc = f"gRPC is not served: {error.message}"
        self.url = ""
        self.lines: list[str] = []

    @property
    def serves_grpc(self) -> bool:
        """Is there a front end for it?"""
        return self._grpc is not None

    async def start(self) -> None:
        """Listen. A port or an access log that cannot be had ends the command with its sentence."""
        config = self._config
        host = f"[{config.host}]" if ":" in config.host else config.host
        try:
            port = await self._http.start(config.host, config.http_port)
        except OSError as error:
            raise _refusal(error, config, "--http-port", config.http_port) from error
        self.url = f"http://{host}:{port}"
        self.lines.append(f"HTTP on {self.url} ({config.profile} profile)")
        if self._grpc is not None:
            try:
                port = await self._grpc.start(config.host, config.grpc_port)
            except OSError as error:
                await self._http.close()
                raise _refusal(error, config, "--grpc-port", config.grpc_port) from error
            self.lines.append(f"gRPC on {host}:{port}")
        elif self.why_no_grpc:
            self.lines.append(self.why_no_grpc)

    async def drain(self, grace: float) -> DrainReport:
        """Let nobody new in, let what is in work finish for `grace` seconds, cut off the rest."""
        reports = [self._http.drain(grace)]
        if self._grpc is not None:
            reports.append(self._grpc.drain(grace))
        done = await asyncio.gather(*reports)
        unfinished = tuple(line for report in done for line in report.unfinished)
        return DrainReport(sum(report.finished for report in done), unfinished)

    async def close(self) -> None:
        """End at once."""
        await self._http.close()
        if self._grpc is not None:
            await self._grpc.close()


def _refusal(error: OSError, config: ServerConfig, flag: str, port: int) -> click.ClickException:
    if error.filename is not None:
        return click.ClickException(
            f"Cannot write the access log {error.filename}: {error.strerror}. Choose another file with "
            "--access-log, or '-' for standard output."
        )
    off = " or switch it off with --no-grpc," if flag == "--grpc-port" else ""
    return click.ClickException(
        f"Cannot listen on {config.host} port {port}: {error.strerror or error}. Choose another with {flag} "
        f"(0 takes a free one),{off} or stop what listens there."
    )
