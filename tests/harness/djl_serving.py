"""The command `djl-serving` as a child process: started, read, asked, stopped.

`djl_serving` is the way in; `said` runs one that ends by itself. What it prints lands in a file; every wait has a
deadline and, when it passes, shows that file. Knows nothing of what is served.
"""

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.harness.raw_http import Answer, ask
from tests.harness.server_process import COMMAND, SECONDS, LoggedProcess, environment, started

DJL_SERVING = (*COMMAND, "djl-serving")
ONE = dict.fromkeys(("SERVING_INFERENCE_ADDRESS", "SERVING_MANAGEMENT_ADDRESS"), "http://127.0.0.1:0")
TWO = {**ONE, "SERVING_MANAGEMENT_ADDRESS": "http://localhost:0"}
"""A free port for both APIs, and two."""


class DjlServing(LoggedProcess):
    """One that runs. Ports are known once it listens."""

    @property
    def port(self) -> int:
        """Where it infers."""
        return self._bound("BOTH|INFERENCE")

    @property
    def management(self) -> int:
        """Where its models are managed."""
        return self._bound("BOTH|MANAGEMENT")

    def _bound(self, which: str) -> int:
        return int(self.await_line(re.compile(rf"(?:{which}) API bind to: http://[\w.]+:(\d+)"))[1])

    def infer(self, method: str, path: str, body: bytes = b"", fields: str = "") -> Answer:
        """One request to the inference listener."""
        return ask(self.port, _request(method, path, body, fields))

    def manage(self, method: str, path: str, body: bytes = b"", fields: str = "") -> Answer:
        """One request to the management listener."""
        return ask(self.management, _request(method, path, body, fields))

    def status_of(self, model: str) -> str:
        """How a model is, as /ping says."""
        return str(self.infer("GET", "/ping").document.get(model, {}).get("status", ""))


def _request(method: str, path: str, body: bytes, fields: str) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{fields}\r\n"
    return head.encode() + body


@contextlib.contextmanager
def djl_serving(
    log: Path,
    *words: str | Path,
    split: bool = False,
    status: int = 0,
    variables: Mapping[str, str] | None = None,
    command: Sequence[str] = DJL_SERVING,
    home: Path | None = None,
    listens: bool = True,
) -> Iterator[DjlServing]:
    """It, with these flags, on one free port for both APIs or on two, in the folder `home`. At the end it is stopped by
    SIGTERM, if it still runs, and must have left with that exit status and without a traceback of its own.
    """
    addresses = TWO if split else ONE
    env = {
        **environment(),
        **addresses,
        **({"MODEL_SERVER_HOME": str(home)} if home else {}),
        **(variables or {}),
    }
    with started(log, *command, *words, variables=env) as process:
        server = DjlServing(process, log)
        if listens:
            assert server.port
        yield server
        if not server.has_ended():
            process.terminate()
        assert server.wait() == status, server.said()
        assert not re.search("^Traceback", server.said(), re.MULTILINE), server.said()


def said(
    *words: str | Path, variables: Mapping[str, str] | None = None, cwd: Path | None = None
) -> tuple[int, str]:
    """Exit status and output of a command line that ends by itself."""
    done = subprocess.run(
        [*DJL_SERVING, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        env={**environment(), **(variables or {})},
        cwd=cwd,
        check=False,
    )
    return done.returncode, done.stdout


def documents(answer: Answer) -> Any:
    """The JSON of an answer that must be one."""
    return json.loads(answer.body)
