"""A helper process for work that may have to be ended: nobody could end what a thread does.

The process reads what the work needs once, and then only forks: each lane of work gets a child of it, which starts in
milliseconds and shares that memory. A child that is late, or whose work nobody wants any more, is killed, and the next
piece of work finds another one. All of them end with this process, however that ends: the socket to it closes.
"""

import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from trivium.machine.python_commands import own_module
from trivium.types.errors import noted, said_by
from trivium_worker.wire import system

Work = Callable[[bytes], bytes]
"""What a child does with a piece of work. It raises nothing: what it raises ends the child."""


class WorkOpener(NamedTuple):
    """Names a function, as `module:function`, that the process calls once with a text, JSON, and which returns `Work`.
    Code and data have ways of their own: no object of the one process is ever made anew in the other.
    """

    name: str
    arguments: str


STARTING = 60.0
"""Seconds that the process may take to be there: it imports libraries, on a machine that may be busy."""

POLLING = 0.1
"""Seconds between two looks at whether the work is still wanted."""

PATIENCE = 5.0
_SIZE = struct.Struct("<Q")
_CALL = struct.Struct("<cB")
_FORK, _END = b"f", b"e"
_READY, _FAULT = b"r", b"x"
_MOST_WORDS = 1000
_PIECE = 2**18
_SET_DEATH_SIGNAL = 1
_EXCEPT = "TOKENIZERS_PARALLELISM"
"""A library that has started threads must not be forked; and one text is no work for several."""


class EndOfWork(Enum):
    """Says why a piece of work has no result."""

    LATE = "late"
    UNWANTED = "unwanted"
    DIED = "died"


class WorkEnded(Exception):
    """Raised for a piece of work without result. `has_begun`: was any of the time its own?"""

    def __init__(self, reason: EndOfWork, has_begun: bool = True) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.has_begun = has_begun


class Unopened(Exception):
    """Raised by what opens work, with words that whoever asked for work may read: no path is in them."""


class HelperProcess:
    """Each child has what `work` opens, and may take `most_bytes` of memory beyond what that is."""

    def __init__(self, work: WorkOpener, most_bytes: int) -> None:
        self._work = work
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._is_closed = False
        self.ready_at = 0.0
        """When the process was there, in monotonic seconds: before that nobody's time for a piece of work passes."""

    @property
    def pid(self) -> int | None:
        """Return the process's number; None before it is needed."""
        return None if self._process is None else self._process.pid

    def fork(self, lane: int) -> socket.socket:
        """Return a connection to a new child; the one that the lane had is killed. OSError where there can be none."""
        with self._lock:
            for _ in range(2):
                control = self._control or self._start()
                try:
                    control.sendall(_CALL.pack(_FORK, lane))
                    _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
                except OSError:
                    descriptors = []
                if descriptors:
                    return socket.socket(fileno=descriptors[0])
                self._drop()  # it has been killed: it is started anew, once
        raise _unstarted("")

    def end(self, lane: int) -> None:
        """Kill the child of a lane. It is gone when this returns."""
        with self._lock:
            if self._control is None:
                return
            try:
                self._control.sendall(_CALL.pack(_END, lane))
                self._control.recv(1)
            except OSError:
                self._drop()

    def close(self) -> None:
        """End all of it."""
        with self._lock:
            self._is_closed = True
            self._drop()

    def _start(self) -> socket.socket:
        if self._is_closed:
            raise ConnectionError("the model is being closed")
        ours, theirs = socket.socketpair()
        command = own_module(__name__, str(theirs.fileno()))
        with theirs:
            self._process = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env={**os.environ, _EXCEPT: "false"},
            )
        here = str(Path.cwd())
        told = [[entry for entry in sys.path if entry not in ("", here)], *self._work, self._most_bytes]
        ours.settimeout(STARTING)
        try:
            _send(ours, json.dumps(told).encode())
            said = ours.recv(_MOST_WORDS + 1)
        except OSError:
            said = b""
        self._control = ours
        if said != _READY:
            self._drop()
            raise _unstarted(said[1:].decode(errors="replace"))
        self.ready_at = time.monotonic()
        return ours

    def _drop(self) -> None:
        control, self._control = self._control, None
        process, self._process = self._process, None
        if control is not None:
            control.close()
        if process is not None:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _unstarted(words: str) -> ConnectionError:
    why = f": {words}" if words else ""
    return ConnectionError(f"the process for texts could not be started{why}; its last lines are in the log")


