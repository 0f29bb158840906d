"""Named environments of the user: made once from a lock that we ship, kept in the user's cache until they are removed.

One is whole or not there: it is made in a scratch folder and moved to the name of its lock's content. Whatever stands
alone, with an interpreter and packages that the server's own environment cannot have, belongs here (ADR 57).
"""

import fcntl
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from trivium.codecs.near_names import near
from trivium.environments import uv
from trivium.environments.commands import CommandEnd, run_command
from trivium.environments.locks import (
    SHIPPED,
    Lock,
    judge_python,
    name_of,
    next_step,
    no_python,
    read_locks,
)
from trivium.environments.recipe import EnvironmentRecipe, variables
from trivium.environments.store import BuildServices, remove_scratch
from trivium.machine.python_commands import isolated_module, program_text
from trivium.machine.user_cache import judge_owner, user_cache
from trivium.scratch import make_scratch, sweep
from trivium.types.errors import Code, ServeError
from trivium.types.spec import OwnEnvironment

_LOOK_SECONDS = 0.1
_VERSION = "import sys\nprint('%d.%d' % sys.version_info[:2])"
_OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"


class EnvironmentState(Enum):
    """Says what an environment on the disk is good for."""

    READY = "ready"
    OUTDATED = "outdated"
    """Made from a lock that is no longer shipped: nothing uses it."""
    BROKEN = "broken"
    """Its interpreter is gone: it is made anew by the next build."""


@dataclass(frozen=True, slots=True)
class NamedEnvironment:
    """Is one environment on the disk."""

    name: str
    place: Path
    state: EnvironmentState

    @property
    def python(self) -> Path:
        """Return its interpreter."""
        return _python(self.place)

    def size(self) -> int:
        """Return its bytes. Blocking."""
        files = (Path(folder) / name for folder, _, names in os.walk(self.place) for name in names)
        return sum(file.lstat().st_size for file in files)


