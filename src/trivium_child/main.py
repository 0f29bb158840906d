"""The worker's life: descriptors, setup, the adapter, then batches until it is told to stop.

Descriptors come by number on the command line: the socket, the page of marks, the arena of request bodies.
Exit status 0 after a stop, 1 where the adapter could not be made.
"""

import importlib
import mmap
import os
import socket
import sys
import traceback
from typing import Any, Callable, Dict, List

from trivium_child.adapter import Adapter, Host, Setup
from trivium_child.runtime import Runtime
from trivium_child.values import Failure

MakeAdapter = Callable[[Setup, Host], Adapter]


def main(arguments: List[str]) -> None:
    """Run with the dialects that this folder has."""
    serve(arguments, adapter_of)


def serve(arguments: List[str], choose: Callable[[Dict[str, Any]], MakeAdapter]) -> None:
    """Run with the adapter that `choose` finds for a setup."""
    wire, marks, arena = (int(argument) for argument in arguments)
    connection = socket.socket(fileno=wire)
    runtime = Runtime(connection, _mapped(marks, writable=True), _mapped(arena, writable=False))
    os.register_at_fork(after_in_child=runtime.forget)
    told = runtime.await_setup()
    try:
        adapter = _make(told, choose, runtime)
    except SystemExit:
        raise
    except BaseException as error:
        runtime.refuse(_words(error), error.code if isinstance(error, Failure) else "load failed")
        sys.stdout.flush()
        os._exit(1)
    runtime.run(adapter)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # whatever threads user code has left behind


def adapter_of(told: Dict[str, Any]) -> MakeAdapter:
    """The adapter of a setup's dialect, which is a module of this package."""
    module = importlib.import_module("trivium_child." + told["dialect"])
    make: MakeAdapter = module.ADAPTER
    return make


def _make(told: Dict[str, Any], choose: Callable[[Dict[str, Any]], MakeAdapter], runtime: Runtime) -> Adapter:
    here = os.path.dirname(os.path.abspath(__file__))
    shims = os.path.join(here, "shims", told["dialect"])
    sys.path[:0] = [*told["path"], *([shims] if os.path.isdir(shims) else [])]
    return choose(told)(Setup(told), runtime.host)


def _words(error: BaseException) -> str:
    if isinstance(error, Failure):
        return error.message
    return "".join(traceback.format_exception(type(error), error, error.__traceback__)).strip()


def _mapped(descriptor: int, writable: bool) -> memoryview:
    size = os.fstat(descriptor).st_size
    if not size:
        return memoryview(b"")
    access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
    mapped = mmap.mmap(descriptor, size, access=access)
    os.close(descriptor)
    return memoryview(mapped)
