"""Puts the answer to a request together, of those of its sequences: parts on the way, and the end of it.

Sequence `i` of a request is choice `i % n` of prompt `i // n`, of the `n` that are made of each. This is pure.
"""

from collections.abc import Sequence
from itertools import chain

import msgspec

from trivium.engines.hf.answers import SequenceAnswer
from trivium.engines.hf.requests import sequences_per_prompt
from trivium.types.generation import Generate, Generated, GeneratedChoice, GenerationUsage


class GenerationReply:
    """One per request. `answers` are those of its sequences, by their number."""

    def __init__(self, generate: Generate) -> None:
        self.generate = generate
        self.per_prompt = sequences_per_prompt(generate.sampling)
        self.answers: list[SequenceAnswer] = []
        self.prompt_tokens = 0
        self._prompts: Sequence[Sequence[int]] = ()
        self._is_told = False
        self._first_at = self._last_at = 0.0

    def begin(self, prompts: Sequence[Sequence[int]], tokens: int) -> None:
        """Take the ids of the prompts, which have so many tokens in all."""
        self._prompts, self.prompt_tokens = prompts, tokens

    def came(self, now: float) -> None:
        """A token came, at this time in seconds."""
        self._first_at = self._first_at or now
        self._last_at = now

    @property
    def new_tokens(self) -> int:
        """Return how many tokens were generated for it."""
        return sum(answer.count for answer in self.answers)

    def parts(self, cached: int) -> Generated:
        """Return what has come of all sequences since the last time; `cached` tokens of the prompts were there."""
        made = (answer.part(number) for number, answer in enumerate(self.answers))
        usage = self._usage(cached) if self.generate.counts_parts else None
        return Generated(tuple(part for part in made if part is not None), usage, self._told())

    def whole(self, cached: int) -> tuple[Generated, int]:
        """Return the end of the answer, and how many tokens are nobody's: those of sequences that are not the best."""
        usage, choices = self._usage(cached), self.generate.sampling.choices
        if self.per_prompt == choices:
            return msgspec.structs.replace(self.parts(cached), usage=usage), 0
        ends = range(0, len(self.answers), self.per_prompt)
        groups = (self.answers[at : at + self.per_prompt] for at in ends)
        best = [sorted(group, key=_score, reverse=True)[:choices] for group in groups]
        chosen = list(chain.from_iterable(best))
        wasted = self.new_tokens - sum(answer.count for answer in chosen)
        return Generated(_numbered(chosen), usage, self._told()), wasted

    def _told(self) -> tuple[tuple[int, ...], ...]:
        """Return the ids of its prompts, if they are wanted, the first time."""
        if self._is_told or not self.generate.tells_prompts:
            return ()
        self._is_told = True
        return tuple(tuple(ids) for ids in self._prompts)

    def _usage(self, cached: int) -> GenerationUsage:
        return GenerationUsage(self.prompt_tokens, self.new_tokens, self._first_at, self._last_at, cached)


def _score(answer: SequenceAnswer) -> float:
    return answer.score


def _numbered(answers: Sequence[SequenceAnswer]) -> tuple[GeneratedChoice, ...]:
    made = (answer.part(index) for index, answer in enumerate(answers))
    return tuple(part for part in made if part is not None)
