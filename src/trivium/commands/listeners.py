"""The front ends of a serving process as one: opened together, drained together, closed together.

Must not know what they serve.
"""

import asyncio
from collections.abc import Mapping, Sequence

from trivium import app
from trivium.access.settings import NO_AUTHORIZERS, access_settings
from trivium.app import Site
from trivium.commands.cannot_listen import cannot_listen
from trivium.core.server import Server
from trivium.frontends.access_log import AnswerLog
from trivium.frontends.asgi.frontend import AsgiFrontend
from trivium.frontends.http.ending import DrainReport
from trivium.types.console_facts import ConsoleFacts
from trivium.types.interfaces import Authorizer
from trivium.types.listeners import BindAddress, Listener, Role, Transport


class Listeners:
    """A front end for each listener that the profile and the configuration give. `url` is that of the first over HTTP
    that infers; `lines` say where all listen, `places` the address of each by its name, `urls` the same as a URL where
    there is one. `authorizers` decide who gets in by the listeners of these names, in place of the key file's. All that
    is asked goes into `log`, if there is one.
    """

    def __init__(
        self,
        server: Server,
        site: Site,
        authorizers: Mapping[str, Authorizer] = NO_AUTHORIZERS,
        log: AnswerLog | None = None,
        only: Sequence[Listener] | None = None,
    ) -> None:
        """Make them; `only` are these listeners, in place of those that the configuration gives."""
        record = site.catalogue.server(site.config)
        self._profile = record.name
        self._access = access_settings(site.config, authorizers, record.takes_any_host)
        entrances = self._access.entrances
        self._fronts = [
            (each, app.front_end(server, site, each, entrances[each.name], log))
            for each in (app.listeners(site.catalogue, site.config) if only is None else only)
        ]
        self._facts = facts = site.states.of(ConsoleFacts)
        facts.connections = {each.name: front.open_connections for each, front in self._fronts}
        if (sessions := self._access.sessions) is not None:
            facts.sign_in, facts.sign_out = sessions.sign_in, sessions.sign_out
        self.url = ""
        self.lines: list[str] = []
        self.places: dict[str, str] = {}
        self.urls: dict[str, str] = {}

    @property
    def called(self) -> AsgiFrontend | None:
        """The front end to which another program's server hands requests, where there is one."""
        return next((front for _, front in self._fronts if isinstance(front, AsgiFrontend)), None)

    async def start(self) -> None:
        """Listen. A port or an access log that cannot be had ends the command with its sentence."""
        for listener, front in self._fronts:
            try:
                bind = await front.start(listener.bind)
            except OSError as error:
                await self.close()
                raise cannot_listen(error, listener) from error
            self.places[listener.name] = "ASGI" if listener.is_called else str(bind)
            has_url = listener.transport is Transport.HTTP and not (bind.path or listener.is_called)
            self.urls[listener.name] = self._url(listener, bind) if has_url else self.places[listener.name]
            self._facts.places[listener.name] = self.urls[listener.name]
            self.lines.append(self._line(listener, bind))
        self._access.start()

    async def drain(self, grace: float) -> DrainReport:
        """Let nobody new in, let what is in work finish for `grace` seconds, cut off the rest."""
        draining = [front.drain(grace) for each, front in self._fronts if each.role is not Role.METRICS]
        done = await asyncio.gather(*draining)  # metrics go on meanwhile: a drain is worth watching
        unfinished = tuple(line for report in done for line in report.unfinished)
        return DrainReport(sum(report.answered for report in done), unfinished)

    async def close(self) -> None:
        """End at once."""
        self._access.close()
        for _, front in self._fronts:
            await front.close()

    def _url(self, listener: Listener, bind: BindAddress) -> str:
        return f"http{'s' if self._access.entrances[listener.name].tls else ''}://{bind}"

    def _line(self, listener: Listener, bind: BindAddress) -> str:
        if listener.is_called:
            return f"{listener.name} by the server that calls this application ({self._profile} profile)"
        if listener.transport is Transport.GRPC:
            return f"{listener.name} on {bind}"
        url = self._url(listener, bind)
        if listener.role is Role.METRICS:
            return f"Metrics on {url}/metrics"
        self.url = self.url or url
        return f"{listener.name} on {url} ({self._profile} profile)"
