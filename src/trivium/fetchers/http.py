"""Fetches an archive over HTTP: each host is resolved first, its address judged, and that very address asked.

Redirects are followed by the same rules. A server that never ends, or hardly begins, costs what the bounds allow.
"""

import socket
import ssl
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from trivium.fetchers.allowance import Allowance, Cutter
from trivium.fetchers.policy import ARCHIVES, is_file, judge_address, permitted, safe_name, shown
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.fetching import FetchBounds, FetchPlace

MOST_REDIRECTS = 5
SECONDS_OF_SILENCE = 30.0
_REDIRECTS = (301, 302, 303, 307, 308)
_ABSENT = (404, 410)
_PIECE = 2**16

Resolve = Callable[[str, int], list[str]]


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host. Raises OSError."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class HttpFetcher:
    """Implements `types.interfaces.Fetcher` for archives on web servers."""

    schemes = ("http", "https")

    def __init__(self, resolve: Resolve = resolve) -> None:
        self._resolve = resolve

    def fetch(self, uri: str, into: Path, bounds: FetchBounds) -> Path:
        """See `Fetcher`. Of models only archives and definitions are fetched, by how they end: other pages are none."""
        place = permitted(uri, bounds.places)
        if bounds.is_model and not is_file(place.path):
            raise ServeError(
                Code.UNSUPPORTED,
                f"{shown(uri)} does not end like an archive ({', '.join(ARCHIVES)}), and other things are not fetched "
                "over HTTP. Pack the model's folder into one of these.",
            )
        target = into / safe_name(place.path)
        with Cutter(bounds) as cutter:
            try:
                self._follow(uri, target, bounds, cutter)
            except (OSError, HTTPException, ValueError) as error:  # the last of URLs that servers make up
                why = cutter.reason or said_by(error) or type(error).__name__
                words = (
                    f"{shown(uri)} could not be fetched: {why}. See whether it can be reached, and try again."
                )
                raise ServeError(Code.LOAD_FAILED, words) from error
        return target

    def _follow(self, uri: str, target: Path, bounds: FetchBounds, cutter: Cutter) -> None:
        for _ in range(MOST_REDIRECTS + 1):
            if urlsplit(uri).scheme not in self.schemes:
                words = f"A redirect to {shown(uri)} is not followed: it leaves HTTP."
                raise ServeError(Code.FORBIDDEN, words)
            connection = self._connection(permitted(uri, bounds.places), cutter)
            with closing(connection), closing(_ask(connection, uri)) as answer:
                location = answer.getheader("location", "")
                if answer.status not in _REDIRECTS or not location:
                    _store(answer, uri, target, bounds, cutter)
                    return
            uri = urljoin(uri, location)
        raise ServeError(
            Code.LOAD_FAILED,
            f"{shown(uri)} is behind more than {MOST_REDIRECTS} redirects. Name the last of them.",
        )

    def _connection(self, place: FetchPlace, cutter: Cutter) -> "_Connection":
        addresses = self._resolve(place.host, place.port)
        for address in addresses:
            judge_address(address, place.host)
        if not addresses:
            raise OSError(f"{place.host} has no address")
        return _Connection(place, addresses, cutter)


class _Connection(HTTPConnection):
    """Connects to addresses that were judged, whatever a name means by then."""

    def __init__(self, place: FetchPlace, addresses: list[str], cutter: Cutter) -> None:
        super().__init__(place.host, place.port, timeout=SECONDS_OF_SILENCE)
        self._place, self._addresses, self._cutter = place, addresses, cutter

    def connect(self) -> None:
        """Connect to the first address that answers. Raises OSError."""
        self.sock = self._opened()
        if self._place.scheme == "https":
            self.sock = ssl.create_default_context().wrap_socket(
                self.sock, server_hostname=self._place.host, do_handshake_on_connect=False
            )
        self._cutter.watch(self.sock)
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.do_handshake()

    def _opened(self) -> socket.socket:
        for address in self._addresses[:-1]:
            self._cutter.check()  # a name may have any number of addresses at which nobody answers
            try:
                return socket.create_connection((address, self._place.port), SECONDS_OF_SILENCE / 3)
            except OSError:
                continue
        return socket.create_connection((self._addresses[-1], self._place.port), SECONDS_OF_SILENCE)


def _ask(connection: HTTPConnection, uri: str) -> HTTPResponse:
    parts = urlsplit(uri)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection.request("GET", target, headers={"Accept-Encoding": "identity", "Connection": "close"})
    return connection.getresponse()


def _store(answer: HTTPResponse, uri: str, target: Path, bounds: FetchBounds, cutter: Cutter) -> None:
    if answer.status != 200:
        code = Code.NOT_FOUND if answer.status in _ABSENT else Code.LOAD_FAILED
        words = (
            f"{shown(uri)} could not be fetched: its server answered {answer.status} {answer.reason[:80]}."
        )
        raise ServeError(code, f"{words} Correct the URL, or see to that server.")
    allowance = Allowance(uri, bounds, cutter)
    expected = answer.length
    allowance.announce(expected or 0)
    count = 0
    with target.open("xb") as file:
        while piece := answer.read1(_PIECE):
            allowance.spend(len(piece))
            count += len(piece)
            file.write(piece)
    cutter.check()  # what is cut off looks like an end
    if expected is not None and count < expected:
        raise OSError(f"it ended after {count} of {expected} bytes")


FETCHER = HttpFetcher()
