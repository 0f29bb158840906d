"""An error is told by its reason, not by its class: a new way to fail is a new reason."""

import importlib
import pkgutil
from collections.abc import Iterator

import trivium
from trivium.types.errors import ServeError

KINDS = {"RunAgain", "ConfigError", "RouteRefusal", "Refusal"}


def kinds_of(kind: type[ServeError]) -> Iterator[str]:
    """Yield the names of all classes of the package that are made of this one."""
    for each in kind.__subclasses__():
        if each.__module__.startswith("trivium."):
            yield each.__name__
            yield from kinds_of(each)


def test_there_are_four_kinds_of_errors() -> None:
    for module in pkgutil.walk_packages(trivium.__path__, "trivium."):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:  # of an extra that no unit test needs
            if error.name != "ray":
                raise
    assert sorted(kinds_of(ServeError)) == sorted(KINDS)
