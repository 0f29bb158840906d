"""What a handler of an ordinary user gets of the server that runs it: nothing, unless the server is debuggable."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.harness.python_models import place
from tests.harness.raw_http import infer_request, tensor
from tests.harness.server_process import COMMAND, ServerProcess, environment, started

REACHES = """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        server = os.getppid()
        def opened(path):
            try:
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
                return True
            except PermissionError:
                return False
            except OSError:  # a socket: nothing keeps it from being opened but its kind
                return 'fd' in path
        def copied():
            libc.syscall.restype = ctypes.c_long
            pidfd = os.pidfd_open(server)
            return libc.syscall(438, pidfd, 1, 0) >= 0  # pidfd_getfd(2)
        def traced():
            begun = libc.ptrace(16, server, None, None) == 0  # PTRACE_ATTACH
            if begun:
                os.waitpid(server, 0x40000000)
                libc.ptrace(17, server, None, None)
            return begun
        files = [f'/proc/{server}/{name}' for name in ('mem', 'environ', 'maps', 'auxv', 'fd/0', 'fd/1', 'fd/2')]
        reached = [file for file in files if opened(file)]
        reached += [f'/proc/{server}/fd'] if [n for n in range(3, 64) if os.path.lexists(f'/proc/{server}/fd/{n}')
            and opened(f'/proc/{server}/fd/{n}')] else []
        reached += [name for name, act in (('pidfd_getfd', copied), ('ptrace', traced)) if act()]
        print('reached', *reached, flush=True)
        return [answer(OUT=np.array([[len(reached)]], np.int32)) for r in requests]
"""
NOBODY = 65534
AS_NOBODY = (
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
    "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",  # for a virtual environment in root's home
)  # fmt: skip


def ordinary() -> Sequence[str]:
    """Return what a command of an ordinary user begins with."""
    if os.geteuid():
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root reaches everything, and there is no setpriv to be somebody else with")
    return AS_NOBODY


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder that others may read; those of pytest are their owner's alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def reached(folder: Path, *words: str) -> int:
    root, log, scratch = folder / "models", folder / "log", folder / "temporary"
    place(root, "m", f"    def execute(self, requests):{REACHES}", "")
    scratch.mkdir()
    scratch.chmod(0o777)
    variables = {**environment(), "TMPDIR": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"}
    variables.pop("TRIVIUM_DEBUGGABLE", None)
    command = (*ordinary(), *COMMAND, "serve", "--http-port", "0", "--no-grpc", *words, root)
    with started(log, *command, variables=variables) as child:
        server = ServerProcess(child, log)
        assert server.process.uids().effective != 0
        answer = server.ask(infer_request("m", tensor("IN", [1], [1, 1], "INT32")))
        assert answer.status == 200, server.said()
        server.terminate()
        assert server.wait() == 0, server.said()
    return int(answer.document["outputs"][0]["data"][0])


def test_a_handler_reaches_nothing_of_the_server(folder: Path) -> None:
    assert reached(folder) == 0, (folder / "log").read_text()


def test_who_debugs_a_server_lets_handlers_in(folder: Path) -> None:
    # Where the system lets nobody trace but parents (Yama), memory and descriptors are out of reach all the same.
    assert reached(folder, "--debuggable") >= 5, (folder / "log").read_text()
