"""`ts.launcher`: starts and stops the command `torchserve`, and registers models, for people's own tests.

The functions have the original's names, arguments and results. The command is the one on the PATH, which is ours where
`trivium link DIR` has put it there; without one it is `trivium torchserve`.
"""

import contextlib
import shutil
import subprocess
import sys
import threading
from queue import Empty, Full, Queue
from typing import Any

_STARTED = "Model server started"
_MOST_LINES = 1000
_MANAGEMENT = "http://localhost:8081/models"


def start(  # noqa: PLR0913 - the original's parameters
    model_store: "str | None" = None,
    snapshot_file: "str | None" = None,
    no_config_snapshots: bool = False,
    plugin_folder: "str | None" = None,
    disable_token: bool = False,
    models: "str | None" = None,
    enable_model_api: bool = False,
) -> "Queue[str | None]":
    """Start it anew, and wait until it says so, or ends. What it says from then on is printed, and put into the queue
    that is returned: up to 1000 lines, and None behind the last one.
    """
    if model_store is None:
        raise ValueError("launcher.start: pass model_store, the folder with the archives")
    stop()
    named = {
        "--plugins-path": plugin_folder,
        "--ts-config": snapshot_file,
        "--models": models,
    }
    switches = {
        "--no-config-snapshots": no_config_snapshots,
        "--disable-token-auth": disable_token,
        "--enable-model-api": enable_model_api,
    }
    words = [*_command(), "--start", "--model-store", str(model_store)]
    words += [word for flag, value in named.items() if value for word in (flag, str(value))]
    words += [flag for flag, is_on in switches.items() if is_on]
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    assert process.stdout is not None
    for line in process.stdout:
        sys.stdout.write(line)
        if _STARTED in line:
            break
    said: Queue[str | None] = Queue(_MOST_LINES)
    threading.Thread(target=_pass_on, args=(process, said), daemon=True).start()
    return said


def stop(wait: bool = True) -> None:
    """Stop the one that runs, if any; with `wait` return once it has ended."""
    subprocess.run([*_command(), "--stop", *(["--foreground"] if wait else [])], check=False)


def register_model_with_params(params: Any) -> Any:
    """Register a model with these parameters; return the response of `requests`, which has to be installed."""
    try:
        import requests
    except ImportError as error:
        raise ImportError(
            "ts.launcher registers models by the package requests: pip install requests"
        ) from error
    return requests.post(_MANAGEMENT, params=params)


def register_model(model_name: str, url: str) -> Any:
    """Register an archive under a name, with one worker, and wait for that."""
    told = {"model_name": model_name, "url": url, "initial_workers": "1", "synchronous": "true"}
    return register_model_with_params(tuple(told.items()))


def _command() -> "list[str]":
    found = shutil.which("torchserve")
    if found:
        return [found]
    own = shutil.which("trivium")
    if own:
        return [own, "torchserve"]
    raise FileNotFoundError(
        "Neither torchserve nor trivium is on the PATH: `trivium link DIR` puts torchserve into a folder of it"
    )


def _pass_on(process: "subprocess.Popen[str]", said: "Queue[str | None]") -> None:
    with process:
        for line in process.stdout or ():
            sys.stdout.write(line)
            _put(said, line)
    if said.full():  # who reads it still learns that nothing more comes
        _drop(said)
    _put(said, None)


def _put(said: "Queue[str | None]", line: "str | None") -> None:
    with contextlib.suppress(Full):
        said.put_nowait(line)


def _drop(said: "Queue[str | None]") -> None:
    with contextlib.suppress(Empty):
        while True:
            said.get_nowait()
