"""Keeps what the runner knows of its requests and their sequences: which wait, which run, and what they have made."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from trivium.engines.hf.answers import ChosenToken, SequenceAnswer, TokenReading
from trivium.engines.hf.genai.asking import settings_of
from trivium.engines.hf.genai.pipeline import HandleState
from trivium.engines.hf.memory import BLOCK, blocks_of
from trivium.engines.hf.prompts import PromptInput
from trivium.engines.hf.reply import GenerationReply
from trivium.engines.hf.requests import GenerationLimits, room_for
from trivium.types.generation import Generate
from trivium.types.running import ItemId


class Handle(Protocol):
    """One sequence that a pipeline computes: see `SequenceHandle`."""

    @property
    def state(self) -> HandleState:
        """Return what has become of it."""
        ...

    def read(self) -> list[ChosenToken]:
        """Return the tokens that have come since the last time."""
        ...

    def cancel(self) -> None:
        """Have no more computed."""
        ...


class GenaiSequence:
    """One sequence of a request; it runs while it has a `handle`."""

    def __init__(
        self,
        request: "GenaiRequest",
        prompt: PromptInput,
        settings: Mapping[str, object],
        answer: SequenceAnswer,
        room: int,
    ) -> None:
        self.request = request
        self.prompt = prompt
        self.settings = settings
        self.answer = answer
        self.handle: Handle | None = None
        self._most = prompt.size + room

    @property
    def blocks(self) -> int:
        """Return how many blocks of keys and values it has now, or needs to begin: a block ahead of what is there."""
        return blocks_of(min(self.prompt.size + self.answer.count + BLOCK, self._most))


class GenaiRequest:
    """One item, and its sequences."""

    def __init__(self, item: ItemId, generate: Generate, seed: int) -> None:
        self.item = item
        self.generate = generate
        self.seed = seed
        self.reply = GenerationReply(generate)
        self.sequences: list[GenaiSequence] = []
        self._read: set[int] = set()  # prompts, by their place, that have been computed

    def begin(self, prompts: Sequence[PromptInput], limits: GenerationLimits, reading: TokenReading) -> None:
        """Take the prompts, and make sequences of them."""
        self.reply.begin([prompt.ids for prompt in prompts], sum(prompt.size for prompt in prompts))
        sampling = self.generate.sampling
        for number in range(len(prompts) * self.reply.per_prompt):
            prompt = prompts[number // self.reply.per_prompt]
            room = room_for(prompt.size, sampling.max_tokens, limits)
            answer = SequenceAnswer(sampling, reading, room, prompt.text, prompt.ids)
            settings = settings_of(self.generate, room, reading.ends, self.seed, number)
            self.reply.answers.append(answer)
            self.sequences.append(GenaiSequence(self, prompt, settings, answer, room))

    @property
    def is_over(self) -> bool:
        """Return whether all of its sequences have ended."""
        return all(answer.finish is not None for answer in self.reply.answers)

    @property
    def computed_tokens(self) -> int:
        """Return how many tokens were computed for it: new ones, and those of the prompts that were read."""
        sizes = (prompt.size for prompt in self._computed_prompts())
        return self.reply.new_tokens + sum(sizes)

    def note_read(self, sequence: GenaiSequence) -> int:
        """A sequence has its first token: return how many tokens of its prompt nobody had read for this request."""
        place = next(at for at, one in enumerate(self.sequences) if one.prompt is sequence.prompt)
        if place in self._read:
            return 0
        self._read.add(place)
        return sequence.prompt.size

    def _computed_prompts(self) -> list[PromptInput]:
        return [self.sequences[place].prompt for place in sorted(self._read)]
