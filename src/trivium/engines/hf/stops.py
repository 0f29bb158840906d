"""Finds the texts that end an answer, in text that comes in pieces, and keeps back what may be the beginning of one."""

from collections.abc import Sequence


class StopMatcher:
    """One per sequence. Of several stop texts the one that is complete first counts, and of those the longest."""

    def __init__(self, stops: Sequence[str], keeps: bool) -> None:
        self._stops = stops
        self._keeps = keeps
        self._kept = ""

    def push(self, text: str) -> tuple[str, bool]:
        """Return the text that can be given out, and whether a stop text was found: then nothing follows."""
        if not self._stops:
            return text, False
        kept = self._kept + text
        found = [(at + len(stop), at) for stop in self._stops if (at := kept.find(stop)) >= 0]
        if found:
            end, start = min(found)
            self._kept = ""
            return kept[: end if self._keeps else start], True
        held = max((_beginning(kept, stop) for stop in self._stops), default=0)
        self._kept = kept[len(kept) - held :]
        return kept[: len(kept) - held], False

    def end(self) -> str:
        """Return what had been kept back: nothing follows."""
        kept, self._kept = self._kept, ""
        return kept


def _beginning(text: str, stop: str) -> int:
    """Return how many characters at the end of a text may be the beginning of a stop text."""
    longest = min(len(text), len(stop) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
