"""What each engine does to the process that it runs in: its load, its calls, and files that are damaged.

Each is measured in a process of its own: seconds and memory to import a library and open a model; the longest time for
which a loop stood still meanwhile; the same for another thread while calls of at least 200 ms are computed; and what 60
damaged files came to, each opened as a load does. Writes the table of `docs/engines.md`.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "engines.md"
TICK = 0.002
LONG = 0.2
"""Seconds that a call takes at least whose stall of another thread is measured."""

MOST_ROWS = 2**20
CALLS = 500
DAMAGED = 60
PATIENCE = 60.0
"""Seconds that a damaged file may take to open."""

Told = dict[str, Any]


def spec_of(engine: str, path: Path) -> Any:
    """Return a spec of a file, completed by what its engine says of it, with rows as its first dimension."""
    from tests.harness.table_models import TREE

    from trivium.catalogue import CATALOGUE
    from trivium.types.spec import Batching, ModelSpec

    parameters = {"skops_trusted_types": TREE} if engine == "sklearn" else {}
    bare = ModelSpec("m", "1", path.parent, engine, path.name, parameters=parameters)
    facts = CATALOGUE.engines[engine].facts(bare)
    inputs, outputs = (
        tuple(replace(one, dims=one.dims[1:]) for one in side) for side in (facts.inputs, facts.outputs)
    )
    rows = Batching(batch_axis=True, max_rows=MOST_ROWS, merge=True)
    return replace(bare, inputs=inputs, outputs=outputs, batching=rows)


def resident() -> int:
    """Bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def stalled(work: Callable[[], Any]) -> tuple[Any, float]:
    """Do the work in a thread; return what it gives, and the longest time for which the loop stood still."""
    loop, longest, last = asyncio.get_running_loop(), 0.0, time.monotonic()
    task = loop.run_in_executor(None, work)
    while not task.done():
        await asyncio.sleep(TICK)
        now = time.monotonic()
        longest, last = max(longest, now - last - TICK), now
    return await task, longest


def measure(engine: str, path: Path) -> Told:
    """Measure one engine in this process."""
    from trivium.catalogue import CATALOGUE
    from trivium.types.interfaces import OpensRunner
    from trivium.types.running import Placement
    from trivium.types.spec import Isolation

    spec = told_by_child(engine, path)
    descriptor = CATALOGUE.engines[engine]
    assert isinstance(descriptor, OpensRunner)
    before, began = resident(), time.monotonic()
    runner, stall = asyncio.run(stalled(lambda: descriptor.open(spec, Placement("m_0", Isolation.THREAD))))
    told: Told = {"seconds": time.monotonic() - began, "bytes": resident() - before, "load_stall": stall}
    told |= calls(runner, spec)
    told["isolation"] = descriptor.isolation[0].value
    return told


