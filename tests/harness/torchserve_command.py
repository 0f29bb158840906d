"""The command `torchserve` as a child process: started in either way, read, asked, stopped.

`torchserve` is the way in for one in the foreground, `background` for one that goes on by itself; `said` runs one that
ends. Each lives in a folder of its own, where its configuration, its pid file, its keys and its logs are. Knows nothing
of what is served.
"""

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.harness.raw_http import Answer, ask
from tests.harness.server_process import COMMAND, SECONDS, LoggedProcess, environment, until

TORCHSERVE = (*COMMAND, "torchserve")
FREE = """
inference_address=http://127.0.0.1:0
management_address=http://localhost:0
metrics_address=http://127.0.0.1:0
grpc_inference_port=0
grpc_management_port=0
default_workers_per_model=1
"""
"""Free ports everywhere, and one worker a model."""

READY = re.compile("^Model server started.$", re.MULTILINE)
_PID_FILE = ".model_server.pid"


@dataclass(frozen=True)
class TorchServeFolder:
    """A folder that a server lives in, with its store."""

    path: Path

    @property
    def store(self) -> Path:
        """The model store, which is there."""
        place = self.path / "store"
        place.mkdir(exist_ok=True)
        return place

    @property
    def pid_file(self) -> Path:
        """The pid file, wherever it is looked for."""
        return self.path / _PID_FILE

    def configured(self, text: str = "") -> Path:
        """A configuration with free ports, and this."""
        file = self.path / "given.properties"
        file.write_text(FREE + text)
        return file

    def model(self, name: str, code: str, config: str = "") -> Path:
        """A model of the store, as a folder."""
        place = self.store / name
        (place / "MAR-INF").mkdir(parents=True)
        model = {"modelName": name, "modelVersion": "1.0", "handler": "handler.py"}
        if config:
            model["configFile"] = "model-config.yaml"
            (place / "model-config.yaml").write_text(config)
        (place / "MAR-INF" / "MANIFEST.json").write_text(json.dumps({"runtime": "python", "model": model}))
        (place / "handler.py").write_text(code)
        return place

    def key(self, purpose: str) -> str:
        """The key for this purpose, as the server has written it."""
        return str(json.loads((self.path / "key_file.json").read_text())[purpose]["key"])

    def variables(self, more: Mapping[str, str]) -> Mapping[str, str]:
        """The environment of a command in this folder."""
        return {**environment(), "TMPDIR": str(self.path), "TEMP": str(self.path), **more}


class TorchServeText:
    """What a server says, and where it listens by that."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def said(self) -> str:
        """All that it has printed so far."""
        return self.log.read_text()

    def port(self, api: str) -> int:
        """Where one of its five APIs is: Inference, Management, Metrics, gRPC inference or gRPC management."""
        pattern = re.compile(rf"- {api} API bind to: (?:https?://)?[\w.]+:(\d+)$", re.MULTILINE)
        until(lambda: bool(pattern.search(self.said())), self.said)
        match = pattern.search(self.said())
        assert match
        return int(match[1])

    def ask(self, api: str, method: str, path: str, body: bytes = b"", fields: str = "") -> Answer:
        """One request to one of its HTTP listeners."""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{fields}\r\n"
        return ask(self.port(api), head.encode() + body)

    def predict(self, model: str, body: bytes = b"x", fields: str = "") -> Answer:
        """One prediction of text."""
        return self.ask(
            "Inference", "POST", f"/predictions/{model}", body, f"Content-Type: text/plain\r\n{fields}"
        )

    def serves(self, model: str, fields: str = "") -> None:
        """Wait until it has loaded this model."""
        until(lambda: self.predict(model, fields=fields).status == 200, self.said)


class TorchServeProcess(TorchServeText, LoggedProcess):
    """One that runs in the foreground."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        LoggedProcess.__init__(self, process, log)


@contextlib.contextmanager
def torchserve(
    folder: TorchServeFolder,
    *words: str | Path,
    text: str = "disable_token_authorization=true\n",
    status: int = 0,
    variables: Mapping[str, str] | None = None,
    listens: bool = True,
    command: Sequence[str] = TORCHSERVE,
) -> Iterator[TorchServeProcess]:
    """One in the foreground, on free ports, with this in its configuration. At the end it is stopped by SIGTERM, if it
    still runs, and must have left with that exit status, without a traceback of its own, and without a pid file.
    """
    log = folder.path / "log"
    file = folder.configured(text)
    line = [
        *command,
        "--start",
        "--foreground",
        "--ncs",
        "--ts-config",
        file,
        "--model-store",
        folder.store,
        *words,
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*map(str, line)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=folder.variables(variables or {}),
            cwd=folder.path,
        )
    try:
        server = TorchServeProcess(process, log)
        if listens:
            server.await_line(READY)
        yield server
        if not server.has_ended():
            process.terminate()
        assert server.wait() == status, server.said()
        assert not re.search("^Traceback", server.said(), re.MULTILINE), server.said()
        assert not folder.pid_file.exists()
    finally:
        process.kill()
        process.wait()


def said(
    folder: TorchServeFolder,
    *words: str | Path,
    variables: Mapping[str, str] | None = None,
    command: Sequence[str] = TORCHSERVE,
) -> tuple[int, str]:
    """Exit status and output of a command line that ends by itself. Its output is a file: a server that it leaves
    behind keeps that open.
    """
    log = folder.path / "said"
    with log.open("wb") as output:
        done = subprocess.run(
            [*map(str, (*command, *words))],
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            env=folder.variables(variables or {}),
            cwd=folder.path,
            check=False,
        )
    return done.returncode, log.read_text()


@contextlib.contextmanager
def background(
    folder: TorchServeFolder, *words: str | Path, text: str = "", command: Sequence[str] = TORCHSERVE
) -> Iterator[TorchServeText]:
    """One in the background, which has said that it listens; it is stopped, and waited for, at the end."""
    file = folder.configured(text)
    log = folder.path / "said"
    line = ("--start", "--ncs", "--ts-config", file, "--model-store", folder.store, *words)
    status, _ = said(folder, *line, command=command)
    kept = folder.path / "log"
    os.link(log, kept)  # the next command line has a file of its own
    log.unlink()
    try:
        assert status == 0, kept.read_text()
        assert READY.search(kept.read_text())
        yield TorchServeText(kept)
    finally:
        assert said(folder, "--stop", "--foreground", command=command)[0] == 0
        kept.unlink()