class NamedEnvironments:
    """The environments in one folder, of one folder of locks. Made and removed by any process of the user."""

    def __init__(self, folder: Path, locks: Path = SHIPPED) -> None:
        self.folder = folder
        self._locks = locks

    @property
    def locks(self) -> Mapping[str, Lock]:
        """Return what can be made, by name."""
        return read_locks(self._locks)

    def find(self, name: str) -> NamedEnvironment | None:
        """Return the environment of a lock as it is now; None where it is not there, or not usable. Raises NOT_FOUND
        for a name that no lock has.
        """
        lock = self._lock(name)
        place = self.folder / lock.place
        if not _python(place).exists():
            return None
        try:
            judge_owner(self.folder)
        except OSError as error:
            raise _unusable(error, self.folder) from error
        return NamedEnvironment(name, place, EnvironmentState.READY)

    def all(self) -> Sequence[NamedEnvironment]:
        """Return what lies on the disk, by name; what is being made is none of it."""
        try:
            names = sorted(entry.name for entry in self.folder.iterdir() if entry.is_dir())
        except OSError:
            return ()
        current = {lock.place for lock in self.locks.values()}
        return [
            NamedEnvironment(name_of(one), self.folder / one, _state(self.folder / one, one in current))
            for one in names
            if name_of(one)
        ]

    def build(self, name: str, services: BuildServices, python: str = "") -> tuple[NamedEnvironment, bool]:
        """Return the environment of a lock, and whether it was made now: of two who ask at once, one makes it. Raises
        ServeError with the next step, and nothing left, where it cannot be made. Blocking.
        """
        lock = self._lock(name)
        try:
            self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            judge_owner(self.folder)
            with self._turn(lock, services):
                made = NamedEnvironment(name, self.folder / lock.place, EnvironmentState.READY)
                if made.python.exists():
                    return made, False
                sweep(self.folder)
                self._make(lock, python, services)
                return made, True
        except OSError as error:
            raise _unusable(error, self.folder) from error

    def remove(self, name: str, only_outdated: bool = False) -> Sequence[NamedEnvironment]:
        """Remove what there is of a name, and return it. Raises NOT_FOUND where nothing is. Blocking."""
        there = [one for one in self.all() if one.name == name]
        if not there:
            names = sorted({one.name for one in self.all()})
            meant = near(name, names)
            hint = f"Did you mean {meant}?" if meant else f"There are: {', '.join(names) or 'none'}."
            words = f"There is no environment '{name}' in {self.folder}. {hint}"
            raise ServeError(Code.NOT_FOUND, words)
        gone = [one for one in there if not only_outdated or one.state is not EnvironmentState.READY]
        for one in gone:
            self._discard(one.place)
        return gone

    def _lock(self, name: str) -> Lock:
        locks = self.locks
        if name not in locks:
            meant = near(name, locks)
            hint = f"Did you mean {meant}?" if meant else f"There are: {', '.join(locks)}."
            raise ServeError(Code.NOT_FOUND, f"There is no environment of the name '{name}'. {hint}")
        return locks[name]

    @contextmanager
    def _turn(self, lock: Lock, services: BuildServices) -> Iterator[None]:
        """Wait until nobody else makes this environment. The system ends a turn whose process has died."""
        descriptor = os.open(
            self.folder / f".{lock.place}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
        try:
            has_told = False
            while not _is_locked(descriptor):
                if not has_told:
                    services.say(f"another process is making the environment '{lock.name}': waiting for it")
                    has_told = True
                if services.stop.wait(_LOOK_SECONDS):
                    raise ServeError(Code.CANCELLED, "The build was given up while another process made it.")
            yield
        finally:
            os.close(descriptor)

    def _make(self, lock: Lock, python: str, services: BuildServices) -> None:
        folder, held = make_scratch(self.folder)
        try:
            made = folder / "environment"
            _NamedBuild(lock, services, folder).make(made, python)
            place = self.folder / lock.place
            if place.exists():
                self._discard(place)
            made.rename(place)
        finally:
            remove_scratch(folder, held)

    def _discard(self, place: Path) -> None:
        """Remove an environment: it is no longer there at once, and what is left if this process dies is swept."""
        folder, held = make_scratch(self.folder)
        try:
            place.rename(folder / "environment")
        finally:
            remove_scratch(folder, held)


class _NamedBuild:
    """Runs the commands that make one environment, in a scratch folder."""

    def __init__(self, lock: Lock, services: BuildServices, folder: Path) -> None:
        self._lock = lock
        self._services = services
        self._temporary = folder / "temporary"
        self._variables = variables(services.environment, self._temporary)

    def make(self, place: Path, python: str) -> None:
        """Make it. Raises OSError and ServeError."""
        began = time.monotonic()
        self._temporary.mkdir()
        by = "" if self._lock.names_torch else self._which("uv")
        chosen = self._chosen(python)
        wish = OwnEnvironment(self._lock.file.name)
        recipe = EnvironmentRecipe(chosen or sys.executable, self._lock.file.parent, wish)
        if by and chosen and self._is_pip_configured(chosen):
            by = ""
        if chosen:
            making = recipe.making(place, has_pip=bool(by))
        elif by:
            version = self._lock.pythons[0]
            making = (by, "--no-config", "--no-progress", "venv", "--python", version, str(place))
        else:
            raise no_python(self._lock, _OWN)
        self._services.say(
            f"making the environment '{self._lock.name}' with {chosen or 'a Python that uv fetches'}"
        )
        self._must(making, "it could not be made")
        inner = _python(place)
        installing = uv.installing(by, inner, recipe) if by else recipe.installing(inner)
        self._services.say(f"installing the packages of {self._lock.file.name} by {'uv' if by else 'pip'}")
        self._must(installing, "its packages could not be installed")
        if self._lock.unwanted and not by:
            removing = isolated_module(str(inner), "pip", "uninstall", "--yes", *self._lock.unwanted)
            self._must(removing, "what it does not need could not be removed")
        self._services.say(f"done after {time.monotonic() - began:.0f} s")

    def _chosen(self, python: str) -> str:
        """Return the interpreter: the given one, else the server's own, else one of the PATH; empty where none fits."""
        if python:
            found = self._which(python)
            if not found:
                words = f"There is no program {python}. Give the path of a Python by --python."
                raise ServeError(Code.INVALID, words)
            judge_python(self._lock, self._version(found), found)
            return found
        if not self._lock.pythons or _OWN in self._lock.pythons:
            return sys.executable
        there = (self._which(f"python{version}") for version in self._lock.pythons)
        return next((one for one in there if one and self._version(one)), "")

    def _which(self, program: str) -> str:
        return shutil.which(program, path=self._variables.get("PATH")) or ""

    def _version(self, python: str) -> str:
        lines: list[str] = []
        end = self._run(program_text(python, _VERSION), lines.append)
        return lines[-1] if lines and not end.status else ""

    def _is_pip_configured(self, python: str) -> bool:
        lines: list[str] = []
        end = self._run(uv.asking_pip(Path(python)), lines.append)
        return not end.status and uv.is_configured(lines)

    def _must(self, command: tuple[str, ...], what: str) -> None:
        end = self._run(command, self._services.say)
        if end.was_stopped:
            raise ServeError(Code.CANCELLED, f"The environment '{self._lock.name}' was given up.")
        if end.status:
            words = f"The environment '{self._lock.name}' is not there: {what}: {command[0]} {end.how}."
            raise ServeError(Code.LOAD_FAILED, f"{words} {next_step(' '.join(end.last))}")

    def _run(self, command: tuple[str, ...], say: Callable[[str], None]) -> CommandEnd:
        services = self._services
        directory = self._lock.file.parent
        return run_command(command, directory, self._variables, services.stop, services.guard, say)


def environments_of(environment: Mapping[str, str]) -> NamedEnvironments:
    """Return those of the user whose variables these are."""
    return NamedEnvironments(user_cache(environment, "environments"))


def _python(place: Path) -> Path:
    return place / "bin" / "python"


def _state(place: Path, is_current: bool) -> EnvironmentState:
    if not is_current:
        return EnvironmentState.OUTDATED
    return EnvironmentState.READY if _python(place).exists() else EnvironmentState.BROKEN


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unusable(error: OSError, folder: Path) -> ServeError:
    where = error.filename or folder
    words = f"{where}: {error.strerror or error}."
    hint = (
        next_step(str(error.strerror))
        if error.errno == 28
        else "Set XDG_CACHE_HOME to a folder that is yours."
    )
    return ServeError(Code.LOAD_FAILED, f"{words} {hint}")
