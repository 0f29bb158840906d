"""Makes environments and keeps them while somebody has them: equal ones once, however many models ask.

An environment whose packages could not all be installed has none of them; it is given to who waits for it alone. Each
lies in a scratch folder of its own, which is removed at the last release, or swept if the server dies before.
"""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trivium.environments import uv
from trivium.environments.commands import MOST_LINES, CommandEnd, run_command
from trivium.environments.recipe import (
    FOLDER_LINE,
    NAMES_LINE,
    PIP_LINE,
    PROBE,
    PTH,
    EnvironmentRecipe,
    below,
    requirements_text,
    variables,
)
from trivium.machine.python_commands import program_text
from trivium.scratch import make_scratch, sweep
from trivium.types.interfaces import ProcessGuard

_LOOK_SECONDS = 0.1
_REMOVALS, _REMOVAL_SECONDS = 20, 0.25
"""How often, and how far apart, a folder is removed in which something still writes."""


class EnvironmentFailed(Exception):
    """An environment could not be made; the text is one or more sentences."""


@dataclass(frozen=True, slots=True)
class BuildServices:
    """Holds what making an environment takes: the folder for it where the recipe names none, all variables, who says
    that it is to stop, who cleans up, and where the lines of the commands go.
    """

    scratch: Path
    environment: Mapping[str, str]
    stop: threading.Event
    guard: ProcessGuard
    say: Callable[[str], None]


class MadeEnvironment:
    """Is an environment on disk. `warning` says what could not be installed; empty where all was."""

    def __init__(self, folder: Path, lock: int, warning: str) -> None:
        self.place = folder / "environment"
        self.python = self.place / "bin" / "python"
        self.warning = warning
        self._folder = folder
        self._lock = lock

    def remove(self) -> None:
        """Remove it from the disk. Blocking."""
        remove_scratch(self._folder, self._lock)


class _Entry:
    """Counts the users of one environment; `turn` is held by who makes it."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.users = 0
        self.made: MadeEnvironment | None = None


class EnvironmentStore:
    """Lends environments by the content of their recipes. Used from any thread; all calls block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}

    def acquire(self, recipe: EnvironmentRecipe, services: BuildServices) -> "EnvironmentLease":
        """Return the environment of a recipe, made now if nobody has it. Raises EnvironmentFailed."""
        try:
            key = f"{services.scratch} {recipe.key()}"
        except OSError as error:
            raise EnvironmentFailed(f"{error.filename} cannot be read: {error.strerror}.") from error
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            entry.users += 1
        try:
            while not entry.turn.acquire(timeout=_LOOK_SECONDS):
                if services.stop.is_set():
                    raise EnvironmentFailed("Its time was up while another model made the environment.")
            try:
                if entry.made is None:
                    entry.made = build(recipe, services)
            finally:
                entry.turn.release()
        except BaseException:
            self._leave(key, entry)
            raise
        if entry.made.warning:
            self._forget(key, entry)
        return EnvironmentLease(entry.made, lambda: self._leave(key, entry))

    def _forget(self, key: str, entry: _Entry) -> None:
        with self._lock:
            if self._entries.get(key) is entry:
                del self._entries[key]

    def _leave(self, key: str, entry: _Entry) -> None:
        with self._lock:
            entry.users -= 1
            if entry.users:
                return
            if self._entries.get(key) is entry:
                del self._entries[key]
        if entry.made is not None:
            entry.made.remove()