class HelperLane:
    """One piece of work at a time, by one thread; `number` tells the lanes of a process apart."""

    def __init__(self, process: HelperProcess, number: int) -> None:
        self._process = process
        self._number = number
        self._connection: socket.socket | None = None

    def do(self, work: bytes, came_at: float, seconds: float, is_wanted: Callable[[], bool]) -> bytes:
        """Return the result of a piece of work that came then. Raises WorkEnded where it is not there so many seconds
        later, waiting for the lane included, where it is no longer wanted, or where its child died; OSError where there
        is no process.
        """
        if not is_wanted():
            raise WorkEnded(EndOfWork.UNWANTED, has_begun=False)
        connection = self._connection
        if connection is None:
            connection = self._connection = self._process.fork(self._number)
        until = max(came_at, self._process.ready_at) + seconds
        if time.monotonic() >= until:
            raise WorkEnded(EndOfWork.LATE, has_begun=False)
        try:
            return _exchanged(connection, work, until, is_wanted)
        except OSError as error:
            self._leave()
            raise WorkEnded(EndOfWork.DIED) from error
        except WorkEnded:
            self._leave()
            raise

    def close(self) -> None:
        """Leave the child, which ends."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _leave(self) -> None:
        self.close()
        self._process.end(self._number)


def _exchanged(connection: socket.socket, work: bytes, until: float, is_wanted: Callable[[], bool]) -> bytes:
    """Send a piece of work and return what comes back."""
    unsent = memoryview(_SIZE.pack(len(work)) + work)
    came = bytearray()
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise WorkEnded(EndOfWork.LATE)
        connection.settimeout(min(left, POLLING))
        try:
            if unsent:
                unsent = unsent[connection.send(unsent[:_PIECE]) :]
                continue
            piece = connection.recv(_PIECE)
        except TimeoutError:
            if not is_wanted():
                raise WorkEnded(EndOfWork.UNWANTED) from None
            continue
        if not piece:
            raise ConnectionError("it has ended")
        came += piece
        if len(came) >= _SIZE.size and len(came) == _SIZE.size + _SIZE.unpack_from(came)[0]:
            return bytes(memoryview(came)[_SIZE.size :])


# -- in the process ----------------------------------------------------------------------------------------------------


def run_helper(descriptor: int) -> None:
    """Be the process: open the work that is named over that socket, and fork what does it. Returns when that closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what comes to a terminal is for who started this
    control = socket.socket(fileno=descriptor)
    path, name, arguments, most = json.loads(_message(control))
    sys.path += [entry for entry in path if entry not in sys.path]
    try:
        work = _opened(name, arguments)
    except BaseException as error:  # it is code of libraries, and perhaps of a model's folder
        control.sendall(_FAULT + _words(noted(error)))
        if isinstance(error, Unopened):
            cause = f": {said_by(error.__cause__)}" if error.__cause__ else ""
            sys.exit(f"{name}: {said_by(error)}{cause}")
        raise
    _bound(most)
    control.sendall(_READY)
    children: dict[int, int] = {}
    while len(call := control.recv(_CALL.size, socket.MSG_WAITALL)) == _CALL.size:
        what, lane = _CALL.unpack(call)
        _kill(children.pop(lane, 0))
        if what == _END:
            control.sendall(b"e")
            continue
        ours, theirs = socket.socketpair()
        number = os.fork()
        if not number:
            control.close()
            ours.close()
            _serve(theirs, work)
        children[lane] = number
        theirs.close()
        socket.send_fds(control, [b"f"], [ours.fileno()])
        ours.close()
    for number in children.values():
        _kill(number)


def _serve(connection: socket.socket, work: Work) -> None:
    """Do one piece of work after the other until nobody sends any. Never returns."""
    status = 1
    try:
        _die_with_parent()
        while asked := _message(connection):
            _send(connection, work(asked))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)  # its parent's loop is not its own


def _opened(name: str, arguments: str) -> Work:
    module, _, function = name.partition(":")
    made: Work = getattr(import_module(module), function)(arguments)
    return made


def _words(error: BaseException) -> bytes:
    """Return what strangers may read of an error, in so few bytes that they come in one piece."""
    words = str(error) if isinstance(error, Unopened) else type(error).__name__
    return words.encode(errors="replace")[:_MOST_WORDS].decode(errors="ignore").encode()


def _die_with_parent() -> None:
    with suppress(OSError):  # elsewhere the end of the connection tells it
        system.libc("prctl", _SET_DEATH_SIGNAL, signal.SIGKILL)


def _send(connection: socket.socket, message: bytes) -> None:
    connection.sendall(_SIZE.pack(len(message)) + message)


def _message(connection: socket.socket) -> bytes:
    """Return the next message; empty at the end."""
    head = connection.recv(_SIZE.size, socket.MSG_WAITALL)
    if len(head) < _SIZE.size:
        return b""
    size = _SIZE.unpack(head)[0]
    came = bytearray()
    while len(came) < size:
        piece = connection.recv(min(size - len(came), _PIECE))
        if not piece:
            return b""
        came += piece
    return bytes(came)


def _bound(most: int) -> None:
    """Let this process, and each child, have so much more memory than it has now."""
    with suppress(ValueError, OSError):  # a smaller one has been set already, or the system does not tell
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + most
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _kill(number: int) -> None:
    if number:
        os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)


if __name__ == "__main__":
    # What opens work raises `Unopened` of the module under its own name, and not of its twin, the program.
    import_module("trivium.machine.helper_process").run_helper(int(sys.argv[1]))
