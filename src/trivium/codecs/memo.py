"""A bounded memory of results that can be computed again."""

from collections.abc import Hashable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Memo(dict[Key, Value]):
    """A dictionary of at most `most` entries, which is emptied when one more is kept.

    Several threads may use one: each of its steps is atomic. Looking an entry up costs what it costs in a `dict`,
    which is why no order of use is kept; `functools.lru_cache` suits where the computation is one call.
    """

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: Key, value: Value) -> None:
        """Remember a value, at the cost of all others where there is no room."""
        if len(self) >= self._most and key not in self:
            self.clear()
        self[key] = value