class EnvironmentLease:
    """Holds an environment until it is released."""

    def __init__(self, made: MadeEnvironment, leave: Callable[[], None]) -> None:
        self.made = made
        self._leave: Callable[[], None] | None = leave

    def release(self) -> None:
        """Give it back: it is removed when nobody has it. Blocking. Further calls have no effect."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


def build(recipe: EnvironmentRecipe, services: BuildServices) -> MadeEnvironment:
    """Make an environment, and install its packages. Raises EnvironmentFailed, with nothing left, where it could not be
    made; packages that could not be installed are a warning.
    """
    parent = recipe.wish.parent or services.scratch
    try:
        parent.mkdir(parents=True, exist_ok=True)
        sweep(parent)
        folder, lock = make_scratch(parent)
    except OSError as error:
        raise EnvironmentFailed(
            f"{parent}: {error.strerror}. Give a folder that can be written to."
        ) from error
    try:
        return MadeEnvironment(folder, lock, _Build(recipe, services, folder).make())
    except OSError as error:
        remove_scratch(folder, lock)
        raise EnvironmentFailed(f"{error.filename or folder}: {error.strerror}.") from error
    except BaseException:
        remove_scratch(folder, lock)
        raise


def remove_scratch(folder: Path, lock: int) -> None:
    """Remove a scratch folder, also one in which somebody who ends still writes. Blocking."""
    for _ in range(_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(_REMOVAL_SECONDS)
    os.close(lock)  # what is left then is swept


class _Build:
    """Runs the steps that make one environment, in a folder of its own."""

    def __init__(self, recipe: EnvironmentRecipe, services: BuildServices, folder: Path) -> None:
        self._recipe = recipe
        self._services = services
        self._place = folder / "environment"
        self._temporary = folder / "temporary"
        self._variables = variables({**services.environment, **recipe.variables}, self._temporary)

    def make(self) -> str:
        """Make it; returns the warning. Raises OSError and EnvironmentFailed."""
        self._temporary.mkdir()
        folders, has_pip, known = self._probe()
        self._must(self._recipe.making(self._place, has_pip), "The environment could not be made")
        packages = next((self._place / "lib").glob("*/site-packages"), None)
        if packages is None:
            raise EnvironmentFailed(
                f"The interpreter {self._recipe.python} made an environment without a folder lib/*/site-packages, and "
                "what cannot be looked into is not used. Name another interpreter."
            )
        (packages / PTH).write_text(below(folders))
        warning = self._install(known) if self._recipe.wish.requirements else ""
        shutil.rmtree(self._temporary, ignore_errors=True)
        if warning:  # half of a package helps nobody, and may fill the disk
            shutil.rmtree(packages)
            packages.mkdir()
            (packages / PTH).write_text(below(folders))
        return warning

    def _probe(self) -> tuple[list[str], bool, list[str]]:
        """Ask the interpreter below where its packages are, whether it has pip, and which they are."""
        lines: list[str] = []
        end = self._run(program_text(self._recipe.python, PROBE), lines.append)
        if end.status or end.was_stopped:
            raise EnvironmentFailed(f"The interpreter {self._recipe.python} {end.how}.")
        folders, names = (
            [line.removeprefix(mark) for line in lines if line.startswith(mark)]
            for mark in (FOLDER_LINE, NAMES_LINE)
        )
        return folders, PIP_LINE in lines, " ".join(names).split()

    def _install(self, known: list[str]) -> str:
        requirements = self._recipe.directory / self._recipe.wish.requirements
        began = time.monotonic()
        self._services.say(f"installing {requirements} into an environment of the model's own")
        name, command = self._installer(known)
        end = self._run(command, self._services.say)
        if not end.status and not end.was_stopped:
            return ""
        after = (
            f" after {time.monotonic() - began:.0f} s, when the time for the load was up"
            if end.was_stopped
            else ""
        )
        how = end.how.replace("was stopped", f"was stopped{after}", 1)
        return (
            f"The packages of {requirements} could not be installed: {name} {how}. Correct the file, or bundle the "
            "packages as wheels."
        )

    def _installer(self, known: list[str]) -> tuple[str, tuple[str, ...]]:
        """Return who installs, and the command: uv, where that comes to the same and it is there, else pip."""
        recipe, python = self._recipe, self._place / "bin" / "python"
        by_pip = "pip", recipe.installing(python)
        found = shutil.which("uv", path=self._variables.get("PATH"))
        if not found or not uv.may_use_uv(
            recipe, requirements_text(recipe.directory / recipe.wish.requirements)
        ):
            return by_pip
        lines: list[str] = []
        if self._run(uv.asking_pip(python), lines.append).status or uv.is_configured(lines):
            return by_pip
        lines.clear()
        tried = self._run(uv.installing(found, python, recipe, "--dry-run"), lines.append)
        if tried.status or len(lines) > MOST_LINES or uv.adds_what_is_below(lines, known):
            return by_pip
        return "uv", uv.installing(found, python, recipe)

    def _must(self, command: tuple[str, ...], what: str) -> None:
        end = self._run(command, self._services.say)
        if end.status or end.was_stopped:
            raise EnvironmentFailed(f"{what}: `{' '.join(command[1:3])}` of {command[0]} {end.how}.")

    def _run(self, command: tuple[str, ...], say: Callable[[str], None]) -> CommandEnd:
        services = self._services
        return run_command(
            command, self._recipe.directory, self._variables, services.stop, services.guard, say
        )


def scratch_folder(scratch: Path | None) -> Path:
    """Return where environments are made that name no folder: without a server, that of temporary files."""
    return scratch or Path(tempfile.gettempdir())
