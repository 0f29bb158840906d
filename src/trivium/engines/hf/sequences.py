"""Keeps what the runner knows of its requests: their prompts, their sequences, and which slots they have.

Sequence `i` of a request is choice `i % n` of prompt `i // n`, of the `n` that are made of each. A request keeps one
slot of its own until it ends, or gives its memory back; in an idle slot its last prompt stays, for another choice.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from trivium.engines.hf.answers import ChosenToken, SequenceAnswer, TokenReading, prompt_texts
from trivium.engines.hf.lora.layers import LoadedAdapter
from trivium.engines.hf.memory import BLOCK
from trivium.engines.hf.prefix_index import PrefixMatch
from trivium.engines.hf.prompts import PromptInput
from trivium.engines.hf.reply import GenerationReply
from trivium.engines.hf.requests import GenerationLimits, room_for
from trivium.types.generation import Generate, Generated, Sampling, TokenText
from trivium.types.running import ItemId


class Prompt:
    """A prompt whose inputs are computed; `read` of them have been counted, and `cached` of those were there. It is
    kept where one of its sequences is. If it is to be scored, its `scores` are those of its tokens so far, each with so
    many alternatives: the first one has none, and they grow in order.
    """

    def __init__(self, told: PromptInput, alternatives: int | None = None) -> None:
        self.ids = told.ids
        self.size = told.size
        self.text = told.text
        self.read = self.cached = 0
        self.is_kept = self.is_looked_up = False
        self.scores: list[ChosenToken] | None = None if alternatives is None else [ChosenToken(told.ids[0])]
        self.alternatives = alternatives or 0
        self.texts: Sequence[TokenText] = ()
        self.embeds: torch.Tensor | None = None
        if told.embeds is not None:
            data = bytearray(told.embeds.data)
            self.embeds = torch.frombuffer(data, dtype=torch.float32).reshape(
                told.embeds.tokens, told.embeds.width
            )

    def unscored(self, done: int, count: int) -> tuple[int, int]:
        """Return which of the next inputs tell a score that is not known yet: from the first to behind the last."""
        scored = 0 if self.scores is None else len(self.scores)
        return max(done, scored - 1), min(done + count, self.size - 1)

    @property
    def is_scored(self) -> bool:
        """Return whether all of its tokens have their scores, or none is to have one."""
        return self.scores is None or len(self.scores) == self.size


class SequenceState:
    """One sequence: `done` inputs of the prompt and its own `new` tokens have their keys and values in its slot."""

    def __init__(
        self, request: "GenerationRequest", key: int, index: int, prompt: Prompt, room: int = BLOCK
    ) -> None:
        self.request = request
        self.key = key
        self.number = index
        self.prompt = prompt
        self.sampling: Sampling = request.sampling
        self.seed = request.seed
        self.wants_logprob = request.wants_logprob
        self.new: list[int] = []
        self.adapter = request.adapter
        self.slot: int | None = None
        self.match: tuple[int, PrefixMatch | None] = (-1, None)
        self.done = 0
        self._most = prompt.size + room
        self.processor: Callable[..., Any] | None = None
        self.answer: SequenceAnswer

    @property
    def place(self) -> int:
        """Return its slot, which it has."""
        assert self.slot is not None, "it was given one"
        return self.slot

    @property
    def left(self) -> int:
        """Return how many inputs are not computed."""
        return self.prompt.size + len(self.new) - self.done

    @property
    def entry(self) -> int:
        """Return for how many tokens memory is to be free when it gets a slot: what it has to compute, and a block."""
        return min(self.prompt.size + len(self.new) + BLOCK, self._most)

    @property
    def wanted(self) -> int:
        """Return for how many tokens it has memory, or will have after its next inputs."""
        return max(self.prompt.size + len(self.new), min(self.prompt.size + BLOCK, self._most))

    def known(self) -> list[int]:
        """Return the tokens of its prompt, if it has any, and its own."""
        return [*self.prompt.ids, *self.new]

    def tokens(self, count: int) -> list[int]:
        """Return the next tokens to compute; 0 in place of what is embedded."""
        end = self.done + count
        start, size = self.done, self.prompt.size
        of_prompt = (
            self.prompt.ids[start:end] if self.prompt.embeds is None else [0] * max(0, min(end, size) - start)
        )
        return [*of_prompt, *self.new[max(0, start - size) : max(0, end - size)]]


@dataclass(slots=True)
class _Kept:
    """The prompt whose first `size` keys and values lie in the request's own slot while that is idle."""

    prompt: Prompt
    size: int


