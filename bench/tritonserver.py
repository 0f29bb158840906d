"""The real tritonserver, out of the wheel `nvidia-pytriton`, in an environment of its own beside the bench's.

It has the Python backend alone, so it is given the repository of handlers. `available` tells why it cannot run.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.repository import CACHE
from bench.servers import Server, await_line, free_port, started

ENVIRONMENT = CACHE / "tritonserver"
WHEELS = ("nvidia-pytriton==0.7.0", "onnxruntime>=1.19")


def install() -> None:
    """Make the environment, once."""
    made = ENVIRONMENT / ".made"
    if made.exists():
        return
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    pip = [str(ENVIRONMENT / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *WHEELS], check=True)
    package = _package()
    backends = ENVIRONMENT / "backends"
    shutil.copytree(package / "tritonserver" / "backends", backends, dirs_exist_ok=True)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = package / "tritonserver" / "python_backend_stubs" / version / "triton_python_backend_stub"
    shutil.copy(stub, backends / "python")
    made.touch()


@contextmanager
def running(repository: Path) -> Iterator[Server]:
    """The server on two free ports, for HTTP and gRPC."""
    install()
    port, grpc_port, log = free_port(), free_port(), CACHE / "tritonserver.log"
    package = _package()
    libraries = [package.parent / "nvidia_pytriton.libs", sysconfig.get_config_var("LIBDIR") or ""]
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
        "PATH": f"{ENVIRONMENT / 'bin'}:{os.environ['PATH']}",
    }
    command = [
        str(package / "tritonserver" / "bin" / "tritonserver"),
        f"--model-repository={repository}",
        f"--backend-directory={ENVIRONMENT / 'backends'}",
        f"--http-port={port}",
        "--http-address=127.0.0.1",
        f"--grpc-port={grpc_port}",
        "--grpc-address=127.0.0.1",
        "--allow-metrics=false",
    ]
    with started(command, log, environment) as process:
        await_line(log, process, "Started HTTPService")
        yield Server(process, f"http://127.0.0.1:{port}", f"127.0.0.1:{grpc_port}")


def libraries_for_clients() -> Path:
    """A folder with what NVIDIA's own client programs need of its libraries, under the names that they ask for."""
    install()
    folder = ENVIRONMENT / "client-libraries"
    folder.mkdir(exist_ok=True)
    for name, found in (("libcudart.so.12", "libcudart-*.so.12*"), ("libb64.so.0d", "libb64-*.so.0d")):
        link = folder / name
        if not link.exists():
            (library,) = (_package().parent / "nvidia_pytriton.libs").glob(found)
            link.symlink_to(library)
    return folder


def _package() -> Path:
    (found,) = (ENVIRONMENT / "lib").glob("python*/site-packages/pytriton")
    return found
