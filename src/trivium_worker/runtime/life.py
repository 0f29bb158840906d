"""The worker's life: descriptors, setup, the adapter, then batches until the server says stop.

On the command line come the worker's bounds, as JSON, if it has any, and descriptors by number: the socket, the page of
marks, the arena of request bodies.
Exit status 0 after a stop, 1 where the adapter could not be made; what user code asked for by SystemExit.
"""

import contextlib
import gc
import json
import mmap
import os
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from trivium_worker.runtime.adapter import Adapter, Host, Setup
from trivium_worker.runtime.runtime import Runtime
from trivium_worker.runtime.traces import advice_on, place_of, print_trace, trace_of
from trivium_worker.wire.bounds import apply
from trivium_worker.wire.values import Failure

GC_THRESHOLD = 20_000
"""As in the server: a request makes few cycles, and many objects."""

MakeAdapter = Callable[[Setup, Host], Adapter]


def serve(arguments: list[str], choose: Callable[[dict[str, Any]], MakeAdapter]) -> None:
    """Run with the adapter that `choose` finds for a setup."""
    *bounds, wire, marks, arena = (json.loads(argument) for argument in arguments)
    connection = socket.socket(fileno=wire)
    runtime = Runtime(connection, _mapped(marks), _mapped(arena))
    os.register_at_fork(before=runtime.loans.pin, after_in_child=runtime.forget)
    try:
        for each in bounds:
            apply(each)
    except Failure as error:
        runtime.refuse(error.message, error.code)
        _leave(1)
    told = runtime.await_setup()
    try:
        adapter = choose(told)(Setup(told), runtime.host)
    except SystemExit as error:
        _leave(status_of(error))
    except BaseException as error:
        runtime.refuse(words_of(error), error.code if isinstance(error, Failure) else "load failed")
        _leave(1)
    gc.collect()
    gc.freeze()  # what has been loaded stays: later collections need not look at it
    gc.set_threshold(GC_THRESHOLD)
    try:
        runtime.run(adapter)
    except SystemExit as error:
        _leave(status_of(error))
    except BaseException as error:
        print_trace(error)
        _leave(1)
    _flush()
    runtime.hang_up()
    _leave(0)


def status_of(error: SystemExit) -> int:
    """Return the exit status as the interpreter would: text is printed, and means 1."""
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    with contextlib.suppress(Exception):
        sys.stderr.write(f"{error.code}\n")
    return 1


def _leave(status: int) -> NoReturn:
    """End the process at once, whatever threads user code has left behind."""
    _flush()
    os._exit(status)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # user code may have closed it
            stream.flush()


def words_of(error: BaseException) -> str:
    """Return what kept the model from loading: the place and the error, what to do, then how it came to that."""
    if isinstance(error, Failure):
        return error.message
    last = traceback.format_exception_only(type(error), error)[-1].strip().rstrip(".")
    place, advice = place_of(error), advice_on(error)
    said = f"{place}: the model's code raised {last}." if place else f"The model's code raised {last}."
    return f"{said} {advice}".rstrip() + f"\n{trace_of(error)}"


def _mapped(descriptor: int) -> memoryview:
    size = os.fstat(descriptor).st_size
    if not size:
        return memoryview(b"")
    mapped = mmap.mmap(descriptor, size)
    os.close(descriptor)
    return memoryview(mapped)
