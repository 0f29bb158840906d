"""What a TorchServe handler costs here and on the real TorchServe, side by side in one run: `make bench-torchserve`.

Both are started by the same words, with the same file of properties and the same archives; the real one is that of
`make original`.
"""

import http.client
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import echo_handler, repository, requests
from bench.lab import runs
from bench.servers import ROOT, Measured, Server, free_port, started

ROUNDS, SECONDS = 5, 4.0
CONNECTIONS = 16
BATCH = 8
PARTS = 100
PATIENCE = 120.0
PAGE = ROOT / "docs" / "benchmarks" / "torchserve.md"
ORIGINAL = ROOT / ".venv-original" / "bin"
COMMANDS: dict[str, tuple[str, ...]] = {
    "Trivium": (sys.executable, "-m", "trivium.cli.main", "torchserve"),
    "TorchServe": (str(ORIGINAL / "torchserve"),),
}
ONE_WORKER = "minWorkers: 1\nmaxWorkers: 1\n"
ARCHIVES = {
    "echo": (echo_handler.TORCHSERVE_ECHO, f"batchSize: 1\n{ONE_WORKER}"),
    "echo_batched": (echo_handler.TORCHSERVE_ECHO, f"batchSize: {BATCH}\nmaxBatchDelay: 100\n{ONE_WORKER}"),
    "parts": (echo_handler.TORCHSERVE_PARTS.format(parts=PARTS), f"batchSize: 1\n{ONE_WORKER}"),
}
"""The models of the run: handler and `model-config.yaml`."""


@dataclass
class Row:
    """One line of the table: what it says, its unit, what is expected at most, and what each round found."""

    name: str
    unit: str
    limit: float | None = None
    rounds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in COMMANDS})

    @property
    def ratio(self) -> float:
        """Median of the rounds' ratios, ours to theirs."""
        pairs = zip(self.rounds["Trivium"], self.rounds["TorchServe"], strict=True)
        return statistics.median(ours / theirs for ours, theirs in pairs)


@dataclass(frozen=True)
class Load:
    """A row that is measured under load: processor time per answer, or per part of one."""

    row: Row
    model: str
    parts: int = 1


LOADS = (
    Load(Row("an echo of 64 bytes", "CPU-µs per request", 0.25), "echo"),
    Load(Row(f"the same, in batches of {BATCH}", "CPU-µs per request", 0.7), "echo_batched"),
    Load(Row(f"a part of a stream ({PARTS} of 16 bytes an answer)", "CPU-µs per part"), "parts", PARTS),
)
START = Row("from the command to the first answer", "seconds")
IDLE = Row(f"memory of {len(ARCHIVES)} models with a worker each, before any load", "MB")
BUSY = Row("the same, behind the load", "MB")


def measure(rounds: int, seconds: float) -> list[Row]:
    """All rows; each round starts both servers anew, side by side, and loads now one, now the other."""
    for number in range(rounds):
        with _started("Trivium") as ours, _started("TorchServe") as theirs:
            places = [("Trivium", ours), ("TorchServe", theirs)]
            for load in LOADS:
                for name, server in places if number % 2 else reversed(places):
                    load.row.rounds[name].append(_loaded(server, load, seconds).cpu_us / load.parts)
            for name, server in places:
                BUSY.rounds[name].append(server.memory() / 1e6)
    return [*(load.row for load in LOADS), START, IDLE, BUSY]


def _loaded(server: Server, load: Load, seconds: float) -> Measured:
    """One round, behind as long a load of the same kind: what is compiled or grown meanwhile is not measured."""
    request = requests.raw_echo(load.model)
    server.load(request, CONNECTIONS, seconds)
    return server.load(request, CONNECTIONS, seconds)


