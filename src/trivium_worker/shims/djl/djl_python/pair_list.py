"""An ordered list of keys with values, keys repeated or absent: the content of a request or an answer."""

from collections.abc import Iterable
from typing import Any

Key = str | None


class PairList:
    """Keys are text or None, values are bytes once they are sent."""

    def __init__(
        self,
        keys: list[Key] | None = None,
        values: list[Any] | None = None,
        pair_list: Iterable[tuple[Key, Any]] | None = None,
        pair_map: dict[Key, Any] | None = None,
    ) -> None:
        self.keys: list[Key] = []
        self.values: list[Any] = []
        if keys and values:
            if len(keys) != len(values):
                raise ValueError("key value size mismatch.")
            self.keys, self.values = keys, values
            return
        for key, value in pair_list or (pair_map or {}).items():
            self.keys.append(key)
            self.values.append(value)

    def add(
        self,
        key: Key = None,
        value: Any = None,
        index: int | None = None,
        pair: tuple[Key, Any] | None = None,
    ) -> None:
        """Put a key and a value at the end, or in front of that at `index`; without a value a pair at the end."""
        if index is not None and value is not None:
            self.keys.insert(index, key)
            self.values.insert(index, value)
            return
        if pair:
            key, value = pair[0], pair[1]
        elif value is None:
            return
        self.keys.append(key)
        self.values.append(value)

    def add_all(self, other: Any) -> None:
        """Put all pairs of another list, or of a dict, at the end."""
        if not other:
            return
        if isinstance(other, PairList):
            keys, values = other.keys, other.values
        else:
            keys, values = other.keys(), other.values()
        self.keys.extend(keys)
        self.values.extend(values)

    def size(self) -> int:
        """Return how many pairs there are."""
        return len(self.keys)

    def is_empty(self) -> bool:
        """Is there no pair?"""
        return not self.keys

    def contains(self, key: Key) -> bool:
        """Is there a pair with this key?"""
        return key in self.keys

    def get(self, key: Key) -> Any:
        """The value of the first pair with this key, or None."""
        return self.values[self.keys.index(key)] if key in self.keys else None

    def key_at(self, index: int) -> Key:
        """The key of the pair at `index`; IndexError."""
        return self.keys[index]

    def value_at(self, index: int) -> Any:
        """The value of the pair at `index`; IndexError."""
        return self.values[index]

    def get_keys(self) -> list[Key]:
        """All keys, in order."""
        return self.keys

    def get_values(self) -> list[Any]:
        """All values, in order."""
        return self.values
