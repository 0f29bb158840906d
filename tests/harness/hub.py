"""A hub of models on loopback, with the few routes that huggingface_hub asks: HF_ENDPOINT points to it."""

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

_INFO = re.compile(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?")
_TREE = re.compile(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)")
_FILE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


@dataclass
class HubRepository:
    """A repository: its files, and how it behaves. `token`: who has not this one is let in to nothing (`status`)."""

    files: Mapping[str, bytes]
    refs: tuple[str, ...] = ("main",)
    token: str = ""
    status: int = 401
    code: str = "GatedRepo"
    announced: Mapping[str, int] = field(default_factory=dict)
    """Sizes that files are said to have, whatever they have."""

    listed: int = 0
    """Files that it lists besides, and does not have."""

    cuts: dict[str, int] = field(default_factory=dict)
    """How often an answer with a file ends after its half."""

    holds: set[str] = field(default_factory=set)
    """Files whose answers stop after their half, until this is empty."""

    @property
    def commit(self) -> str:
        """The one commit that it has."""
        told = json.dumps(sorted((name, len(data)) for name, data in self.files.items()))
        return hashlib.sha1(told.encode()).hexdigest()


class Hub:
    """A hub that runs. `asked` are the methods, paths and ranges that it was asked for, `tokens` who asked."""

    def __init__(self, repositories: Mapping[str, HubRepository]) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.tokens: set[str] = set()
        self.is_over = threading.Event()
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = unquote(urlsplit(self.path).path)
                hub.asked.append((self.command, path, self.headers.get("Range", "")))
                hub.tokens.add(self.headers.get("Authorization", ""))
                with contextlib.suppress(OSError):
                    _answer(self, hub, repositories, path)

            do_HEAD = do_GET

            def log_message(self, *words: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def files(self, method: str = "GET") -> list[str]:
        """The files whose bytes were asked for."""
        found = [(_FILE.fullmatch(path), asked) for asked, path, _ in self.asked]
        return [match[3] for match, asked in found if match and asked == method]

    def close(self) -> None:
        self.is_over.set()
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def hub(repositories: Mapping[str, HubRepository]) -> Iterator[Hub]:
    """One that has these repositories."""
    running = Hub(repositories)
    try:
        yield running
    finally:
        running.close()


def variables(url: str, home: Path, **others: str) -> dict[str, str]:
    """The environment of whoever asks it, with a cache of its own."""
    return {
        "HF_ENDPOINT": url,
        "HF_HOME": str(home),
        "HF_TOKEN": "",
        "HF_HUB_OFFLINE": "",
        "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1",
        **others,
    }


def folder_files(folder: Path) -> dict[str, bytes]:
    """The files of a folder, by their paths in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _answer(
    handler: BaseHTTPRequestHandler, hub: Hub, repositories: Mapping[str, HubRepository], path: str
) -> None:
    for pattern, tell in ((_TREE, _tree), (_INFO, _info), (_FILE, _file)):
        if found := pattern.fullmatch(path):
            repository = repositories.get(found[1])
            if repository is None:
                _refuse(handler, 401, "RepoNotFound")
            elif repository.token and handler.headers.get("Authorization") != f"Bearer {repository.token}":
                _refuse(handler, repository.status, repository.code)
            elif (found[2] or "main") not in (*repository.refs, repository.commit):
                _refuse(handler, 404, "RevisionNotFound")
            else:
                tell(handler, hub, repository, found)
            return
    _refuse(handler, 404, "EntryNotFound")


def _refuse(handler: BaseHTTPRequestHandler, status: int, code: str) -> None:
    fields = {"X-Error-Code": code} if code else {}
    _send(handler, status, b"{}", **fields)


def _send(handler: BaseHTTPRequestHandler, status: int, data: bytes, **fields: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(data)), **fields}.items():
        handler.send_header(name, value)
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(data)


def _json(handler: BaseHTTPRequestHandler, value: object) -> None:
    _send(handler, 200, json.dumps(value).encode(), **{"Content-Type": "application/json"})


def _info(handler: BaseHTTPRequestHandler, hub: Hub, repository: HubRepository, found: re.Match[str]) -> None:
    siblings = [{"rfilename": name} for name in repository.files]
    _json(handler, {"id": found[1], "modelId": found[1], "sha": repository.commit, "siblings": siblings})


def _tree(handler: BaseHTTPRequestHandler, hub: Hub, repository: HubRepository, found: re.Match[str]) -> None:
    rows = [
        {
            "type": "file",
            "path": name,
            "oid": hashlib.sha1(data).hexdigest(),
            "size": repository.announced.get(name, len(data)),
        }
        for name, data in repository.files.items()
    ]
    more = [
        {"type": "file", "path": f"f{at}.json", "oid": "0" * 40, "size": 1} for at in range(repository.listed)
    ]
    _json(handler, rows + more)


def _file(handler: BaseHTTPRequestHandler, hub: Hub, repository: HubRepository, found: re.Match[str]) -> None:
    name = found[3]
    data = repository.files.get(name)
    if data is None:
        _refuse(handler, 404, "EntryNotFound")
        return
    asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    begin = int(asked[1]) if asked else 0
    handler.send_response(206 if asked else 200)
    handler.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
    handler.send_header("X-Repo-Commit", repository.commit)
    handler.send_header("Accept-Ranges", "bytes")
    handler.send_header("Content-Length", str(len(data) - begin))
    if asked:
        handler.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
    handler.end_headers()
    if handler.command == "HEAD":
        return
    half = begin + (len(data) - begin) // 2
    if repository.cuts.get(name, 0) > 0:
        repository.cuts[name] -= 1
        handler.wfile.write(data[begin:half])
        handler.close_connection = True
        return
    if name in repository.holds:
        handler.wfile.write(data[begin:half])
        handler.wfile.flush()
        while name in repository.holds and not hub.is_over.wait(0.02):
            pass
        begin = half
    handler.wfile.write(data[begin:])
