"""Decides whether uv may install the packages of a recipe, which is much quicker than pip, and says its commands.

uv looks at an environment's own packages alone, and reads none of pip's configuration. So pip installs wherever that
would make a difference: something is configured for it, or uv would install again what lies below, or torch. Pure.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from trivium.environments.recipe import EnvironmentRecipe
from trivium.machine.python_commands import isolated_module

_TORCH = re.compile(r"^\s*torch", re.MULTILINE | re.IGNORECASE)
_ADDED = re.compile(r"^\+ (\S+?)(?:==| @ |$)")
_OURS = re.compile(r":env:\.(user|config[-_]file)=")
"""What `environments.recipe.variables` sets for pip."""


def may_use_uv(recipe: EnvironmentRecipe, requirements: str) -> bool:
    """Tell whether uv is worth a question: not for torch, since pip finds the build that lies below."""
    wish = recipe.wish
    return not (wish.wheels or wish.is_offline or _TORCH.search(requirements))


def asking_pip(python: Path) -> tuple[str, ...]:
    """Return the command that lists what is configured for pip, a setting a line."""
    return isolated_module(str(python), "pip", "--disable-pip-version-check", "config", "list")


def is_configured(lines: Iterable[str]) -> bool:
    """Tell whether those lines have a setting that uv would not know."""
    return any(not _OURS.match(line) for line in lines)


def installing(uv: str, python: Path, recipe: EnvironmentRecipe, *more: str) -> tuple[str, ...]:
    """Return the command that installs the packages, to be run in the recipe's directory; what lies there does not
    configure it.
    """
    words = (uv, "--no-config", "--no-progress", "pip", "install", *more)
    return (*words, "--python", str(python), "-r", recipe.wish.requirements)


def adds_what_is_below(lines: Iterable[str], below: Iterable[str]) -> bool:
    """Tell whether one of the packages that a dry run names is there already, or belongs to torch."""
    there = set(map(_canonical, below))
    added = {_canonical(match[1]) for match in map(_ADDED.match, lines) if match}
    return any(name in there or name.startswith("torch") for name in added)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
