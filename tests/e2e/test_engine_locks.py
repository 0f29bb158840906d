"""A library that holds the interpreter's lock while it computes holds up its own model, and nobody else's."""

import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import httpx
import pytest
from tests.harness.digit_networks import pictures, write_slow_paddle
from tests.harness.engine_files import write_scripted
from tests.harness.server_process import ServerProcess, serve
from tests.harness.v2_clients import infer

RUNS = 7
"""How many runs of each model that holds the lock the other is asked beside."""

HELD = ("first", "second")
QUICK = "scripted"


class Sender:
    """Asks one model over and over in a thread of its own, and keeps how long each answer took, in seconds."""

    def __init__(self, server: ServerProcess, model: str) -> None:
        self.waits: list[float] = []
        self.failure: Exception | None = None
        self._done = threading.Event()
        tensor = httpx.get(f"{server.url}/v2/models/{model}").json()["inputs"][0]["name"]
        self._ask: Any = lambda: infer(server, model, tensor, pictures()[:1], "binary")
        self._ask()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> "Sender":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _send(self) -> None:
        try:
            while not self._done.is_set():
                began = time.monotonic()
                self._ask()
                self.waits.append(time.monotonic() - began)
        except Exception as error:
            self.failure = error


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root: Path = tmp_path_factory.mktemp("locks")
    first = write_slow_paddle(root / HELD[0]).parent
    copytree(first, root / HELD[1])
    scripted = write_scripted(root / f"{QUICK}.pt")
    with serve(root / "log", *(root / name for name in HELD), scripted) as served:
        yield served


def test_no_call_of_another_model_waits_for_a_run_that_holds_the_lock(server: ServerProcess) -> None:
    quick = Sender(server, QUICK)
    with Sender(server, HELD[0]) as first, Sender(server, HELD[1]) as second, quick:
        ends = time.monotonic() + 240
        while min(len(first.waits), len(second.waits)) < RUNS and time.monotonic() < ends:
            assert [one.failure for one in (first, second, quick)] == [None] * 3
            time.sleep(0.05)
    run = statistics.median([*first.waits, *second.waits])
    print(
        f"runs of {run:.2f} s; {len(quick.waits)} calls beside them: median "
        f"{statistics.median(quick.waits) * 1e3:.1f} ms, longest {max(quick.waits) * 1e3:.1f} ms"
    )
    waited = sum(one > run / 2 for one in quick.waits)
    assert waited < min(len(first.waits), len(second.waits)) / 2
    assert len(quick.waits) > 10 * RUNS
