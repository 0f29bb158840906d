"""An ordered list of keys with values, keys repeated or absent: the content of a request or an answer."""

from typing import Any, List, Optional, Tuple


class PairList:
    """Keys are text or None, values are bytes once they are sent."""

    def __init__(
        self, keys: Optional[List[Optional[str]]] = None, values: Optional[List[Any]] = None
    ) -> None:
        if not (keys and values):
            keys, values = [], []
        if len(keys) != len(values):
            raise ValueError("key value size mismatch.")
        self.keys: List[Optional[str]] = keys
        self.values: List[Any] = values

    def add(
        self,
        key: Optional[str] = None,
        value: Any = None,
        index: Optional[int] = None,
        pair: Optional[Tuple[Optional[str], Any]] = None,
    ) -> None:
        """Put a key and a value, or a pair of them, at the end, or in front of that at `index`; None is no value."""
        if pair is not None:
            key, value = pair
        elif value is None:
            return
        at = len(self.keys) if index is None else index
        self.keys.insert(at, key)
        self.values.insert(at, value)

    def add_all(self, other: "PairList") -> None:
        """Put all pairs of another list at the end."""
        self.keys += other.keys
        self.values += other.values

    def size(self) -> int:
        """Return how many pairs there are."""
        return len(self.keys)

    def is_empty(self) -> bool:
        """Is there no pair?"""
        return not self.keys

    def contains(self, key: Optional[str]) -> bool:
        """Is there a pair with this key?"""
        return key in self.keys

    def get(self, key: Optional[str]) -> Any:
        """The value of the first pair with this key, or None."""
        return self.values[self.keys.index(key)] if key in self.keys else None

    def key_at(self, index: int) -> Optional[str]:
        """The key of the pair at `index`; IndexError."""
        return self.keys[index]

    def value_at(self, index: int) -> Any:
        """The value of the pair at `index`; IndexError."""
        return self.values[index]

    def get_keys(self) -> List[Optional[str]]:
        """All keys, in order."""
        return self.keys

    def get_values(self) -> List[Any]:
        """All values, in order."""
        return self.values
