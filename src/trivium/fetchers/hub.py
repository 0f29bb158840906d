"""Fetches models from the Hugging Face hub, by huggingface_hub, into the user's own cache; the extra `hub` has it.

A process of its own does it, which can be ended at any time. What is served is a folder of links to the chosen files
alone: whatever else the cache has of a model, code above all, is not in it.
"""

import json
import os
import queue
import subprocess
import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trivium.fetchers.hub_policy import SCHEME, HubModel, read_uri
from trivium.fetchers.policy import permitted, shown
from trivium.fetchers.reports import REPORTS, FetchReport
from trivium.machine.extras import lacking
from trivium.machine.python_commands import own_module
from trivium.types.errors import Code, ServeError
from trivium.types.fetching import FetchBounds
from trivium.types.spoken import spoken

_LOOKS = 0.1
_PATIENCE = 5.0
_SECONDS_OF_SILENCE = 180.0
_EXTRA, _LIBRARY = "hub", "huggingface_hub"
_QUIET = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_VERBOSITY": "error", "HF_HUB_DISABLE_TELEMETRY": "1"}


class HubFetcher:
    """Implements `types.interfaces.Fetcher` for `hf://ORG/MODEL[:FILE][@REVISION]`."""

    schemes = (SCHEME,)

    def fetch(self, uri: str, into: Path, bounds: FetchBounds) -> Path:
        """See `Fetcher`. The files themselves stay in the cache; the folder in `into` links to them."""
        model = read_uri(uri)
        permitted(f"{SCHEME}://{model.repository}", bounds.places)
        folder, files = self.download(model, bounds)
        return _linked(folder, files, into / model.title, model)

    def download(self, model: HubModel, bounds: FetchBounds) -> tuple[Path, list[str]]:
        """Bring a model into the cache. Returns the folder of its revision there, and those of its files that are a
        model's. Raises as `fetch`.
        """
        check_installed()
        with _Program(model, bounds) as program:
            since = time.monotonic()
            while True:
                said = program.answer()
                if "total" in said:
                    since = REPORTS(FetchReport(str(model), said["done"], said["total"]), since)
                elif "message" in said:
                    raise ServeError(Code(said["code"]), said["message"])
                else:
                    if said["note"]:
                        REPORTS.note(said["note"])
                    return Path(said["folder"]), list(said["files"])


def check_installed() -> None:
    """Raise UNSUPPORTED, with the command that installs it, where the library is not there."""
    if find_spec(_LIBRARY) is None:
        error = ModuleNotFoundError(name=_LIBRARY)
        raise lacking("Models of the Hugging Face hub", error, _EXTRA)


class _Program:
    """The process that fetches one model, which is gone at the end of the `with`."""

    def __init__(self, model: HubModel, bounds: FetchBounds) -> None:
        self._model, self._bounds = model, bounds
        self._until = time.monotonic() + bounds.seconds
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._process = subprocess.Popen(
            own_module("trivium.fetchers.hub_download"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **_QUIET},
            start_new_session=True,  # Ctrl-C is for who started this
        )

    def __enter__(self) -> "_Program":
        asked = {
            "model": [self._model.repository, self._model.revision, self._model.file],
            "code": self._bounds.with_code,
            "size": self._bounds.size,
            "named": self._bounds.is_named,
        }
        assert self._process.stdin is not None
        with suppress(OSError):  # it has ended, and says so below
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
        threading.Thread(target=self._read, name="trivium-hub", daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(line)
        self._answers.put(b"")

    def answer(self) -> dict[str, Any]:
        """Return the next thing that it says. Raises LOAD_FAILED where that is not waited for any longer."""
        silent_until = time.monotonic() + _SECONDS_OF_SILENCE
        while True:
            try:
                line = self._answers.get(timeout=_LOOKS)
            except queue.Empty:
                self._check(silent_until)
                continue
            if not line:
                raise self._failed("the process that fetches it ended")
            said: dict[str, Any] = json.loads(line)
            return said

    def _check(self, silent_until: float) -> None:
        now = time.monotonic()
        if self._bounds.is_given_up():
            raise self._failed("nobody waits for it any more")
        if now > self._until and not self._bounds.is_named:
            raise self._failed(spoken(f"it took more than {self._bounds.seconds:g} s (--fetch-seconds)"))
        if now > silent_until:
            raise self._failed(f"nothing came for {_SECONDS_OF_SILENCE:g} s")

    def _failed(self, why: str) -> ServeError:
        return ServeError(
            Code.LOAD_FAILED, f"{self._model} could not be fetched: {why}. What is whole stays; try again."
        )


def _linked(folder: Path, files: list[str], target: Path, model: HubModel) -> Path:
    """Lay out a folder of links to these files of a cache. Raises LOAD_FAILED for one that leads out of the cache."""
    cache = folder.resolve().parents[2]
    for name in files:
        real = (folder / name).resolve()
        if not real.is_relative_to(cache) or not real.is_file():
            raise ServeError(
                Code.LOAD_FAILED,
                f"{shown(str(model))}: {folder / name} is no file of the cache {cache}: its link leads elsewhere, or "
                f"nowhere. Remove the model (trivium rm {model.repository}), and fetch it again.",
            )
        link = target / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(real)
    return target


FETCHER = HubFetcher()
