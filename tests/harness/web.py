"""Web servers of this machine for tests that fetch: one whose answers are scripted, and one that stands in for S3.

Both listen on loopback, on a free port, and count what they were asked.
"""

import contextlib
import io
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

Answer = Callable[[BaseHTTPRequestHandler], None]


class Web:
    """A server that runs; `asked` are the paths it was asked for."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.asked: list[str] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                web.asked.append(self.path)
                answer = answers.get(urlsplit(self.path).path) or answers.get("*") or status(404)
                with contextlib.suppress(OSError):
                    answer(self)
                self.close_connection = True

            do_HEAD = do_GET

            def log_message(self, *words: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def web(answers: Mapping[str, Answer]) -> Iterator[Web]:
    """One that answers these paths so, and all others with 404."""
    running = Web(answers)
    try:
        yield running
    finally:
        running.close()


def body(data: bytes, announced: int | None = None, **fields: str) -> Answer:
    """Answer 200 with a body, whose length may be announced wrong."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data) if announced is None else announced))
        for name, value in fields.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def status(code: int, **fields: str) -> Answer:
    """Answer with a status alone."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in fields.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def redirect(location: str) -> Answer:
    """Answer with a redirect."""
    return status(302, Location=location)


def endless(handler: BaseHTTPRequestHandler) -> None:
    """Send a body without an end, as fast as it is read."""
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b"\0" * 65536)


def dripping(stop: threading.Event, head: bool = False) -> Answer:
    """Send a byte now and then, of the body or (`head`) of the head already."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if head:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        else:
            handler.send_response(200)
            handler.send_header("Content-Length", "1000000")
            handler.end_headers()
        while not stop.wait(0.02):
            handler.wfile.write(b"x")
            handler.wfile.flush()

    return answer


def s3(objects: Mapping[str, bytes], page: int = 2) -> Mapping[str, Answer]:
    """Answers of a stand-in for S3 with these objects by `bucket/key`; lists come in pages of `page`."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        path, query = unquote(parts.path).lstrip("/"), parse_qs(parts.query)
        if "list-type" in query:
            _xml(handler, 200, _listing(objects, path.strip("/"), query, page))
        elif path in objects:
            body(objects[path], ETag='"x"')(handler)
        else:
            _xml(
                handler, 404, "<Error><Code>NoSuchKey</Code><Message>There is no such key.</Message></Error>"
            )

    return {"*": answer}


def _listing(objects: Mapping[str, bytes], bucket: str, query: Mapping[str, list[str]], page: int) -> str:
    prefix = query.get("prefix", [""])[0]
    begin = int(query.get("continuation-token", ["0"])[0])
    keys = sorted(name.partition("/")[2] for name in objects if name.startswith(f"{bucket}/{prefix}"))
    rows = "".join(
        f"<Contents><Key>{escape(key)}</Key><Size>{len(objects[f'{bucket}/{key}'])}</Size></Contents>"
        for key in keys[begin : begin + page]
    )
    is_cut = begin + page < len(keys)
    more = f"<NextContinuationToken>{begin + page}</NextContinuationToken>" if is_cut else ""
    return (
        f"<ListBucketResult><IsTruncated>{str(is_cut).lower()}</IsTruncated>{more}{rows}</ListBucketResult>"
    )


def _xml(handler: BaseHTTPRequestHandler, code: int, text: str) -> None:
    data = text.encode()
    handler.send_response(code)
    handler.send_header("Content-Type", "application/xml")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """A zip archive of these files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()
