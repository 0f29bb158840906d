"""Recipes of environments for Python: the command lines that make one, its variables, and the key that it has.

An environment lies on top of its interpreter's: a `.pth` file adds the packages of the interpreter that it was made
from, behind its own (ADR 21). Starts nothing; of the disk it reads what the key is made of.
"""

import errno
import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trivium.files import open_file
from trivium.machine.python_commands import isolated_module
from trivium.types.spec import OwnEnvironment

FOLDER_LINE, PIP_LINE, NAMES_LINE = "packages-in:", "pip-is-there", "packages:"
PROBE = f"""
import importlib.metadata, importlib.util, site, sys
folders = site.getsitepackages() + ([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])
for folder in folders:
    if folder in sys.path:
        print("{FOLDER_LINE}" + folder)
if importlib.util.find_spec("pip"):
    print("{PIP_LINE}")
names = sorted(set(str(each.metadata["Name"]) for each in importlib.metadata.distributions()))
for first in range(0, len(names), 50):
    print("{NAMES_LINE}" + " ".join(names[first:first + 50]))
"""
"""Program that prints where an interpreter has its packages, which they are, and whether pip can be imported."""

PTH = "zz_trivium_below.pth"
"""Name of the file that adds what lies below an environment; by it the file comes after all others."""

_REDIRECTING = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_DRY_RUN")
_MISLEADING = ("PYTHONHOME", "PYTHONPATH", "__PYVENV_LAUNCHER__")
_PLAIN = re.compile(r"[A-Za-z0-9][\w.-]*\s*(?:\[[\w., -]*\]\s*)?(?:[<>=!~;(][^/\\]*)?")
_OPTION = re.compile(
    r"(?:-i|--(?:index-url|extra-index-url|pre|no-index|trusted-host|only-binary|no-binary|prefer-binary))(?![\w-])"
)
_BUNDLED = (".whl", ".zip", ".tar", ".tgz", ".gz", ".tbz", ".bz2", ".txz", ".xz", ".tlz", ".lz", ".lzma")
_PIECE = 2**20
MOST_TEXT = 2**20
"""Bytes of a file of requirements: more than any that a person or a tool writes."""


@dataclass(frozen=True, slots=True)
class EnvironmentRecipe:
    """Says what an environment is made of: the interpreter below it, the folder that relative paths in its requirements
    lead from, what is asked for, and the variables of who runs in it.
    """

    python: str
    directory: Path
    wish: OwnEnvironment
    variables: Mapping[str, str] = field(default_factory=dict)

    def key(self) -> str:
        """Return the key by which equal environments are shared. It differs at each call where the requirements may
        depend on more than is hashed. Raises OSError for what cannot be read.
        """
        wish = self.wish
        parts: list[object] = [os.path.abspath(self.python), wish.is_offline, str(wish.parent)]
        parts.append(str(self.directory.absolute()) if wish.is_private else "")
        if wish.requirements:
            text = requirements_text(self.directory / wish.requirements)
            parts += [text, sorted(self.variables.items())]
            bundled = list(bundled_files(text, self.directory))
            parts.append(uuid.uuid4().hex if None in bundled else [_digest(file) for file in bundled if file])
        if wish.wheels:
            files = sorted(path for path in (self.directory / wish.wheels).rglob("*") if path.is_file())
            parts.append([[file.name, _digest(file)] for file in files])
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def making(self, place: Path, has_pip: bool) -> tuple[str, ...]:
        """Return the command that makes the environment; where the interpreter has no pip, one is put into it."""
        without = ("--without-pip",) if has_pip or not self.wish.requirements else ()
        return isolated_module(self.python, "venv", *without, str(place))

    def installing(self, python: Path) -> tuple[str, ...]:
        """Return the command that installs the packages, to be run in `directory`."""
        wish = self.wish
        links = ("-f", wish.wheels) if wish.wheels else ()
        offline = ("--no-index",) if wish.wheels else ("--no-deps",)
        return isolated_module(
            str(python),
            *("pip", "--disable-pip-version-check", "--no-input", "--no-color"),
            *("install", "--progress-bar", "off"),
            *("-r", wish.requirements),
            *links,
            *(offline if wish.is_offline else ()),
        )


def below(folders: list[str]) -> str:
    """Return the `.pth` file that adds these folders of packages, with their own such files, behind the environment's
    own packages.
    """
    return "".join(f"import site; site.addsitedir({folder!r})\n" for folder in folders)


def variables(given: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return the environment in which it is made: temporary files go to `scratch`, and nothing leads pip elsewhere."""
    kept = {name: value for name, value in given.items() if name not in (*_REDIRECTING, *_MISLEADING)}
    return {**kept, "PIP_USER": "0", "TMPDIR": str(scratch), "PYTHONUNBUFFERED": "1"}


def inside(environment: Path, path: str) -> dict[str, str]:
    """Return the variables of a process that runs in an environment; `path` is the PATH that it has without."""
    return {"VIRTUAL_ENV": str(environment), "PATH": f"{environment / 'bin'}{os.pathsep}{path or os.defpath}"}


def bundled_files(requirements: str, directory: Path) -> Iterator[Path | None]:
    """Yield the files that lines of the requirements name, and None for each line whose meaning depends on more than
    itself: another file, a folder, an environment variable.
    """
    for line in re.sub(r"\\\r?\n", " ", requirements).splitlines():
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if text.endswith(_BUNDLED) and (directory / text).is_file():
            yield directory / text
        elif text and ("${" in text or not (_PLAIN.fullmatch(text) or _OPTION.match(text))):
            yield None


def requirements_text(file: Path) -> str:
    """Return what a file of requirements says. Raises OSError for one that cannot be read, or is too large."""
    with open_file(file) as opened:
        data = opened.read(MOST_TEXT + 1)
    if len(data) > MOST_TEXT:
        raise OSError(errno.EFBIG, f"it has more than {MOST_TEXT} bytes", str(file))
    return data.decode("utf-8", "replace")


def _digest(file: Path) -> str:
    made = hashlib.sha256(file.name.encode())
    with open_file(file) as opened:
        while piece := opened.read(_PIECE):
            made.update(piece)
    return made.hexdigest()
