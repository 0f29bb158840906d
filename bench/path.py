"""`make path`: the files of the package that a request passes, in the server and in the worker, in order.

A function of each was called between the request's first byte and a moment after the answer's last one (counters and
lent memory are settled then), in each of several identical requests behind a first, so that timers fall out. Writes
all walks to `docs/architecture.md`.
"""

import http.client
import json
import mmap
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench.requests import Request
from bench.servers import ROOT, await_line, started
from onnx import TensorProto, helper

from trivium.demo import places

PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- walks: made by make path -->", "<!-- end of walks -->"
_SOURCE = ROOT / "src"
_USER_CODE = str(_SOURCE / "trivium" / "demo")
_WALKS, _SETTLE_SECONDS = 5, 0.05
_CONFLICT = 409


@dataclass(frozen=True)
class Walk:
    """The files that one kind of request passes, relative to `src`, of the server and of its worker, if it has one."""

    title: str
    server: list[str]
    worker: list[str]

    def lines(self) -> list[str]:
        """Two lists in Markdown, with counts."""
        count = len({*self.server, *self.worker})
        found = [f"**{self.title}: {count} files.**", "", f"In the server, {len(self.server)}:", ""]
        found += [f"{number}. `{file}`" for number, file in enumerate(self.server, 1)]
        if self.worker:
            found += ["", f"In the worker, {len(self.worker)}:", ""]
            found += [f"{number}. `{file}`" for number, file in enumerate(self.worker, 1)]
        return found


def tensor_walk(folder: Path) -> Walk:
    """A v2 request with a tensor of 600 KB to an ONNX model in a thread of the server."""
    shape = [1, 3, 224, 224]
    model = folder / "mean.onnx"
    graph = helper.make_graph(
        [helper.make_node("GlobalAveragePool", ["x"], ["y"])],
        "mean",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 1, 1])],
    )
    opset = helper.make_opsetid("", 17)
    model.write_bytes(helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString())
    request = Request("mean", "x", np.zeros(shape, dtype=np.float32))
    return _walk(
        "A v2 tensor of 600 KB through ONNX Runtime in a thread",
        ["serve", str(model)],
        ("POST", request.path, request.body(), request.headers()),
    )


def picture_walk() -> Walk:
    """A picture, as `curl -T` sends it, to a DJL handler in a worker."""
    handler = places.handlers()[1]
    return _walk(
        "A picture to a DJL handler in a worker",
        ["serve", str(handler), "--profile", "djl"],
        ("PUT", f"/predictions/{handler.name.replace('-', '_')}", places.pictures()[7].read_bytes(), {}),
    )


def registration_walk(folder: Path) -> Walk:
    """The second of two equal registrations over TorchServe's management, which a server refuses."""
    store = folder / "store"
    store.mkdir()
    manifest = {
        "runtime": "python",
        "model": {"modelName": "m", "modelVersion": "1.0", "handler": "handler.py"},
    }
    with zipfile.ZipFile(store / "m.mar", "w") as archive:
        archive.writestr("MAR-INF/MANIFEST.json", json.dumps(manifest))
        archive.writestr("handler.py", "def handle(data, context):\n    return data and [0] * len(data)\n")
    return _walk(
        "The second of two equal registrations of a TorchServe model",
        [
            "serve",
            str(places.handlers()[1]),
            "--profile",
            "torchserve",
            "--torchserve-model-store",
            str(store),
        ],
        ("POST", "/models?url=m.mar", b"", {}),
        status=_CONFLICT,
    )


def walks(folder: Path) -> list[Walk]:
    """Return every walk of the page, made in this folder."""
    return [tensor_walk(folder), picture_walk(), registration_walk(folder)]


def text_of(found: list[Walk]) -> str:
    """Write walks as the page has them."""
    return "\n\n".join("\n".join(walk.lines()) for walk in found)


def _walk(
    title: str, words: list[str], request: tuple[str, str, bytes, dict[str, str]], status: int = 200
) -> Walk:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "walk").write_bytes(b"\0")
        with _serving(folder, words) as (address, process), (folder / "walk").open("r+b") as opened:
            walk = mmap.mmap(opened.fileno(), 1)
            connection = http.client.HTTPConnection(address)
            for number in range(_WALKS + 1):
                walk[0] = number
                connection.request(*request)
                response = connection.getresponse()
                body = response.read()
                time.sleep(_SETTLE_SECONDS)
                walk[0] = 0
                if response.status != (status if number else 200):
                    raise RuntimeError(f"{request[1]} was answered with {response.status}: {body!r}")
            connection.close()
            server = passed(folder / f"{process}.calls")
            others = [passed(file) for file in folder.glob("*.calls") if file.stem != str(process)]
    return Walk(title, server, [file for files in others for file in files])


@contextmanager
def _serving(folder: Path, words: list[str]) -> Iterator[tuple[str, int]]:
    calls = Path(__file__).with_name("calls")
    environment = {**os.environ, "CALLS_FOLDER": str(folder), "PYTHONPATH": f"{calls}{os.pathsep}{_SOURCE}"}
    command = [sys.executable, "-m", "trivium.cli.main", *words, "--http-port", "0", "--grpc-port", "0"]
    with started(command, folder / "log", environment) as process:
        yield await_line(folder / "log", process, r"HTTP on http://(\S+)"), process.pid


def passed(file: Path) -> list[str]:
    """Name the files of the package that every walk entered, in the first one's order."""
    walks: dict[str, dict[str, None]] = {}
    for line in file.read_text().splitlines():
        number, name = line.split("\t")
        if name.startswith(f"{_SOURCE}{os.sep}") and not name.startswith(_USER_CODE):
            walks.setdefault(number, {})[name.removeprefix(f"{_SOURCE}{os.sep}")] = None
    if len(walks) < _WALKS:
        return []
    first, *others = walks.values()
    return [name for name in first if all(name in other for other in others)]


def main() -> None:
    """Print all walks and write them to the page."""
    with tempfile.TemporaryDirectory() as folder:
        text = text_of(walks(Path(folder)))
    print(text)
    head, rest = PAGE.read_text().split(BEGIN)
    _, tail = rest.split(END)
    PAGE.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}")


if __name__ == "__main__":
    main()