class GenerationRequest:
    """One item. `own` is the slot that it keeps, once it has one; numbers rise in the order in which requests came. It
    keeps its `adapter`, whatever becomes of that name.
    """

    def __init__(
        self, item: ItemId, generate: Generate, seed: int, adapter: LoadedAdapter | None = None
    ) -> None:
        self.item = item
        self.adapter = adapter
        self.generate = generate
        self.sampling = generate.sampling
        self.seed = seed
        self.reply = GenerationReply(generate)
        self.per_prompt = self.reply.per_prompt
        self.wants_logprob = self.sampling.logprobs is not None or self.per_prompt > self.sampling.choices
        self.prompts: list[Prompt] = []
        self.number = -1
        self.all: list[SequenceState] = []
        self.waiting: deque[SequenceState] = deque()
        self.running: list[SequenceState] = []
        self.own: int | None = None
        self._kept: _Kept | None = None

    def begin(
        self,
        prompts: Sequence[PromptInput],
        keys: Iterator[int],
        limits: GenerationLimits,
        reading: TokenReading,
    ) -> None:
        """Take the prompts, and have the sequences wait."""
        is_scored = self.generate.scores_prompts
        alternatives = (self.sampling.logprobs or 0) if is_scored else None
        self.prompts = [Prompt(told, alternatives) for told in prompts]
        self.reply.begin([prompt.ids for prompt in self.prompts], self.prompt_tokens)
        self.number = next(keys)
        for index in range(len(self.prompts) * self.per_prompt):
            prompt = self.prompts[index // self.per_prompt]
            room = room_for(prompt.size, self.sampling.max_tokens, limits)
            sequence = SequenceState(self, next(keys), index, prompt, room)
            sequence.answer = SequenceAnswer(self.sampling, reading, room, prompt.text, prompt.ids, is_scored)
            self.reply.answers.append(sequence.answer)
            self.all.append(sequence)
        self.waiting.extend(sequence for sequence in self.all if sequence.answer.finish is None)

    @property
    def is_over(self) -> bool:
        """Return whether all of its sequences have ended."""
        return not self.waiting and not self.running

    @property
    def new_tokens(self) -> int:
        """Return how many tokens were generated for it."""
        return sum(len(sequence.new) for sequence in self.all)

    @property
    def prompt_tokens(self) -> int:
        """Return how many tokens its prompts have."""
        return sum(prompt.size for prompt in self.prompts)

    @property
    def cached_tokens(self) -> int:
        """Return how many tokens of its prompts were there."""
        return sum(prompt.cached for prompt in self.prompts)

    @property
    def computed_tokens(self) -> int:
        """Return how many tokens were computed for it."""
        return self.new_tokens + sum(prompt.read - prompt.cached for prompt in self.prompts)

    @property
    def slots(self) -> set[int]:
        """Return all slots that it has."""
        own = set() if self.own is None else {self.own}
        return own | {sequence.place for sequence in self.running}

    @property
    def is_own_idle(self) -> bool:
        """Return whether none of its sequences is in its own slot."""
        return self.own is not None and all(sequence.slot != self.own for sequence in self.running)

    def seekers(self, most: int) -> list[SequenceState]:
        """Return the sequences that may get a slot now: not those whose prompt is just being read."""
        reading = {id(one.prompt) for one in self.running if one.done < one.prompt.size - 1}
        found: list[SequenceState] = []
        for sequence in self.waiting:
            if len(found) == most:
                break
            if id(sequence.prompt) not in reading:
                found.append(sequence)
                if self.source(sequence) is None:
                    reading.add(id(sequence.prompt))  # it will read it
        return found

    def source(self, sequence: SequenceState) -> tuple[int, int] | None:
        """Return a slot with keys and values of a sequence's prompt, and how many; None where nobody has them."""
        found = [
            (min(one.done, one.prompt.size), one.place)
            for one in self.running
            if one.prompt is sequence.prompt
        ]
        if self._kept is not None and self.own is not None and self._kept.prompt is sequence.prompt:
            found.append((self._kept.size, self.own))
        size, slot = max(found, default=(0, -1))
        return (slot, size) if size >= max(1, sequence.prompt.size - 1) else None

    def enter(
        self, sequence: SequenceState, slot: int, kept: PrefixMatch | None = None
    ) -> tuple[int, int] | None:
        """Give a sequence a slot, and return from which one to copy how many keys and values, if from any: from another
        sequence of its own, or from what is kept.
        """
        source = self.source(sequence)
        if source is None and kept is not None:
            source = kept.place, kept.size
        self.waiting.remove(sequence)
        sequence.slot = slot
        sequence.done = 0 if source is None else min(source[1], sequence.left - 1 + sequence.done)
        self.running.append(sequence)
        if self.own is None:
            self.own = slot
        if slot == self.own:
            self._kept = None
        return None if source is None or source[0] == slot else (source[0], sequence.done)

    def give_back(self, sequence: SequenceState) -> int:
        """Have a sequence wait again, and return its slot, which was lent."""
        slot = sequence.place
        self.running.remove(sequence)
        sequence.slot, sequence.done = None, 0
        self.waiting.appendleft(sequence)
        return slot

    def give_all_back(self) -> set[int]:
        """Have all of its sequences wait again, as a request that has just come, and return the slots that it had."""
        slots = self.slots
        for sequence in reversed(self.running.copy()):
            self.give_back(sequence)
        self.own, self._kept = None, None
        return slots

    def leave(self, sequence: SequenceState) -> int | None:
        """Let a sequence go that has ended, and return the slot that becomes free, if one does."""
        slot = sequence.place
        self.running.remove(sequence)
        sequence.slot = None
        if slot != self.own:
            return slot
        if self.waiting:
            self._kept = _Kept(sequence.prompt, min(sequence.done, sequence.prompt.size))
            return None
        self.own = self.running[0].place if self.running else None
        return slot

    def scored(self, prompt: Prompt, reading: TokenReading) -> Sequence[TokenText]:
        """Return the tokens of a prompt that has been scored, as an answer has them; made once."""
        if not prompt.texts:
            prompt.texts = prompt_texts(reading, prompt.scores or ())
        return prompt.texts

    def parts(self) -> Generated:
        """Return what has come of all sequences since the last time."""
        return self.reply.parts(self.cached_tokens)

    def whole(self) -> tuple[Generated, int]:
        """Return the end of the answer, and how many tokens are nobody's: those of sequences that are not the best."""
        return self.reply.whole(self.cached_tokens)
