"""Lets user code import modules that exist by name only, from one table instead of a file for each.

A shim says which modules its dialect has and does not support; importing one works, and using what it holds raises.
"""

import sys
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

Namespace = Callable[[str], dict[str, Any]]
"""Returns the contents of a module by the module's full name."""


class StandInFinder:
    """Finds the modules of its table, behind everything that exists as a file. A finder of the path, and a loader."""

    def __init__(self) -> None:
        self._table: dict[str, Namespace] = {}

    def add(self, table: Mapping[str, Namespace]) -> None:
        """Add modules; from the first call on they can be imported."""
        self._table.update(table)
        if self not in sys.meta_path:
            sys.meta_path.append(self)

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module of the table; one that has modules below it is a package."""
        if name not in self._table:
            return None
        is_package = any(other.startswith(name + ".") for other in self._table)
        return ModuleSpec(name, cast(Any, self), is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave making the module object to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module with what the table has for it."""
        vars(module).update(self._table[module.__name__](module.__name__))


FINDER = StandInFinder()
