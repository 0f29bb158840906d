"""Estimates the memory of a model before it is loaded, and says which settings would fit.

Weights, and keys and values of slots x context tokens, are nearly all of it; the rest is the reserve. This is pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trivium.engines.hf.options import DEFAULT_SLOTS

BYTES: Mapping[str, int] = {"fp32": 4, "fp16": 2, "bf16": 2}
RESERVE = 2**27
"""Bytes for what a step computes, and for the libraries."""


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """A model's need in bytes: `weights`, and `per_token` for the keys and values of each token of each slot."""

    weights: int
    per_token: int

    def total(self, slots: int, context: int) -> int:
        """Return the whole need."""
        return self.weights + self.per_token * slots * context + RESERVE


def estimate(numbers: int, cache_numbers: int, dtype: str) -> MemoryEstimate:
    """Return the need of a model with so many numbers, which keeps `cache_numbers` of each token."""
    return MemoryEstimate(numbers * BYTES[dtype], cache_numbers * BYTES[dtype])


def fitting_slots(need: MemoryEstimate, context: int, free: int | None) -> int:
    """Return the slots of a model that does not say: as many as there is memory for, 1 at least."""
    if free is None or not need.per_token:
        return DEFAULT_SLOTS
    room = free - need.weights - RESERVE
    return max(1, min(DEFAULT_SLOTS, room // (need.per_token * context)))


def shortage(need: MemoryEstimate, slots: int, context: int, free: int | None, dtype: str) -> str:
    """Say what does not fit, in both numbers, and two settings that would; empty where it fits."""
    total = need.total(slots, context)
    if free is None or total <= free:
        return ""
    found = (
        f"it needs about {_size(total)} (weights {_size(need.weights)}, keys and values of {slots} slots x {context} "
        f"tokens {_size(total - need.weights - RESERVE)}), and {_size(free)} are free."
    )
    return f"{found} {_ways(need, slots, context, free, dtype)}"


def _ways(need: MemoryEstimate, slots: int, context: int, free: int, dtype: str) -> str:
    room = free - need.weights - RESERVE
    fewer, shorter = room // (need.per_token * context), room // (need.per_token * slots)
    ways = [f"slots={fewer}"] if fewer >= 1 else []
    ways += [f"max_context={shorter}"] if shorter >= 2 else []
    if room >= need.per_token * 2:
        ways.append(f"slots=1 with max_context={min(context, room // need.per_token)}")
    if dtype == "fp32" and len(ways) < 2:
        half = MemoryEstimate(need.weights // 2, need.per_token // 2)
        if half.total(slots, context) <= free:
            ways.append("dtype=bf16")
        elif half.total(1, 2) <= free:
            most = (free - half.weights - RESERVE) // half.per_token
            ways.append(f"dtype=bf16 with slots=1 and max_context={min(context, most)}")
    if not ways:
        return "No setting fits: take a smaller model, or a larger machine."
    return f"It would fit with {', or with '.join(ways[:2])}."


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 10**7 else f"{count / 1e6:.2f} MB"
