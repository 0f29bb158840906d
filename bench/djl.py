"""What DJL's protocol costs beside the v2 one, and what models cost at rest: `make bench-djl`.

The same echo is behind a Python handler in a worker of its own; costs are processor time of the server and its workers.
At rest means registered, loaded, and asked for nothing.
"""

import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from bench import djl_tensors, echo_handler, repository, requests, servers
from bench.cost import DIALECT_LIMIT

ROUNDS, SECONDS = 3, 2.0
CONNECTIONS = 16
MODELS = 100
REST_SECONDS = 20.0
SETTLING = 5.0
SETTINGS = "engine=Python\nminWorkers=1\nmaxWorkers=1\n"
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "djl.md"

HEAD = """# DJL's protocol and models at rest

Made by `make bench-djl` (`bench/djl.py`), one run on a machine with other work to do: read ratios, not microseconds.
"""

MEANING = """
## What it means

- A request to a DJL handler carries its headers, and its answer has six header lines of its own; a v2
  tensor has a name and a shape. What is alike from request to request is read and described once: a head
  that a connection repeats, the description of a body on its way to the worker, that of an answer on its
  way back. Before that the ratio was 2.4.
- The rest is a call of `handle` with an `Input` and an `Output`, copies that handlers may change among it
  (4 µs more in the worker than a `TritonPythonModel`), an id for each request, and the lines of the answer.
- Workers at rest do nothing at all. The server's waits are its own, not its models': with a hundred of them
  it has as many as with one, within what two runs of the same differ by (2 a second).
"""


@dataclass(frozen=True)
class AtRest:
    """One server with models that nobody asks for: what it and its workers did in a second."""

    name: str
    models: int
    processes: int
    server_ms: float
    server_wakes: float
    workers_ms: float
    workers_wakes: float


def echoes(rounds: int, seconds: float) -> dict[str, list[float]]:
    """Microseconds of processor time per request, round by round: each round starts both servers anew."""
    raw, tensor = requests.raw_echo("djl_echo"), requests.echo("python_echo")
    found: dict[str, list[float]] = {"v2": [], "DJL": []}
    for _ in range(rounds):
        handlers, djl = v2_echo(repository.CACHE / "v2"), repository.make_foreign()["djl"]
        with servers.trivium(handlers) as native, servers.trivium(djl, profile="djl") as foreign:
            for name, load in (
                ("v2", lambda for_s: native.load(tensor, CONNECTIONS, for_s)),
                ("DJL", lambda for_s: foreign.load(raw, CONNECTIONS, for_s)),
            ):
                load(seconds)
                found[name].append(load(seconds).cpu_us)
    return found


def v2_echo(folder: Path) -> Path:
    """Write a repository with the same echo for v2."""
    shutil.rmtree(folder, ignore_errors=True)
    config, code = repository.HANDLERS["python_echo"]
    place = folder / "python_echo" / "1"
    place.mkdir(parents=True)
    (place.parent / "config.pbtxt").write_text(config)
    (place / "model.py").write_text(code)
    return folder


def at_rest(models: int, name: str, seconds: float) -> AtRest:
    """Register so many echoes, leave them alone, and look at what runs all the same."""
    folder = repository.CACHE / "rest"
    store(folder, models)
    log = repository.CACHE / "rest.log"
    command = [sys.executable, "-m", "trivium.cli.main", "djl-serving", "-s", str(folder)]
    environment = {
        **os.environ,
        "PYTHONPATH": str(servers.ROOT / "src"),
        "SERVING_INFERENCE_ADDRESS": "http://127.0.0.1:0",
    }
    with servers.started(command, log, environment) as process:
        servers.await_line(log, process, r"BOTH API bind to: (\S+)", 300)
        time.sleep(SETTLING)
        workers = process.children(recursive=True)
        before = _spent([process]), _spent(workers)
        time.sleep(seconds)
        after = _spent([process]), _spent(workers)
    (own_s, own_wakes), (their_s, their_wakes) = (
        tuple(b - a for a, b in zip(first, last, strict=True))
        for first, last in zip(before, after, strict=True)
    )
    return AtRest(
        *(name, models, 1 + len(workers), own_s / seconds * 1000, own_wakes / seconds),
        *(their_s / seconds * 1000, their_wakes / seconds),
    )


def store(folder: Path, models: int) -> None:
    """Write a store of so many echoes."""
    shutil.rmtree(folder, ignore_errors=True)
    for number in range(models):
        place = folder / f"m{number}"
        place.mkdir(parents=True)
        (place / "model.py").write_text(echo_handler.DJL_ECHO)
        (place / "serving.properties").write_text(SETTINGS)


def _spent(processes: list[psutil.Process]) -> tuple[float, float]:
    """Seconds of processor time, and how often a thread has given its processor up to wait."""
    seconds = sum(sum(each.cpu_times()[:2]) for each in processes)
    return seconds, float(sum(map(_waits, processes)))


def _waits(process: psutil.Process) -> int:
    """Of all threads: psutil counts the first alone."""
    found = 0
    for thread in Path(f"/proc/{process.pid}/task").iterdir():
        text = (thread / "status").read_text()
        found += int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0])
    return found


def page(costs: dict[str, list[float]], rests: list[AtRest]) -> str:
    """Return the page of one run."""
    ratio = statistics.median(a / b for a, b in zip(costs["DJL"], costs["v2"], strict=True))
    lines = [
        HEAD,
        "## An echo through a handler",
        "",
        f"{CONNECTIONS} connections, 64 bytes each way, {len(costs['v2'])} rounds of {SECONDS:g} seconds,",
        "each behind as long a load of the same kind and with servers started anew. CPU-microseconds per request",
        "of the server and its worker: the median, in brackets each round; the ratio is the median of the rounds'",
        "ratios.",
        "",
        "| protocol | CPU-µs per request |",
        "|---|---|",
        *(
            f"| {name} | {statistics.median(each):.0f} ({', '.join(f'{one:.0f}' for one in each)}) |"
            for name, each in costs.items()
        ),
        f"| **DJL / v2** | **{ratio:.2f}** (expected: at most {DIALECT_LIMIT}) |",
        "",
        "## Models at rest",
        "",
        f"A store of models is loaded, and after {SETTLING:g} seconds looked at for {REST_SECONDS:g}:",
        "processor time, and how often a thread gave its processor up to wait, in a second. What a server with one",
        "model does is its own.",
        "",
        "| | models | processes | server, ms/s | server, waits/s | workers, ms/s | workers, waits/s |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {one.name} | {one.models} | {one.processes} | {one.server_ms:.1f} | {one.server_wakes:.1f} | "
            f"{one.workers_ms:.1f} | {one.workers_wakes:.1f} |"
            for one in rests
        ),
        MEANING,
    ]
    return "\n".join(lines)


def main(write: Callable[[str], object]) -> None:
    costs = echoes(ROUNDS, SECONDS)
    rests = [
        at_rest(1, "one, with its worker", REST_SECONDS),
        at_rest(MODELS, "many, a worker each", REST_SECONDS),
    ]
    write(page(costs, rests).rstrip() + "\n\n" + djl_tensors.section(djl_tensors.measured()))


if __name__ == "__main__":
    main(PAGE.write_text)
