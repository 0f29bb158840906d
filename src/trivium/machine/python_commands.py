"""Command lines of Python programs. The current folder is on the path of none: what lies there by chance, or by malice,
under the name of a module is neither run nor in the way.
"""

import shutil
import sys
from importlib.util import find_spec


def own_module(module: str, *words: str, python: str = sys.executable) -> tuple[str, ...]:
    """Return the command that runs a module under this program's own interpreter, which is 3.11 or newer."""
    return (python, "-P", "-m", module, *words)


def isolated_module(python: str, module: str, *words: str) -> tuple[str, ...]:
    """Return the command that runs a module under any interpreter, without variables of Python's and packages of the
    user's: 3.10 does not know -P. What it prints comes at once.
    """
    return (python, "-I", "-u", "-m", module, *words)


def program_text(python: str, text: str) -> tuple[str, ...]:
    """Return the command that runs a short program as any program of this user's would run, but for the current
    folder.
    """
    return (python, "-c", f"import sys\nsys.path[:] = [one for one in sys.path if one]\n{text}")


def installer(python: str) -> list[str]:
    """Return the beginning of a command that installs packages into the environment of an interpreter: by uv where it
    has no pip.
    """
    if find_spec("pip") is None and shutil.which("uv"):
        return ["uv", "pip", "install", "--python", python]
    return [python, "-m", "pip", "install"]


def uninstaller(python: str) -> list[str]:
    """Return the beginning of a command that removes packages again, without a question."""
    words = ["uninstall" if word == "install" else word for word in installer(python)]
    return words if words[0] == "uv" else [*words, "-y"]
