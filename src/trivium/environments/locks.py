"""The lock files of named environments: what each pins, for which Pythons, and the key of its content.

A lock is a file of requirements; its line `# python: 3.10 3.11` names the Pythons that it is for, `# unwanted: NAME`
packages that others ask for, that nothing here needs, and whose builds do not fit everywhere. Starts nothing.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trivium.environments.recipe import requirements_text
from trivium.types.errors import Code, ServeError

SHIPPED = Path(__file__).parent / "locks"
_SUFFIX = ".txt"
_PYTHONS = re.compile(r"^# python:((?: 3\.\d+)+)\s*$", re.MULTILINE)
_UNWANTED = re.compile(r"^# unwanted:((?: [a-z0-9][a-z0-9-]*)+)\s*$", re.MULTILINE)
_TORCH = re.compile(r"^\s*torch", re.MULTILINE | re.IGNORECASE)
_KEY_LETTERS = 16
_PLACE = re.compile(rf"(?P<name>[a-z][a-z0-9-]*)-(?P<key>[0-9a-f]{{{_KEY_LETTERS}}})")

_CAUSES = (
    (
        r"No space left|os error 28|Disk quota",
        "The disk is full: free some of it, or set XDG_CACHE_HOME to a folder on another one.",
    ),
    (
        r"name resolution|Name or service|dns error|error sending request|Network is unreachable|Connection (?:refused|"
        r"timed out|reset|aborted)|ConnectTimeout|NewConnectionError|Failed to fetch|ProxyError|Max retries",
        "The package index was not reached: look at the network, or name another index in PIP_INDEX_URL.",
    ),
    (
        r"No matching distribution|No solution found|not find a version|Requires-Python|has no wheels",
        "The index has no such package for this Python and machine: look at the index in PIP_INDEX_URL or pip's "
        "configuration, or give another Python by --python.",
    ),
    (
        r"ensurepip",
        "That Python cannot make environments: install its package venv, or give another by --python.",
    ),
)
"""What a command's last words mean, and the next step."""


@dataclass(frozen=True, slots=True)
class Lock:
    """One named environment as it should be: the file that pins it, its text, and the Pythons it is for, best first.
    What is `unwanted` is removed when all is installed.
    """

    name: str
    file: Path
    text: str
    pythons: tuple[str, ...]
    unwanted: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Return the name of the environment's folder: another content is another folder."""
        return f"{self.name}-{hashlib.sha256(self.text.encode()).hexdigest()[:_KEY_LETTERS]}"

    @property
    def names_torch(self) -> bool:
        """Tell whether pip has to install it: it finds the build of torch that fits the machine."""
        return bool(_TORCH.search(self.text))


def read_locks(folder: Path = SHIPPED) -> Mapping[str, Lock]:
    """Return the locks of a folder by their names. Raises OSError."""
    found = {}
    for file in sorted(folder.glob("*" + _SUFFIX)):
        text = requirements_text(file)
        named = _PYTHONS.search(text)
        versions = named[1].split() if named else []
        pythons = tuple(sorted(versions, key=lambda one: int(one.partition(".")[2]), reverse=True))
        unwanted = _UNWANTED.search(text)
        removed = tuple(unwanted[1].split()) if unwanted else ()
        found[file.stem] = Lock(file.stem, file, text, pythons, removed)
    return found


def name_of(place: str) -> str:
    """Return whose environment a folder of this name is; empty where it is none."""
    match = _PLACE.fullmatch(place)
    return match["name"] if match else ""


def judge_python(lock: Lock, version: str, python: str) -> None:
    """Raise ServeError for a Python that a lock is not for."""
    if not version or not lock.pythons or version in lock.pythons:
        return
    raise ServeError(
        Code.INVALID,
        f"{python} is Python {version}, and the packages of the environment '{lock.name}' are for Python "
        f"{_either(lock.pythons)}. Give one of those: trivium env build {lock.name} --python "
        f"python{lock.pythons[0]}",
    )


def no_python(lock: Lock, own: str) -> ServeError:
    """Return the error where none of a lock's Pythons was found on this machine."""
    return ServeError(
        Code.INVALID,
        f"The environment '{lock.name}' needs Python {_either(lock.pythons)}; this is Python {own}, and there is no "
        f"{' nor '.join(f'python{one}' for one in lock.pythons)} on the PATH. Install one, or uv, which fetches it, "
        f"or give its path: trivium env build {lock.name} --python PATH",
    )


def next_step(words: str) -> str:
    """Return what to do about a command that ended with these words."""
    known = (hint for pattern, hint in _CAUSES if re.search(pattern, words))
    return next(
        known, "Mend what these words name, and run the command again: nothing is left of this build."
    )


def _either(names: Iterable[str]) -> str:
    return " or ".join(names)
