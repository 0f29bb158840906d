"""Runs the command lines with one TorchServe or the other, and tells what there is to see of each from outside."""

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.torchserve_commands.lines import ENDING, FILES, MODEL, SERVED, Line, Served, first_line
from tests.harness.ports import free_port
from tests.harness.raw_http import ask, get, post
from tests.harness.server_process import SECONDS, environment, until

STARTED = re.compile("^Model server started.$", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    """A TorchServe: what its command line begins with, and the folder of programs that it needs on the PATH."""

    command: Sequence[str]
    path: str = ""

    def variables(self, folder: Path, more: Mapping[str, str]) -> Mapping[str, str]:
        """The environment of a command in a folder."""
        path = f"{self.path}{os.pathsep}{os.environ['PATH']}" if self.path else os.environ["PATH"]
        kept = {name: value for name, value in environment().items() if not name.startswith("TS_")}
        return {**kept, "PATH": path, "TMPDIR": str(folder), "TEMP": str(folder), **more}


def play(program: Program) -> dict[str, Any]:
    """What is seen of every line."""
    found: dict[str, Any] = {}
    for name, line in ENDING.items():
        found[name] = ended(program, line)
    for name, served in SERVED.items():
        found[name] = seen(program, served)
    return found


def ended(program: Program, line: Line) -> list[Any]:
    """Exit status and first line of a line that ends by itself."""
    with _folder(line.text, line.files) as (folder, _):
        with (folder / "said").open("wb") as output:
            done = subprocess.run(
                [*program.command, *line.words],
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
                env=program.variables(folder, line.variables),
                cwd=folder,
                check=False,
            )
        return [done.returncode, first_line((folder / "said").read_text(), str(folder))]


def seen(program: Program, served: Served) -> dict[str, Any]:
    """What a server shows that a line has started, or its exit status where it did not come up."""
    with _folder(served.text, served.files) as (folder, ports):
        log = folder / "said"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*program.command, *served.words],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=program.variables(folder, served.variables),
                cwd=folder,
            )
        try:
            until(lambda: bool(STARTED.search(log.read_text())) or process.poll() is not None, log.read_text)
            if not STARTED.search(log.read_text()):
                return {"status": process.wait(), "first": first_line(log.read_text(), str(folder))}
            is_orphan = "Removing orphan pid file." in log.read_text().splitlines()
            shown = {"orphan": is_orphan, **_shown(folder, ports, served, log)}
            stop = subprocess.run(
                [*program.command, "--stop", "--foreground"],
                capture_output=True,
                text=True,
                timeout=SECONDS,
                env=program.variables(folder, served.variables),
                cwd=folder,
                check=False,
            )
            status = process.wait(SECONDS)
            return {**shown, "stop": [stop.returncode, stop.stdout], "status": status, **_left(folder)}
        finally:
            process.kill()
            process.wait()


def _shown(folder: Path, ports: Mapping[str, int], served: Served, log: Path) -> dict[str, Any]:
    until(lambda: _is_settled(folder, ports, served, log), log.read_text)
    registered = ask(ports["management"], post("/models?url=one&model_name=three&initial_workers=0", b""))
    return {
        "ping": ask(ports["inference"], get("/ping")).status,
        "register": registered.status,
        "models": _models(folder, ports),
        "keys": (folder / "key_file.json").exists(),
    }


def _is_settled(folder: Path, ports: Mapping[str, int], served: Served, log: Path) -> bool:
    # Models are loaded behind the ready line.
    expects = "--models" in served.words or "load_models" in served.text
    return not expects or bool(_models(folder, ports)) or "Failed to load model" in log.read_text()


def _models(folder: Path, ports: Mapping[str, int]) -> list[str]:
    key = _key(folder)
    answer = ask(ports["management"], get("/models", key))
    return sorted(each["modelName"] for each in answer.document["models"])


def _key(folder: Path) -> bytes:
    file = folder / "key_file.json"
    if not file.exists():
        return b""
    found = re.search(r'"management": \{\s*"key": "([^"]+)"', file.read_text())
    return f"Authorization: Bearer {found[1]}\r\n".encode() if found else b""


def _left(folder: Path) -> dict[str, Any]:
    kinds = {path.stem.partition("-")[2] for path in (folder / "logs" / "config").glob("*.cfg")}
    return {
        "snapshots": sorted(kinds - {"snapshot"}),
        "left": sorted(name for name in (".model_server.pid", "key_file.json") if (folder / name).exists()),
    }


@contextlib.contextmanager
def _folder(text: str, files: Mapping[str, str]) -> Iterator[tuple[Path, Mapping[str, int]]]:
    with tempfile.TemporaryDirectory(prefix="torchserve-commands-") as name:
        folder = Path(name)
        for path, content in {**FILES, **files}.items():
            (folder / path).write_text(content)
        for path, content in MODEL.items():
            place = folder / "store" / "one" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)
        ports = {
            each: free_port() for each in ("inference", "management", "metrics", "grpc", "grpc2", "workers")
        }
        https = "".join(f"{each}_address=http://127.0.0.1:{ports[each]}\n" for each in list(ports)[:3])
        (folder / "config.properties").write_text(
            f"{https}grpc_inference_port={ports['grpc']}\ngrpc_management_port={ports['grpc2']}\n"
            f"initial_worker_port={ports['workers']}\ndefault_workers_per_model=1\n{text}"
        )
        yield folder, ports
