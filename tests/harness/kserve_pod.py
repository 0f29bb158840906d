"""A pod without Kubernetes: the process that a runtime of `deploy/kserve` starts, with the command, the variables and
the probes of its manifest, over a folder laid out as KServe does.

What differs from a cluster: /mnt/models is another folder, and ports are free ones.
"""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import yaml
from tests.harness.commands import trivium
from tests.harness.ports import free_port
from tests.harness.server_process import LoggedProcess, environment, started, until

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "deploy" / "kserve"
ENTRY = (sys.executable, "-m", "trivium.cli.container")
"""What the images begin with."""


@cache
def objects(file: str) -> dict[str, Any]:
    """The objects of a file of `deploy/kserve`, by their names."""
    read = yaml.safe_load_all((MANIFESTS / file).read_text())
    return {each["metadata"]["name"]: each for each in read}


@cache
def commands() -> str:
    """A folder with the commands that the images have on their PATH."""
    folder = mkdtemp(prefix="commands-")
    assert trivium("link", folder).returncode == 0
    own = Path(folder) / "trivium"
    own.write_text(f'#!/bin/sh\nexec {sys.executable} -m trivium.cli.main "$@"\n')
    own.chmod(0o755)
    return folder


class Pod(LoggedProcess):
    """One that runs. `http` and `rpc` are ports of this machine, as the runtime's own are of a pod."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path, container: Mapping[str, Any]) -> None:
        super().__init__(process, log)
        self._container = container
        self.http = 0
        self.rpc = 0

    def probe(self, kind: str) -> bool:
        """Whether the manifest's probe of this kind passes, as a kubelet has it: any status from 200 to 399."""
        asked = self._container[f"{kind}Probe"]
        assert asked["httpGet"]["port"] == 8080
        url = f"http://127.0.0.1:{self.http}{asked['httpGet']['path']}"
        try:
            with urllib.request.urlopen(url, timeout=asked["timeoutSeconds"]) as answer:
                return bool(200 <= answer.status < 400)
        except (urllib.error.HTTPError, OSError):
            return False

    def await_ready(self) -> None:
        """Wait as a cluster does: first for the start, then for readiness."""
        for kind in ("startup", "readiness"):
            until(lambda kind=kind: self._passes(kind), lambda kind=kind: f"no {kind}:\n{self.said()}")

    def _passes(self, kind: str) -> bool:
        assert not self.has_ended(), self.said()
        return self.probe(kind)


@contextmanager
def pod(
    runtime: str,
    mount: Path,
    log: Path,
    name: str = "digits",
    variables: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    words: tuple[str, ...] = (),
) -> Iterator[Pod]:
    """The container of a runtime as an InferenceService of this name starts it, with its variables and labels; `words`
    go behind its arguments. At the end it is told to stop.
    """
    (container,) = objects("runtimes.yaml")[runtime]["spec"]["containers"]
    ports = {
        "8080": str(free_port()),
        "8001": str(free_port()),
        "9000": str(free_port()),
        "8081": str(free_port()),
    }

    def filled(text: str) -> str:
        for key, value in (labels or {}).items():
            text = text.replace(f"{{{{.Labels.{key}}}}}", value)
        for told, free in ports.items():
            text = text.replace(f"port={told}", f"port={free}").replace(f":{told}", f":{free}")
        return text.replace("{{.Name}}", name).replace("/mnt/models", str(mount))

    given = {each["name"]: filled(each["value"]) for each in container["env"]}
    scratch = log.parent / f"{log.name}-tmp"
    scratch.mkdir()
    env = {
        **environment(),
        **given,
        **{"TMPDIR": str(scratch), "TEMP": str(scratch), "LOG_LOCATION": str(scratch)},
        **(variables or {}),
        "PATH": f"{commands()}:{os.environ['PATH']}",
    }
    arguments = [*map(filled, container["args"]), *words]
    with started(log, *ENTRY, *arguments, variables=env) as process:
        running = Pod(process, log, container)
        running.http = int(ports["8080"])
        running.rpc = int(ports["9000" if runtime == "trivium-triton" else "8001"])
        yield running
        if not running.has_ended():
            running.process.terminate()
            assert running.wait() == 0, running.said()
