"""Draws numbers that depend on a request's seed, the sequence and the place of the token alone: never on neighbours.

A counter takes the place of a state, so that a sequence that is computed anew draws what it drew before.
"""

_MASK = 2**64 - 1


def draw(seed: int, sequence: int, token: int) -> float:
    """Return a number from 0 up to, and without, 1: evenly spread, and the same for the same arguments."""
    state = _mixed(seed & _MASK ^ _mixed((seed >> 64) & _MASK))
    state = _mixed(state ^ _mixed(sequence + 1))
    return (_mixed(state + (token + 1) * 0x9E3779B97F4A7C15 & _MASK) >> 11) * 2.0**-53


def _mixed(value: int) -> int:
    """Spread the bits of a 64-bit number (the finalizer of SplitMix64)."""
    value = value + 0x9E3779B97F4A7C15 & _MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31