@contextmanager
def _started(name: str) -> Iterator[Server]:
    """Start one of the two, note how long it took and what it holds, and stop it at the end."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        port = _write(folder)
        command = COMMANDS[name]
        environment = {
            **os.environ,
            "PATH": f"{ORIGINAL}:{os.environ['PATH']}" if name == "TorchServe" else os.environ["PATH"],
            "PYTHONPATH": "" if name == "TorchServe" else str(ROOT / "src"),
            "TEMP": made,
            "TMPDIR": made,
        }
        words = [
            "--start",
            "--foreground",
            "--ncs",
            "--disable-token-auth",
            "--ts-config",
            "config.properties",
        ]
        words += ["--model-store", "store", "--models", "all"]
        log = repository.CACHE / f"beside-{name.lower()}.log"
        begun = time.monotonic()
        with started([*command, *words], log, environment, folder) as process:
            try:
                server = Server(process, f"http://127.0.0.1:{port}")
                _await_answers(port, log)
                START.rounds[name].append(time.monotonic() - begun)
                IDLE.rounds[name].append(server.memory() / 1e6)
                yield server
            finally:  # its launcher leaves the server itself alone
                stop = [*command, "--stop", "--foreground"]
                subprocess.run(stop, env=environment, cwd=folder, stdout=subprocess.DEVNULL, check=False)


def _write(folder: Path) -> int:
    """Write the store and the properties of one start; return the port of its predictions."""
    store = folder / "store"
    store.mkdir()
    for model, (handler, settings) in ARCHIVES.items():
        repository.write_archive(store / f"{model}.mar", handler, settings)
    port = free_port()
    lines = [f"inference_address=http://127.0.0.1:{port}"]
    lines += [f"{role}_address=http://127.0.0.1:{free_port()}" for role in ("management", "metrics")]
    lines += [f"grpc_{role}_port={free_port()}" for role in ("inference", "management")]
    (folder / "config.properties").write_text("\n".join(lines) + f"\ninitial_worker_port={free_port()}\n")
    return port


def _await_answers(port: int, log: Path) -> None:
    """Wait until every model has answered a prediction."""
    deadline = time.monotonic() + PATIENCE
    waiting = list(ARCHIVES)
    while waiting:
        if _answers(port, waiting[0]):
            waiting.pop(0)
        elif time.monotonic() > deadline:
            raise RuntimeError(f"{waiting[0]} does not answer:\n{log.read_text()[-4000:]}")
        else:
            time.sleep(0.05)


def _answers(port: int, model: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(
            "POST", f"/predictions/{model}", b"x", {"Content-Type": "application/octet-stream"}
        )
        answer = connection.getresponse()
        answer.read()
        return answer.status == 200
    except OSError:
        return False
    finally:
        connection.close()


HEAD = """# A TorchServe handler here and on TorchServe

Made by `make bench-torchserve` (`bench/torchserve.py`), which `make bench` runs too, on a machine
with other work to do: read ratios.

- **Both** are started by the same words (`torchserve --start --foreground --ncs ...`) with the same properties,
  archives and log files, each in a folder of its own. TorchServe is 0.12.0 under Java, as `make original` installs it.
- **Measured:** processor time of the whole tree of processes, the server and all workers, divided by answers.
- **Load:** a closed loop over loopback (`wrk`), {connections} connections, one worker for each model, {seconds:g}
  seconds behind as long a load of the same kind.
- **Figures:** the median of {rounds} rounds with servers started anew, in brackets each round; the ratio is the
  median of the rounds' ratios. {machine}, {hour}.

| what | | Trivium | TorchServe | ratio | expected at most |
|---|---|---|---|---|---|
"""

MEANING = """
## What it means

- Unbatched, a request to TorchServe passes a Java server with several threads, a socket, and a worker that reads
  its command field by field. Here most of that is done once for requests that are alike.
- In a batch both sides share the way to the worker among its requests. What is left is the HTTP of each, so the
  ratio is higher.
- A part of a stream is a frame from the worker and a chunk to the client on either side, each written as it comes.
- The start takes until all {models} models have answered once. TorchServe's workers import torch whether a handler
  needs it or not. Here a handler that imports torch waits for it, and no other does.
- Memory is that of the whole tree; a page that several processes have counts for each by its share. For TorchServe that
  is a Java server with its default bounds, and torch in each worker.
- TorchServe measures the machine once a minute by a process of its own, whose time is not in the figures.
"""


def page(rows: list[Row], rounds: int, seconds: float, hour: str) -> str:
    """Return the page of one run."""
    lines = []
    for row in rows:
        ours, theirs = (_shown(row.rounds[name]) for name in COMMANDS)
        limit = "" if row.limit is None else f"{row.limit:g}"
        lines.append(f"| {row.name} | {row.unit} | {ours} | {theirs} | **{row.ratio:.2f}** | {limit} |")
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    head = HEAD.format(connections=CONNECTIONS, seconds=seconds, rounds=rounds, machine=machine, hour=hour)
    return head + "\n".join(lines) + "\n" + MEANING.format(models=len(ARCHIVES))


def _shown(values: list[float]) -> str:
    digits = 1 if statistics.median(values) < 20 else 0
    each = ", ".join(f"{value:.{digits}f}" for value in values)
    return f"{statistics.median(values):.{digits}f} ({each})"


def main(write: Callable[[str], object], rounds: int = ROUNDS, seconds: float = SECONDS) -> None:
    """Measure and write the page; the environment of the original has to be there."""
    if not (ORIGINAL / "torchserve").exists() or shutil.which("java") is None:
        sys.exit(
            f"There is no TorchServe in {ORIGINAL.parent}: run `make .venv-original/.made`, which installs it."
        )
    repository.CACHE.mkdir(exist_ok=True)
    hour = runs.now()
    write(page(measure(rounds, seconds), rounds, seconds, hour))


if __name__ == "__main__":
    main(PAGE.write_text)
