"""Estimates the memory of a model before it is loaded, divides it, and says which settings would fit.

Weights, and the budget for keys and values, are nearly all of it; the rest is the reserve. The budget is counted in
blocks of tokens, as it is taken. This is pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

BYTES: Mapping[str, int] = {"fp32": 4, "fp16": 2, "bf16": 2}
RESERVE = 2**27
"""Bytes for what a step computes, and for the libraries."""
BLOCK = 32
"""Tokens whose keys and values are taken at a time: of heads of 64 numbers in 16 bits they fill a page."""
_SHARE_OF_GPU, _SHARE = 0.9, 0.5
"""Of what is free behind the weights: a GPU is there for the model, a machine's memory for others as well."""


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """A model's need in bytes: `weights`, and `per_token` for the keys and values of each token."""

    weights: int
    per_token: int

    def total(self, kv_bytes: int) -> int:
        """Return the whole need, with so many bytes for keys and values."""
        return self.weights + kv_bytes + RESERVE


@dataclass(frozen=True, slots=True)
class KeyValueBudget:
    """Bounds the keys and values of all sequences: so many blocks, of so many bytes each."""

    blocks: int
    block_bytes: int

    @property
    def bytes(self) -> int:
        """Return the whole."""
        return self.blocks * self.block_bytes

    @property
    def tokens(self) -> int:
        """Return how many tokens one sequence alone could have."""
        return self.blocks * BLOCK


@dataclass(frozen=True, slots=True)
class KeyValueDemand:
    """Says what a model is to hold: `slots` sequences of at most `context` tokens, in `asked` bytes if that is set."""

    slots: int
    context: int
    asked: int | None = None
    is_gpu: bool = False


def blocks_of(tokens: int) -> int:
    """Return how many blocks so many tokens of one sequence take."""
    return -(-tokens // BLOCK)


def estimate(numbers: int, cache_numbers: int, dtype: str) -> MemoryEstimate:
    """Return the need of a model with so many numbers, which keeps `cache_numbers` of each token."""
    return MemoryEstimate(numbers * BYTES[dtype], cache_numbers * BYTES[dtype])


def budget(need: MemoryEstimate, demand: KeyValueDemand, free: int | None) -> KeyValueBudget:
    """Return what a model may take for keys and values. That is what is asked for; else a share of what is free, but
    enough for one sequence. It is never more than all slots could fill, and may be more than there is: see `shortage`.
    """
    block = need.per_token * BLOCK
    one = blocks_of(demand.context)
    most = demand.slots * one
    if demand.asked is not None:
        return KeyValueBudget(min(demand.asked // block, most), block)
    if free is None:
        return KeyValueBudget(most, block)
    room = (free - need.weights - RESERVE) * (_SHARE_OF_GPU if demand.is_gpu else _SHARE)
    return KeyValueBudget(max(min(int(room // block), most), one), block)


def shortage(need: MemoryEstimate, demand: KeyValueDemand, free: int | None, dtype: str) -> str:
    """Say what does not fit, in both numbers, and settings that would; empty where it fits."""
    found = budget(need, demand, free)
    if not found.blocks:
        whole = blocks_of(demand.context) * found.block_bytes
        return (
            f"its parameter 'kv_bytes' is {demand.asked}; expected at least {found.block_bytes}, for {BLOCK} tokens. "
            f"One sequence of {demand.context} tokens takes {whole}."
        )
    total = need.total(found.bytes)
    if free is None or total <= free:
        return ""
    words = f"one sequence of {demand.context} tokens" if demand.asked is None else f"{found.tokens} tokens"
    text = (
        f"it needs about {_size(total)} (weights {_size(need.weights)}, keys and values of {words} "
        f"{_size(found.bytes)}), and {_size(free)} are free."
    )
    return f"{text} {_ways(need, demand, free, dtype)}"


def _ways(need: MemoryEstimate, demand: KeyValueDemand, free: int, dtype: str) -> str:
    name = "max_context" if demand.asked is None else "kv_bytes"
    ways = []
    if most := _fitting(need, demand, free):
        ways.append(f"{name}={most}")
    if dtype == "fp32":
        half = MemoryEstimate(need.weights // 2, need.per_token // 2)
        if half.total(budget(half, demand, free).bytes) <= free:
            ways.append("dtype=bf16")
        elif most := _fitting(half, demand, free):
            ways.append(f"dtype=bf16 with {name}={most}")
    if not ways:
        return "No setting fits: take a smaller model, or a larger machine."
    return f"It would fit with {', or with '.join(ways)}."


def _fitting(need: MemoryEstimate, demand: KeyValueDemand, free: int) -> int:
    """Return the greatest context, or bytes, that fit; 0 where none do."""
    blocks = (free - need.weights - RESERVE) // (need.per_token * BLOCK)
    return max(0, blocks * BLOCK if demand.asked is None else blocks * need.per_token * BLOCK)


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 10**7 else f"{count / 1e6:.2f} MB"
