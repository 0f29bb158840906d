"""Values of several parts that do not know one another, each found by its own class."""

from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


class ByType:
    """Holds at most one value of each class. Whoever knows a class may look for its value, and nobody else can."""

    __slots__ = ("_values",)

    def __init__(self, *values: object) -> None:
        self._values = {type(value): value for value in values}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByType) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]  # it takes values later

    def find(self, kind: type[Value]) -> Value | None:
        """Return the value of exactly this class; None where there is none."""
        found = self._values.get(kind)
        return found if isinstance(found, kind) else None

    def read(self, kind: type[Value]) -> Value:
        """Return the value of this class, or one with its defaults, which is not kept: who reads changes nothing."""
        found = self.find(kind)
        return kind() if found is None else found

    def of(self, kind: type[Value], make: Callable[[], Value] | None = None) -> Value:
        """Return the value of this class, made and kept where there is none; `make` is the class by default."""
        found = self.find(kind)
        if found is None:
            found = self._values[kind] = (make or kind)()
        assert isinstance(found, kind), "it is kept under its own class"
        return found