def told_by_child(engine: str, path: Path) -> Any:
    """Return the spec that another process has completed: this one has not imported the library yet."""
    from trivium.codecs.spec_codec import decode

    done = subprocess.run(
        [sys.executable, "-m", "bench.engines", "spec", engine, str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    return decode(json.loads(done.stdout.splitlines()[-1]))


def calls(runner: Any, spec: Any) -> Told:
    """Measure a call of one row, and what another thread waits while calls of at least `LONG` are computed."""
    import numpy as np

    from trivium.types.operations import Infer
    from trivium.types.payload import Tensors
    from trivium.types.running import Batch

    name = spec.inputs[0].name
    one = np.full((1, 64), 0.5, np.float32)

    def run(rows: Any) -> None:
        runner.run(Batch([0], [Infer("m", Tensors.of({name: rows}))], [len(rows)]))

    run(one)
    began = time.perf_counter()
    for _ in range(CALLS):
        run(one)
    micros = (time.perf_counter() - began) / CALLS * 1e6
    rows, took = np.repeat(one, 1024, axis=0), 0.0
    while took < LONG and len(rows) < MOST_ROWS:
        rows = np.repeat(rows, 2, axis=0)
        began = time.perf_counter()
        run(rows)
        took = time.perf_counter() - began
    return {"micros": micros, "call": took, "call_stall": waited(lambda: run(rows))}


def waited(work: Callable[[], None]) -> float:
    """Return the longest time that another thread of Python stood still while this one works."""
    ends, longest = threading.Event(), [0.0]

    def tick() -> None:
        last = time.monotonic()
        while not ends.is_set():
            time.sleep(TICK)
            now = time.monotonic()
            longest[0], last = max(longest[0], now - last - TICK), now

    ticking = threading.Thread(target=tick)
    ticking.start()
    time.sleep(0.05)
    longest[0] = 0.0
    for _ in range(3):
        work()
    ends.set()
    ticking.join()
    return longest[0]


def fates(engine: str, path: Path, folder: Path) -> Mapping[str, int]:
    """Open each damaged file as a load does: told of, opened, and run once. Return how many came to what."""
    from tests.harness.damaged_files import damaged

    paths, counted = list(damaged(path, folder, DAMAGED)), Counter[str]()
    while paths:
        command = [sys.executable, "-m", "bench.engines", "open", engine, *map(str, paths)]
        said: list[str] = []
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
        ) as child:  # what a library prints of a damaged file may be no text
            assert child.stdout is not None
            watch = threading.Timer(PATIENCE * 3, child.kill)
            watch.start()
            said = [line.split()[1] for line in child.stdout if line.startswith("FATE ")]
            watch.cancel()
        counted.update(said)
        if len(said) < len(paths):
            counted["ends the process" if child.wait() != -9 else "hangs"] += 1
        paths = paths[len(said) + 1 :]
    return dict(counted)


def open_all(engine: str, paths: list[Path]) -> None:
    """Open files one by one, and print what each came to."""
    from tests.harness.virtual_models import make_spec  # noqa: F401 - what the harness needs is imported once

    from trivium.catalogue import CATALOGUE
    from trivium.core.models.trials import try_out
    from trivium.types.errors import ServeError

    for path in paths:
        try:
            spec = spec_of(engine, path)
            try_out(CATALOGUE.engines[engine], spec)
            print("FATE served", flush=True)
        except ServeError:
            print("FATE refused", flush=True)
        except Exception:
            print("FATE raised", flush=True)


def row(engine: str, told: Told) -> str:
    """Return the line of the table."""
    fate = ", ".join(
        f"{count} {what}" for what, count in sorted(told["fates"].items(), key=lambda one: -one[1])
    )
    return (
        f"| `{engine}` | {told['seconds']:.1f} s, {told['bytes'] / 2**20:.0f} MiB | {told['load_stall'] * 1e3:.0f} ms "
        f"| {told['micros']:.0f} µs | {told['call_stall'] * 1e3:.0f} of {told['call'] * 1e3:.0f} ms | {fate} | "
        f"{told['isolation']} |"
    )


def main() -> None:
    """Measure all engines and write the page; or do one thing for one of them, in this process."""
    what, *words = sys.argv[1:] or ["all"]
    if what == "spec":
        from trivium.codecs.spec_codec import encode

        print(json.dumps(encode(spec_of(words[0], Path(words[1])))))
    elif what == "measure":
        print(json.dumps(measure(words[0], Path(words[1]))))
    elif what == "open":
        open_all(words[0], [Path(one) for one in words[1:]])
    else:
        write_page()


def write_page() -> None:
    """Measure all, and put the tables into the page."""
    from bench import engine_cost
    from tests.harness.engine_files import write_all

    lines = [
        "| engine | first load | loop stands still | one row | another thread waits | 60 damaged files | runs in |",
        "|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        files = write_all(root / "models")
        costs = [*engine_cost.HEAD, *(cost.line() for cost in engine_cost.measure(files))]
        print("\n".join(costs), flush=True)
        for file in files:
            command = [sys.executable, "-m", "bench.engines", "measure", file.engine, str(file.path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            measured: Told = json.loads(done.stdout.splitlines()[-1])
            measured["fates"] = fates(file.engine, file.path, root / "damaged" / file.engine)
            lines.append(row(file.engine, measured))
            print(lines[-1], flush=True)
    page = PAGE.read_text()
    for what, table in (("make engines", lines), ("make engines, cost", costs)):
        head, begin, rest = page.partition(f"<!-- begin: {what} -->\n")
        _, end, tail = rest.partition(f"<!-- end: {what} -->")
        page = "".join((head, begin, "\n".join(table), "\n", end, tail))
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
