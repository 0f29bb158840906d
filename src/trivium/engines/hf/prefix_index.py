"""Knows which beginnings of texts are kept, finds the longest one that a prompt has, and decides which of them go.

A beginning is a row of tokens under a key, and lies in a numbered place. Blocks of its tokens are found by hashes, each
of which is made of the one before it, so that a lookup costs the blocks that match and not what is kept. A hash only
says where to look: the tokens themselves decide. This is pure: the cache acts on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trivium.engines.hf.memory import BLOCK

LEAST = 8
"""Tokens that are worth a copy: fewer are computed as fast."""


@dataclass(frozen=True, slots=True)
class PrefixKey:
    """Names what keys and values depend on besides tokens: none is found under another key. `salt` is what a client
    wants to share its beginnings under; an `adapter` changes what is computed.
    """

    dtype: str
    adapter: str = ""
    salt: str = ""


@dataclass(frozen=True, slots=True)
class PrefixMatch:
    """The first `size` tokens that were looked for lie in a place."""

    place: int
    size: int


@dataclass(slots=True)
class _Kept:
    """One beginning: its tokens, and a hash for none of them and for each whole block."""

    key: PrefixKey
    tokens: tuple[int, ...]
    hashes: list[int]


class PrefixIndex:
    """Holds one beginning in each of its places. None is the beginning of another: the longer one takes its place."""

    def __init__(self, places: Sequence[int]) -> None:
        self._free = list(reversed(places))
        self._kept: dict[int, _Kept] = {}
        self._by_hash: dict[int, dict[int, None]] = {}
        self.version = 0
        """Counts the changes of what is kept, and of its order."""

    @property
    def places(self) -> tuple[int, ...]:
        """Return the places that are taken, the one that has not been used for longest first."""
        return tuple(self._kept)

    def places_of(self, adapter: str) -> tuple[int, ...]:
        """Return the places of what was computed with an adapter."""
        return tuple(place for place, kept in self._kept.items() if kept.key.adapter == adapter)

    def find(self, key: PrefixKey, tokens: Sequence[int], most: int) -> PrefixMatch | None:
        """Return the longest beginning, of so many tokens at most, that is kept; None where it is not worth it."""
        found = self._longest(key, tokens[:most])
        return found if found is not None and found.size >= LEAST else None

    def touch(self, place: int) -> None:
        """A beginning was used."""
        self._kept[place] = self._kept.pop(place)
        self.version += 1

    def keep(self, key: PrefixKey, tokens: tuple[int, ...]) -> PrefixMatch | None:
        """Decide where to keep the tokens of a sequence that has ended; the place has the first `size` already. None
        where they need not be kept: they are few, or there.
        """
        if len(tokens) < LEAST:
            return None
        found = self._longest(key, tokens)
        if found is not None and found.size == len(tokens):
            self.touch(found.place)
            return None
        if found is not None and found.size == len(self._kept[found.place].tokens):
            self.touch(found.place)
            self._put(found.place, self._kept[found.place], tokens)
            return found
        if not self._free:
            if not self._kept:
                return None
            self.drop(next(iter(self._kept)))
        place = self._free.pop()
        self._kept[place] = _Kept(key, (), [])
        self._put(place, self._kept[place], tokens)
        return PrefixMatch(place, 0)

    def drop(self, place: int) -> None:
        """Forget a beginning."""
        for one in self._kept.pop(place).hashes:
            places = self._by_hash[one]
            places.pop(place, None)
            if not places:
                del self._by_hash[one]
        self._free.append(place)
        self.version += 1

    def clear(self) -> None:
        """Forget all of them."""
        for place in self.places:
            self.drop(place)

    def _put(self, place: int, kept: _Kept, tokens: tuple[int, ...]) -> None:
        kept.tokens = tokens
        if not kept.hashes:
            kept.hashes.append(hash(kept.key))
        for depth in range(len(kept.hashes) - 1, len(tokens) // BLOCK):
            kept.hashes.append(_chained(kept.hashes[-1], tokens, depth))
        for one in kept.hashes:
            self._by_hash.setdefault(one, {})[place] = None
        self.version += 1

    def _longest(self, key: PrefixKey, tokens: Sequence[int]) -> PrefixMatch | None:
        """Return the longest common beginning of the tokens and one that is kept."""
        one = hash(key)
        places = self._by_hash.get(one)
        depth = 0
        while places is not None and depth < len(tokens) // BLOCK:
            one = _chained(one, tokens, depth)
            deeper = self._by_hash.get(one)
            if deeper is None:
                break
            places, depth = deeper, depth + 1
        begin = depth * BLOCK
        wanted = tuple(tokens[begin : begin + BLOCK])
        best: PrefixMatch | None = None
        for place in places or ():
            size = begin + _common(wanted, self._kept[place].tokens[begin : begin + BLOCK])
            if best is None or size > best.size:
                best = PrefixMatch(place, size)
        if best is None:
            return None
        kept = self._kept[best.place]
        if kept.key != key or kept.tokens[:begin] != tuple(tokens[:begin]):
            return None  # another one has the same hash
        return best


def _chained(before: int, tokens: Sequence[int], depth: int) -> int:
    return hash((before, tuple(tokens[depth * BLOCK : (depth + 1) * BLOCK])))


def _common(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """Return how many of the first tokens are the same, of a block at most."""
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    return next(at for at in range(size) if one[at] != other[at])
