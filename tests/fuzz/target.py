"""One thing that reads bytes of strangers, what it may refuse them by, and from what its inputs are made.

An input is made from the target's name, a seed and an index alone, so that it can be made again.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fuzz import mutations
from tests.fuzz.mutations import NESTS, Mutation

from trivium.types.errors import ServeError

Change = Callable[[bytes], bytes]
"""Damages some bytes."""

Rebuild = Callable[[bytes, Change, random.Random], bytes]
"""Makes an entry of the corpus anew, with some part of it damaged and the form around that right."""


@dataclass(frozen=True)
class Target:
    """`read` gets an input and a chance for what else it needs, and returns or raises one of `refusals`. `corpus` has
    good inputs, `tokens` words to put in. `rebuild` makes every other input, where there is one.
    """

    name: str
    corpus: tuple[bytes, ...]
    read: Callable[[bytes, random.Random], object]
    refusals: tuple[type[Exception], ...] = (ServeError,)
    tokens: tuple[bytes, ...] = ()
    nests: tuple[tuple[bytes, bytes], ...] = NESTS
    rebuild: Rebuild | None = None
    most: int = 2**15
    """Bytes of an input."""

    mutations: tuple[Mutation, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        own = (
            mutations.splicing(self.corpus),
            mutations.splicing(self.corpus),
            mutations.nesting(self.nests),
        )
        words = (mutations.inserting(self.tokens),) * 3 if self.tokens else ()
        object.__setattr__(self, "mutations", (*mutations.GENERAL, *own, *words))

    def input(self, seed: int, index: int) -> tuple[bytes, random.Random]:
        """The bytes, and the chance that `read` gets with them."""
        chance = random.Random(f"{self.name} {seed} {index}")
        entry = chance.choice(self.corpus)
        if chance.random() < 0.02:
            return entry, chance
        if self.rebuild is None or chance.random() < 0.5:
            return self.damaged(entry, chance), chance
        made = self.rebuild(entry, lambda data: self.damaged(data, chance), chance)
        return (made if chance.random() < 0.8 else self.damaged(made, chance))[: 2 * self.most], chance

    def damaged(self, data: bytes, chance: random.Random) -> bytes:
        """The bytes, changed in some places."""
        return mutations.apply(self.mutations, data, chance, self.most)
