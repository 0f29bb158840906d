"""Keeps which slots are free, and how much memory each of the others has taken: see `KeyValueStorage`."""

from trivium.engines.hf.memory import KeyValueBudget, blocks_of
from trivium.engines.hf.storage import KeyValueStorage


class SlotTable:
    """One per model. A slot's memory grows with its tokens, and goes back as a whole when the slot does."""

    def __init__(self, count: int, storage: KeyValueStorage, budget: KeyValueBudget, kept: int = 0) -> None:
        """Give `count` slots away; `kept` further ones lie behind them, for what runs no more."""
        self._count = count
        self.kept = range(count, count + kept)
        self._storage = storage
        self._budget = budget
        self._tokens: dict[int, int] = {}
        self.free = set(range(count))

    def take(self, slot: int) -> None:
        """Give a slot away; no effect on one that has an owner."""
        self.free.discard(slot)

    def wrote(self, slot: int, tokens: int) -> None:
        """A slot has keys and values of so many tokens now."""
        self._tokens[slot] = max(self._tokens.get(slot, 0), tokens)

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Give a slot the first keys and values of another one."""
        self._storage.copy(source, target, tokens)
        self.wrote(target, tokens)

    def move(self, source: int, target: int, tokens: int, begin: int = 0) -> None:
        """Give a slot the first keys and values of another one, which has none of its own then. The target has the
        first `begin` of them already.
        """
        self._storage.move(source, target, tokens, begin)
        self._tokens.pop(source, None)
        self._tokens[target] = tokens

    def release(self, slot: int) -> None:
        """Take a slot back, and give its memory to the system."""
        if slot < self._count:
            self.free.add(slot)
        if self._tokens.pop(slot, 0):
            self._storage.release(slot)

    def release_all(self) -> None:
        """Take all slots back."""
        self._tokens.clear()
        self._storage.release_all()
        self.free = set(range(self._count))

    def blocks(self, slot: int) -> int:
        """Return how many blocks a slot has taken."""
        return blocks_of(self._tokens.get(slot, 0))

    @property
    def share(self) -> float:
        """Return the share of the budget that running sequences have taken: what is kept makes room for them."""
        taken = (blocks_of(tokens) for slot, tokens in self._tokens.items() if slot < self._count)
        return sum(taken) / self._budget.blocks

    @property
    def bound(self) -> int:
        """Return the bytes of the budget."""
        return self._budget.bytes
