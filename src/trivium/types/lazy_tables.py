"""Tables whose rows are made when they are first asked for: what nobody uses costs no import."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, TypeVar, overload

Row = TypeVar("Row")


def lazily(place: str) -> Callable[[], Any]:
    """Return what makes a row of a name in a module, as "package.module:NAME", which is imported when it is asked."""
    module, _, name = place.partition(":")
    return lambda: getattr(import_module(module), name)


class LazyTable(Mapping[str, Row]):
    """Makes each row by itself; names and their order are known before."""

    def __init__(self, rows: Mapping[str, Callable[[], Row]]) -> None:
        self._rows = {name: cache(make) for name, make in rows.items()}

    def __getitem__(self, name: str) -> Row:
        return self._rows[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class LazyWhole(Mapping[str, Row]):
    """Makes all rows at once, when the first is asked for."""

    def __init__(self, make: Callable[[], Mapping[str, Row]]) -> None:
        self._made = cache(make)

    def __getitem__(self, name: str) -> Row:
        return self._made()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())


class LazyList(Sequence[Row]):
    """Makes its rows one by one, as it is gone through."""

    def __init__(self, *rows: Callable[[], Row]) -> None:
        self._rows = tuple(cache(make) for make in rows)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        if isinstance(at, slice):
            return [make() for make in self._rows[at]]
        return self._rows[at]()

    def __len__(self) -> int:
        return len(self._rows)
