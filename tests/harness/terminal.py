"""Commands on a terminal of a given width, or on none, and what then stands on it."""

import contextlib
import errno
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.harness.server_process import SECONDS, environment, until

OTHERWISE = frozenset(
    {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "TERM", "PYTHONPATH"}
)
"""Variables that would have a terminal be another one."""

_PROGRAM = "from trivium.cli.main import main; main(prog_name='trivium')"
_LINES = 50
_CONTROL = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])")
_CURSOR = ("?25l", "?25h")


def displayed(text: str) -> str:
    """What stands on a terminal that was sent this: each line as it is at the end, without colours. A line that is
    wider than the screen stays whole, as it is when it is copied.
    """
    lines: list[str] = [""]
    row = column = at = 0
    while at < len(text):
        control = _CONTROL.match(text, at)
        if control is not None:
            at = control.end()
            parameters, letter = control.groups()
            if letter == "A":
                row = max(0, row - int(parameters or 1))
            elif letter == "K" and parameters == "2":
                lines[row] = ""
            else:
                assert letter == "m" or parameters + letter in _CURSOR, f"unknown: {control[0]!r}"
            continue
        character, at = text[at], at + 1
        assert character != "\x1b", f"unknown: {text[at - 1 : at + 10]!r}"
        if character == "\r":
            column = 0
        elif character == "\n":
            row, column = row + 1, 0
            lines.extend([""] * (row + 1 - len(lines)))
        else:
            line = lines[row].ljust(column)
            lines[row] = line[:column] + character + line[column + 1 :]
            column += 1
    return "\n".join(line.rstrip() for line in lines)


class CommandOnTerminal:
    """A `trivium` command that runs, and all that it has printed so far."""

    def __init__(self, process: "subprocess.Popen[bytes]", descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self._printed = bytearray()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._descriptor, 65536)
            except OSError as error:
                if error.errno != errno.EIO:  # how Linux says that the other side of a terminal is gone
                    raise
                return
            if not piece:
                return
            self._printed += piece

    def printed(self) -> str:
        """What it has printed so far, with what a terminal obeys."""
        return bytes(self._printed).decode().replace("\r\n", "\n")

    def await_text(self, text: str) -> None:
        """Wait until it has printed a line with this."""
        pattern = re.compile(f"{re.escape(text)}.*\n")

        def look() -> bool:
            found = pattern.search(self.printed())
            assert found or self.process.poll() is None, f"it has ended: {self.printed()}"
            return found is not None

        until(look, self.printed)

    def ended(self) -> str:
        """All that it printed, once it has ended by itself."""
        self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        return self.printed()


@contextlib.contextmanager
def on_terminal(
    words: Sequence[str], columns: int | None, folder: Path, python: str = sys.executable
) -> Iterator[CommandOnTerminal]:
    """`trivium WORDS` in a folder, on a terminal of so many columns; without one where that is None. It is killed at
    the end if it still runs.
    """
    kept = {key: value for key, value in environment().items() if key not in OTHERWISE}
    given = kept | {"TERM": "xterm-256color"}
    ours, theirs = pty.openpty() if columns is not None else os.pipe()
    try:
        if columns is not None:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, columns, 0, 0))
        process = subprocess.Popen(
            [folder / python, "-c", _PROGRAM, *words],
            stdin=subprocess.DEVNULL if columns is None else theirs,
            stdout=theirs,
            stderr=theirs,
            env=given,
            cwd=folder,
            start_new_session=True,
        )
    finally:
        os.close(theirs)
    child = CommandOnTerminal(process, ours)
    try:
        yield child
    finally:
        process.kill()
        process.wait()
        child.ended()
        os.close(ours)
