"""The real tritonserver, out of the wheel `nvidia-pytriton`, in an environment of its own that `make e2e` builds.

Where that environment lacks the test fails: it is never skipped. Knows nothing of what is served.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from tests.harness.ports import free_port
from tests.harness.server_process import SECONDS, until

ENVIRONMENT = Path(
    os.environ.get("TRITONSERVER_ENVIRONMENT", Path(__file__).parents[3] / ".venv-tritonserver")
)
_STARTED = re.compile(r"Started HTTPService at")


@contextlib.contextmanager
def original(repository: Path, scratch: Path) -> Iterator[tuple[str, str]]:
    """It serves `repository`, all models loaded, in the mode `explicit`; its addresses for HTTP and for gRPC."""
    package = _package()
    http, grpc = free_port(), free_port()
    command = [
        str(package / "tritonserver" / "bin" / "tritonserver"),
        f"--model-repository={repository}",
        f"--backend-directory={_backends(package, scratch)}",
        "--model-control-mode=explicit",
        "--load-model=*",
        "--exit-timeout-secs=5",
        "--http-header-forward-pattern=x-own",
        "--http-address=127.0.0.1",
        "--grpc-address=127.0.0.1",
        f"--http-port={http}",
        f"--grpc-port={grpc}",
        "--allow-metrics=false",
    ]
    libraries = [str(package.parent / "nvidia_pytriton.libs"), sysconfig.get_config_var("LIBDIR") or ""]
    environment = os.environ | {
        "LD_LIBRARY_PATH": ":".join(libraries),
        "PATH": f"{ENVIRONMENT / 'bin'}:{os.environ['PATH']}",
    }
    log = scratch / "tritonserver.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        until(lambda: _has_started(process, log), log.read_text, 2 * SECONDS)
        until(lambda: _listens(http) and _listens(grpc), log.read_text)
        yield f"127.0.0.1:{http}", f"127.0.0.1:{grpc}"
        assert process.poll() is None, f"the original has ended:\n{log.read_text()[-4000:]}"
    finally:
        process.terminate()
        try:
            process.wait(SECONDS)
        finally:
            process.kill()
            process.wait()


def _has_started(process: subprocess.Popen[bytes], log: Path) -> bool:
    said = log.read_text()
    assert process.poll() is None, f"the original has ended:\n{said}"
    return bool(_STARTED.search(said))


def _listens(port: int) -> bool:
    """Its log says that it has started before it does."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _package() -> Path:
    found = list((ENVIRONMENT / "lib").glob("python*/site-packages/pytriton"))
    assert found, f"There is no tritonserver in {ENVIRONMENT}. Run `make e2e`, which builds that environment."
    return found[0]


def _backends(package: Path, scratch: Path) -> Path:
    """The Python backend with the stub of this Python beside it, as the server looks for it."""
    backends = scratch / "backends"
    shutil.copytree(package / "tritonserver" / "backends", backends)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = package / "tritonserver" / "python_backend_stubs" / version / "triton_python_backend_stub"
    shutil.copy(stub, backends / "python")
    return backends
