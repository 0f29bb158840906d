"""Traces in files, as JSON: one file for all, or numbered ones.

A thread of its own renders and writes, so that a slow disk holds up no request. The file for all is a whole JSON array
after every write, while the server runs, too. What cannot be written is told in the log, and lost.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trivium.types.errors import Code, ServeError
from trivium.types.tracing import Trace, Traces

_log = logging.getLogger(__name__)

MOST_BEHIND = 1000
"""Writes that may wait; what comes beyond them is lost."""

MOST_FILES = 1000
"""Numbered files; what comes beyond them goes into the file for all. Clients may ask for one per request."""


TraceText = Callable[[Iterable[Traces]], bytes]


class TraceFiles:
    """Implements `TraceExporter`."""

    def __init__(self, path: str, text: TraceText, follows: bool) -> None:
        """`text` writes records with commas between. `follows`: a client asks for the trace of a request by a trace
        context. LOAD_FAILED where no file can be written there.
        """
        folder = Path(path).absolute().parent
        if not folder.is_dir():
            raise ServeError(
                Code.LOAD_FAILED, f"Traces cannot be written to {path}: there is no folder {folder}. Make it."
            )
        self.file: str | None = path
        self.follows = follows
        self._text = text
        self.told: dict[str, str] = {}
        self._path = Path(path)
        self._thread = ThreadPoolExecutor(1, "traces")
        self._given = self._done = 0  # writes; each number has one thread that changes it
        self._index = 0
        self._is_begun = False

    def context(self, trace: Trace, above: str) -> str:
        """There is none: a file is no system of traces."""
        return ""

    def take(self, traces: Sequence[Traces], is_whole: bool) -> None:
        """See `TraceExporter`."""
        if self._given - self._done >= MOST_BEHIND:
            _log.error("traces are lost, %d requests': the disk of %s is too slow", len(traces), self._path)
            return
        self._given += 1
        self._thread.submit(self._write, traces, is_whole)

    def flush(self) -> None:
        """Wait until everything taken so far has been written, or was given up."""
        self._thread.submit(lambda: None).result()

    def close(self) -> None:
        """See `TraceExporter`."""
        self._thread.shutdown(wait=True)

    def _write(self, traces: Sequence[Traces], is_whole: bool) -> None:
        try:
            if is_whole and self._index < MOST_FILES:
                index, self._index = self._index, self._index + 1
                if self._index == MOST_FILES:
                    _log.warning(
                        "%d numbered files of traces: further ones go into %s", MOST_FILES, self._path
                    )
                Path(f"{self._path}.{index}").write_bytes(b"[" + self._text(traces) + b"]")
            else:
                self._append(self._text(traces))
        except OSError as error:
            _log.error("traces are lost, %d requests': %s", len(traces), error)
        except Exception:
            _log.exception("traces could not be rendered and are lost, %d requests'", len(traces))
        finally:
            self._done += 1

    def _append(self, records: bytes) -> None:
        """Write over the bracket that ends the array. What the disk takes only in part is not in the file at all."""
        before = b"]" if self._is_begun else b""
        added = (b"," if self._is_begun else b"[") + records + b"]"
        with self._path.open("r+b" if self._is_begun else "wb", buffering=0) as file:
            end = file.seek(-1, 2) if self._is_begun else 0
            try:
                if file.write(added) != len(added):
                    raise OSError(f"{self._path} has no room for {len(added)} bytes more; make some")
            except OSError:
                file.truncate(end)
                file.seek(end)
                file.write(before)
                raise
        self._is_begun = True
