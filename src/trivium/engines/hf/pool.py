"""Keeps keys and values in one pool of blocks, which is allocated once: for a GPU, which has no pages, and where a
system bounds addresses.

A slot's tokens lie in the blocks of its list, in any order. A step copies the blocks that it sees side by side, which a
GPU does at the speed of its memory. A block is cleared when a slot takes it, so that no number of it is none.
"""

from collections.abc import Sequence

import torch

from trivium.engines.hf.memory import BLOCK, KeyValueBudget, KeyValueDemand, blocks_of
from trivium.engines.hf.storage import KeyValueStorage, MappedSlots, RowSegment, Seen, can_map
from trivium.types.errors import Code, ServeError


def open_storage(
    device: torch.device, demand: KeyValueDemand, budget: KeyValueBudget, kept: int = 0
) -> KeyValueStorage:
    """Return where a model's keys and values lie: those of slots, and in so many slots behind them what is kept."""
    slots = demand.slots + kept
    addresses = slots * demand.context * (budget.block_bytes // BLOCK)
    if device.type == "cpu" and can_map(addresses):
        return MappedSlots(slots, demand.context)
    return BlockPool(budget.blocks)


class BlockPool:
    """See `KeyValueStorage`. It has `blocks` of `BLOCK` tokens for all slots together."""

    def __init__(self, blocks: int) -> None:
        self._count = blocks
        self._free = list(range(blocks))[::-1]
        self._of: dict[int, list[int]] = {}
        self._pools: dict[int, Seen] = {}

    def open_layer(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        """See `KeyValueStorage`."""
        if layer not in self._pools:
            keys, values = (
                one.new_empty(self._count, one.shape[1], BLOCK, one.shape[3]) for one in (key, value)
            )
            self._pools[layer] = keys, values
            for blocks in self._of.values():
                keys[blocks], values[blocks] = 0, 0

    def reserve(self, segments: Sequence[RowSegment]) -> None:
        """See `KeyValueStorage`."""
        for segment in segments:
            self._grow(segment.slot, segment.start + segment.size)

    def rows(self, segments: Sequence[RowSegment], device: torch.device) -> "_PoolRows":
        """See `KeyValueStorage`."""
        return _PoolRows(self._pools, self._of, segments, device)

    def write(self, layer: int, piece: RowSegment, key: torch.Tensor, value: torch.Tensor) -> None:
        """See `KeyValueStorage`."""
        at = torch.arange(piece.start, piece.start + piece.size, device=key.device)
        blocks = torch.tensor(self._of[piece.slot], device=key.device)[at // BLOCK]
        for pool, new in zip(self._pools[layer], (key, value), strict=True):
            pool[blocks, :, at % BLOCK] = new.transpose(0, 1)

    def read(self, layer: int, slot: int, size: int) -> Seen:
        """See `KeyValueStorage`."""
        keys, values = self._pools[layer]
        table = torch.tensor([self._of[slot][: blocks_of(size)]], device=keys.device)
        return _side_by_side(keys, table, size), _side_by_side(values, table, size)

    def copy(self, source: int, target: int, size: int) -> None:
        """See `KeyValueStorage`."""
        self._grow(target, size)
        count = blocks_of(size)
        for keys, values in self._pools.values():
            for pool in (keys, values):
                pool[self._of[target][:count]] = pool[self._of[source][:count]]

    def move(self, source: int, target: int, size: int, begin: int) -> None:
        """See `KeyValueStorage`: blocks change their owner, and nothing is copied."""
        self.release(target)
        blocks, count = self._of.pop(source), blocks_of(size)
        self._of[target] = blocks[:count]
        self._free += reversed(blocks[count:])

    def release(self, slot: int) -> None:
        """See `KeyValueStorage`."""
        self._free += reversed(self._of.pop(slot, []))

    def release_all(self) -> None:
        """See `KeyValueStorage`."""
        self._of.clear()
        self._free = list(range(self._count))[::-1]

    def _grow(self, slot: int, size: int) -> None:
        """Give a slot blocks until it has enough for its first tokens."""
        has = self._of.setdefault(slot, [])
        lacks = blocks_of(size) - len(has)
        if lacks <= 0:
            return
        if lacks > len(self._free):
            raise ServeError(
                Code.OUT_OF_MEMORY,
                f"{size} tokens of one sequence do not fit into {len(self._free)} free blocks of {BLOCK} tokens. "
                "Give the model a greater 'kv_bytes'.",
            )
        taken = [self._free.pop() for _ in range(lacks)]
        has += taken
        for keys, values in self._pools.values():
            keys[taken], values[taken] = 0, 0


class _PoolRows:
    """See `RowPlaces`. Behind the last block of a row lie others of its own, which its mask hides."""

    def __init__(
        self,
        pools: dict[int, Seen],
        lists: dict[int, list[int]],
        segments: Sequence[RowSegment],
        device: torch.device,
    ) -> None:
        self._pools = pools
        starts = [segment.start for segment in segments]
        self.count = len(starts)
        self.width = max(starts) + 1
        self.last = torch.tensor(starts, device=device)
        most = blocks_of(self.width)
        own = [lists[segment.slot][:most] for segment in segments]
        self._table = torch.tensor([one + one[:1] * (most - len(one)) for one in own], device=device)
        self._blocks = self._table[torch.arange(self.count, device=device), self.last // BLOCK]
        self._offsets = self.last % BLOCK

    def write(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        """See `RowPlaces`."""
        for pool, new in zip(self._pools[layer], (key, value), strict=True):
            pool[self._blocks, :, self._offsets] = new

    def read(self, layer: int) -> Seen:
        """See `RowPlaces`."""
        keys, values = self._pools[layer]
        return _side_by_side(keys, self._table, self.width), _side_by_side(values, self._table, self.width)

    def spread(self, query: torch.Tensor) -> torch.Tensor:
        """See `RowPlaces`."""
        return query

    def gathered(self, out: torch.Tensor) -> torch.Tensor:
        """See `RowPlaces`."""
        return out


def _side_by_side(pool: torch.Tensor, table: torch.Tensor, size: int) -> torch.Tensor:
    """Return the blocks of each row of a table one behind the other: [rows, heads, size, width of a head]."""
    found = pool[table].transpose(1, 2)
    return found.reshape(found.shape[0], found.shape[1], -1, found.shape[4])[:, :, :size]
