"""F, the floor of the benchmark: the cheapest honest HTTP/1.1 server on uvloop and httptools.

It reads each request whole (target, headers by name, body), as whoever serves anything must, and answers the
same bytes to all of them, with keep-alive and in order. It decides nothing, refuses nothing, limits nothing.
"""

import asyncio
from pathlib import Path
from typing import cast

import click
import httptools
import uvloop


class BareConnection(asyncio.Protocol):
    """One connection; `response` is the raw bytes of a whole HTTP response."""

    __slots__ = ("_body", "_headers", "_parser", "_response", "_transport", "_url")

    def __init__(self, response: bytes) -> None:
        self._response = response
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.close()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_body(self, piece: bytes) -> None:
        self._body = self._body + piece if self._body else piece

    def on_message_complete(self) -> None:
        self._url, self._headers, self._body = b"", {}, b""
        self._transport.write(self._response)


async def serve(port: int, response: bytes) -> None:
    """Serve on loopback until the process is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: BareConnection(response), "127.0.0.1", port)
    click.echo(f"listening on port {server.sockets[0].getsockname()[1]}")
    await server.serve_forever()


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default="any free one")
@click.option(
    "--response-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="the raw bytes of the whole HTTP response",
)
def main(port: int, response_file: Path) -> None:
    """Answer every request on PORT with the bytes of a file."""
    uvloop.run(serve(port, response_file.read_bytes()))


if __name__ == "__main__":
    main()
