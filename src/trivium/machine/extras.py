"""Says how a library that is not installed gets into this environment: by the packages that one of our extras names.

The command names the packages themselves, not `trivium[extra]`: it works for an installation from a folder, too.
"""

import sys
from collections.abc import Iterator
from shlex import join

from trivium.machine.python_commands import installer, uninstaller
from trivium.types.errors import Code, ServeError

_OWN = "trivium"


def lacking(what: str, error: ImportError, extra: str = "", package: str = "") -> ServeError:
    """Return the error for an import that failed: what needs the library, and the command that installs the extra, or
    this package, which belongs to every installation.
    """
    name = (error.name or "a library").partition(".")[0]
    found = "is not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be imported ({error})"
    words = f"{what} need {name}, which {found}. Install it with: {install_command(extra, package)}"
    return ServeError(Code.UNSUPPORTED, words)


def install_command(extra: str = "", package: str = "") -> str:
    """Return the command that installs what an extra names and is not there; all of it if all is there, since that
    may be too old or broken. Without an extra what every installation has, or one package of it.
    """
    named = [text for text in _requirements(extra) if text.startswith(package)]
    packages = (
        [text for text in named if not _is_installed(text)]
        or named
        or [f"{_OWN}[{extra}]" if extra else package or _OWN]
    )
    return join([*installer(sys.executable), *packages])


def exchange_command(before: str, package: str) -> str:
    """Return the command that puts a package in the place of another one, which brings the same modules."""
    return f"{join([*uninstaller(sys.executable), before])} && {join([*installer(sys.executable), package])}"


def _requirements(extra: str) -> Iterator[str]:
    from importlib import metadata  # whoever starts would wait for it

    try:
        lines = metadata.requires(_OWN) or []
    except metadata.PackageNotFoundError:  # run from its sources
        return
    for line in lines:
        requirement, _, marker = line.partition(";")
        condition = f'extra == "{extra}"' if extra else ""
        if marker.replace("'", '"').strip() == condition and not requirement.startswith(_OWN):
            yield requirement.strip()


def _is_installed(requirement: str) -> bool:
    from importlib import metadata

    try:
        metadata.version(
            requirement.replace("[", " ").replace("<", " ").replace(">", " ").replace("=", " ").split()[0]
        )
    except metadata.PackageNotFoundError:
        return False
    return True
