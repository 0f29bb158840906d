"""Keeps what is known of the requests that vLLM computes: their sequences, and what has come for each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trivium.engines.hf.answers import ChosenToken, SequenceAnswer, TokenReading, prompt_texts
from trivium.engines.hf.prompts import PromptInput
from trivium.engines.hf.reply import GenerationReply
from trivium.engines.hf.requests import GenerationLimits, room_for
from trivium.engines.hf.vllm.adapters import VllmAdapter
from trivium.types.generation import Finish, Generate
from trivium.types.running import ItemId


class VllmSequence:
    """One sequence, of the `number` in its request; `room` is how many tokens it may have. `came` counts what vLLM has
    made for it.
    """

    def __init__(
        self,
        key: int,
        request: "VllmRequest",
        number: int,
        prompt: PromptInput,
        answer: SequenceAnswer,
        room: int,
    ) -> None:
        self.key = key
        self.request = request
        self.number = number
        self.prompt = prompt
        self.answer = answer
        self.room = room
        self.came = 0
        self.cached: int | None = None

    def take(self, completion: Any, reading: TokenReading, prompt_scores: Any) -> int:
        """Take what came, and return how many tokens of it are the answer's."""
        if self.answer.lacks_prompt and (prompt_scores is not None or not self.prompt.ids):
            self.answer.begin(
                prompt_texts(reading, scored(self.prompt.ids, prompt_scores or (), self._alternatives))
            )
        self.came += len(completion.token_ids)
        taken = 0
        scores = completion.logprobs
        for at, token in enumerate(completion.token_ids):
            if self.answer.finish is not None:
                break
            self.answer.take(chosen(token, scores[at] if scores else None, self._alternatives))
            taken += 1
        return taken

    @property
    def _alternatives(self) -> int:
        return self.request.generate.sampling.logprobs or 0

    def end(self, reason: str | None) -> str:
        """Take the end as vLLM names it. Returns what went wrong; empty for nothing."""
        if self.answer.finish is not None:
            return ""
        if reason in ("length", "repetition"):
            self.answer.cut(Finish.LENGTH)
        elif reason == "stop":
            self.answer.cut(Finish.STOP)
        else:
            return f"vLLM ended it, and gives as its reason: {reason}"
        return ""


class VllmRequest:
    """One item; those of its sequences that have not ended are `running`."""

    def __init__(self, item: ItemId, generate: Generate, adapter: VllmAdapter | None) -> None:
        self.item = item
        self.generate = generate
        self.adapter = adapter
        self.reply = GenerationReply(generate)
        self.running: dict[int, VllmSequence] = {}
        self._first: list[VllmSequence] = []
        self._came = 0

    def begin(
        self,
        prompts: Sequence[PromptInput],
        keys: Iterator[int],
        limits: GenerationLimits,
        reading: TokenReading,
    ) -> None:
        """Take the prompts, and make the sequences."""
        sampling, is_scored = self.generate.sampling, self.generate.scores_prompts
        self.reply.begin([prompt.ids for prompt in prompts], sum(prompt.size for prompt in prompts))
        each = self.reply.per_prompt
        for number in range(len(prompts) * each):
            prompt = prompts[number // each]
            room = room_for(prompt.size, sampling.max_tokens, limits)
            answer = SequenceAnswer(sampling, reading, room, prompt.text, prompt.ids, is_scored)
            self.reply.answers.append(answer)
            made = VllmSequence(next(keys), self, number, prompt, answer, room)
            if number % each == 0:
                self._first.append(made)
            if answer.finish is None:
                self.running[made.key] = made

    @property
    def cached_tokens(self) -> int:
        """Return how many tokens of its prompts were there."""
        return sum(one.cached or 0 for one in self._first)

    @property
    def computed_tokens(self) -> int:
        """Return how many tokens were computed for it."""
        read = sum(one.prompt.size - one.cached for one in self._first if one.cached is not None)
        return self.reply.new_tokens + read


def chosen(token: int, scores: Mapping[int, Any] | None, alternatives: int) -> ChosenToken:
    """Return a token with its log probability, and so many of the likeliest in its place, by vLLM's scores."""
    if not scores:
        return ChosenToken(token)
    own = scores.get(token)
    best = sorted((one.rank or 0, other) for other, one in scores.items())[:alternatives]
    return ChosenToken(
        token,
        None if own is None else float(own.logprob),
        tuple((other, float(scores[other].logprob)) for rank, other in best if rank <= alternatives),
    )


def scored(ids: Sequence[int], scores: Sequence[Mapping[int, Any] | None], count: int) -> list[ChosenToken]:
    """Return the tokens of a prompt with vLLM's scores, each with so many alternatives: the first one has none."""
    found = [*scores, *(None for _ in range(len(ids) - len(scores)))]
    return [chosen(token, told, count) for token, told in zip(ids, found, strict=False)]
