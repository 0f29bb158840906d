"""`python -m tests.gates`: every gate that looks at the source, one after the other, over one reading of it."""

import sys
from collections.abc import Callable, Mapping

from tests.gates import english, foreign_words, house, names, one_place, pickles, reaches, sizes

GATES: Mapping[str, Callable[[], list[str]]] = {
    "sizes: every file and function within its limit": sizes.faults,
    "house: unique names, no circles, pure policies, no pickles, no plans, no frames in values": house.faults,
    "one place: no second copy of a rule": one_place.faults,
    "pickles: one module alone opens any": pickles.faults,
    "names: all that are cited exist, and none stands in a text": names.faults,
    "foreign words: none where no server is known by name": foreign_words.faults,
    "reaches: tests take no private name": reaches.faults,
    "english: a stranger understands the first line of every docstring": english.faults,
}
"""What is said of a gate that nothing breaks -> what it finds, a line each."""


def main() -> int:
    """Print what they find; return how much that is."""
    count = 0
    for passed, faults in GATES.items():
        found = faults()
        count += len(found)
        print("\n".join(found) if found else passed)
    return count


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
