"""Keeps the keys and values of sequences that have ended, for requests that begin as they did.

They lie in slots behind those that run, so that no step reads them, and count in the same budget. Which are found, and
which go, is `PrefixIndex`'s to say; when they go, `plan`'s.
"""

from trivium.engines.hf.plan import KeptPrefix
from trivium.engines.hf.prefix_index import PrefixIndex, PrefixKey, PrefixMatch
from trivium.engines.hf.sequences import Prompt, SequenceState
from trivium.engines.hf.slots import SlotTable

MOST_KEPT = 128
"""Beginnings that are kept at once: each has addresses for a whole context, and nearly all of them cost nothing."""


class PrefixCache:
    """One per model, all of whose keys and values have one data type."""

    def __init__(self, slots: SlotTable, dtype: str) -> None:
        self._slots = slots
        self._dtype = dtype
        self._index = PrefixIndex(slots.kept)
        self._kept: tuple[int, tuple[KeptPrefix, ...]] = (-1, ())

    def takes(self, prompt: Prompt) -> bool:
        """Return whether a prompt may begin with what is kept: one of embeddings has no tokens, and one that is scored
        wants the logits behind all of them.
        """
        return bool(self._slots.kept) and prompt.embeds is None and prompt.scores is None

    def kept(self) -> tuple[KeptPrefix, ...]:
        """Return what is kept, the one that has not been used for longest first."""
        version, found = self._kept
        if version != self._index.version:
            found = tuple(KeptPrefix(place, self._slots.blocks(place)) for place in self._index.places)
            self._kept = self._index.version, found
        return found

    def match(self, sequence: SequenceState) -> PrefixMatch | None:
        """Return what a sequence may begin with. Looked up again only when what is kept has changed."""
        if not self.takes(sequence.prompt):
            return None
        version, found = sequence.match
        if version != self._index.version:
            found = self._index.find(self._key(sequence), sequence.prompt.ids, sequence.prompt.size - 1)
            sequence.match = self._index.version, found
        return found

    def give(self, place: int, sequence: SequenceState, stays: bool) -> None:
        """Put the first keys and values of what is kept into a sequence's slot. Unless it `stays` it is gone then."""
        if stays:
            self._slots.copy(place, sequence.place, sequence.done)
            self._index.touch(place)
        else:
            self._slots.move(place, sequence.place, sequence.done)
            self._index.drop(place)

    def keep(self, sequence: SequenceState, slot: int) -> None:
        """Keep what a sequence had in a slot that is going to be released: one sequence of each prompt."""
        prompt = sequence.prompt
        if prompt.is_kept or prompt.embeds is not None or not self._slots.kept:
            return
        adapter = sequence.request.adapter
        if adapter is not None and adapter.is_retired:
            return  # nobody will ask for it
        prompt.is_kept = True
        tokens = tuple(sequence.known()[: sequence.done])
        to = self._index.keep(self._key(sequence), tokens)
        if to is not None:
            self._slots.move(slot, to.place, len(tokens), to.size)

    def drop(self, place: int) -> None:
        """Give the memory of what is kept back."""
        self._index.drop(place)
        self._slots.release(place)

    def drop_adapter(self, adapter: str) -> None:
        """Give the memory of what was computed with an adapter back: no request will have it again."""
        for place in self._index.places_of(adapter):
            self.drop(place)

    def clear(self) -> None:
        """Forget everything; whoever calls it gives the memory back."""
        self._index.clear()

    def _key(self, sequence: SequenceState) -> PrefixKey:
        adapter = sequence.request.adapter
        return PrefixKey(
            self._dtype, "" if adapter is None else adapter.key, sequence.request.generate.cache_salt
        )
