"""Serves many requests by one pipeline, a step at a time: who begins is decided here, what a step computes the library.

A sequence begins where a slot is free, and memory for its prompt and a block more, in the order in which they came.
Where the library has no memory for one after all, it begins again behind another that has ended.
"""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import urandom
from typing import Protocol

from trivium.engines.hf.answers import ChosenToken, TokenReading
from trivium.engines.hf.genai.asking import judge_known
from trivium.engines.hf.genai.pipeline import HandleState, PipelineFault
from trivium.engines.hf.genai.sequences import GenaiRequest, GenaiSequence, Handle
from trivium.engines.hf.memory import BLOCK, KeyValueBudget
from trivium.engines.hf.prompts import PromptInput, input_field
from trivium.engines.hf.requests import GenerationLimits, judge_memory, judged
from trivium.engines.hf.texts import PreparedRequest
from trivium.types.errors import Code, ServeError, frameless, named
from trivium.types.generation import Generate
from trivium.types.interfaces import StepOutlet, StepReport
from trivium.types.operations import Infer
from trivium.types.running import ItemId

SHORT = 0.003
"""Seconds that a step waits for a text to become tokens, where a slot is free for it."""


class Pipeline(Protocol):
    """Computes: see `GenaiPipeline`."""

    def begin(self, ids: Sequence[int], settings: Mapping[str, object]) -> Handle:
        """Have a sequence computed in the next steps."""
        ...

    def step(self) -> None:
        """Compute one step."""
        ...

    def reopen(self) -> None:
        """Forget all, and be of use again after a step that raised."""
        ...

    def close(self) -> None:
        """Free the model."""
        ...


class TextReader(Protocol):
    """Reads texts: see `PromptReader`."""

    @property
    def is_brief(self) -> bool:
        """Return whether a short text waits."""
        ...

    def read(self, item: ItemId, generate: Generate) -> None:
        """Take a request that has been judged."""
        ...

    def take(self, seconds: float) -> PreparedRequest | None:
        """Return the next one that is ready, or is within so many seconds."""
        ...

    def cancel(self, item: ItemId) -> None:
        """Leave out what nobody waits for any more."""
        ...

    def close(self) -> None:
        """End what reads."""
        ...


@dataclass(frozen=True, slots=True)
class GenaiSettings:
    """The bounds of what runs at once: `slots` sequences, in memory of a `budget`; `keeps`: beginnings of prompts are
    kept for others. `sampling` is the model's own, where a request says nothing.
    """

    slots: int
    budget: KeyValueBudget
    keeps: bool
    sampling: Mapping[str, float]


class GenaiRunner:
    """See `StepRunner`."""

    def __init__(
        self,
        pipeline: Pipeline,
        reader: TextReader,
        reading: TokenReading,
        limits: GenerationLimits,
        settings: GenaiSettings,
        outlet: StepOutlet,
    ) -> None:
        self._pipeline = pipeline
        self._reader = reader
        self._reading = reading
        self._limits = limits
        self._settings = settings
        self._outlet = outlet
        self._unread: dict[ItemId, GenaiRequest] = {}
        self._requests: dict[ItemId, GenaiRequest] = {}
        self._waiting: deque[GenaiSequence] = deque()
        self._running: list[GenaiSequence] = []
        self._is_full = False  # until one has ended, no other begins
        self._is_unswept = False  # what was cancelled has its memory until the next step
        self._wasted = self._unread_tokens = 0

    @property
    def slots(self) -> int:
        """See `StepRunner`."""
        return self._settings.slots

    def add(self, item: ItemId, infer: Infer) -> None:
        """See `StepRunner`."""
        generate = judged(infer, self._settings.sampling, self._limits)
        judge_known(generate, self._limits, self._settings.keeps)
        seed = generate.sampling.seed
        chosen = int.from_bytes(urandom(8), "little") if seed is None else seed
        self._reader.read(item, generate)
        self._unread[item] = GenaiRequest(item, generate, chosen)

    def step(self) -> StepReport | None:
        """See `StepRunner`."""
        self._take_read()
        self._admit()
        if not self._running:
            self._sweep()
            return self._report(0, 0, 0) if self._wasted or self._unread_tokens else None
        self._compute()
        return self._collect()

    def abort(self, item: ItemId) -> int:
        """See `StepRunner`."""
        if self._unread.pop(item, None) is not None:
            self._reader.cancel(item)
        request = self._requests.get(item)
        if request is None:
            return 0
        self._forget(request)
        if not self._running:
            self._sweep()
        return request.computed_tokens

    def reset(self) -> None:
        """See `StepRunner`. The pipeline is opened anew: after a step that raised it raises in every other."""
        for item in self._unread:
            self._reader.cancel(item)
        self._clear()
        self._pipeline.reopen()

    def close(self) -> None:
        """See `StepRunner`."""
        self._reader.close()
        self._clear()
        self._pipeline.close()

    def debug_state(self) -> dict[str, int]:
        """Return what there is: requests that are read or computed, and slots that nobody has."""
        free = self._settings.slots - len(self._running)
        return {"unread": len(self._unread), "requests": len(self._requests), "free": free}

    def _clear(self) -> None:
        self._unread.clear()
        self._requests.clear()
        self._waiting.clear()
        self._running.clear()
        self._is_full = self._is_unswept = False
        self._wasted = self._unread_tokens = 0

    # -- joining --

    def _take_read(self) -> None:
        """Take up what has been turned into tokens. Where a slot is free a short text is waited for: its thread needs
        the interpreter, which a step gives away late.
        """
        free = self._settings.slots - len(self._running) - len(self._waiting)
        while (
            prepared := self._reader.take(SHORT if free > 0 and self._reader.is_brief else 0.0)
        ) is not None:
            request = self._unread.pop(prepared.item, None)
            if request is None:
                continue
            error = prepared.error or self._begin(request, prepared.prompts)
            if error is not None:
                self._outlet.end(request.item, error)
            elif request.is_over:  # nothing was to be computed
                self._unread_tokens += request.reply.prompt_tokens
                self._outlet.end(request.item, request.reply.whole(0)[0])
            else:
                self._requests[request.item] = request
                self._waiting += [one for one in request.sequences if one.answer.finish is None]
                free -= len(request.sequences)

    def _begin(self, request: GenaiRequest, prompts: Sequence[PromptInput]) -> ServeError | None:
        """Make a request's sequences. Returns why that cannot be."""
        field = input_field(request.generate)
        try:
            for prompt in prompts:
                judge_memory(request.generate, field, prompt.size, self._limits)
        except ServeError as error:
            return frameless(error)
        request.begin(prompts, self._limits, self._reading)
        return None

    def _admit(self) -> None:
        """Have those begin that can, in the order in which they came. The others of a prompt begin when the first has
        read it, where that is kept for them.
        """
        if self._is_full and self._running:
            return
        most = 1 if self._is_full else self._settings.slots
        taken = sum(one.blocks for one in self._running)
        held: list[GenaiSequence] = []
        while self._waiting and len(self._running) < most:
            one = self._waiting.popleft()
            if self._is_being_read(one):
                held.append(one)
                continue
            if self._running and taken + one.blocks > self._settings.budget.blocks:
                self._waiting.appendleft(one)
                break
            taken += one.blocks
            self._enter(one)
        self._waiting.extendleft(reversed(held))

    def _is_being_read(self, sequence: GenaiSequence) -> bool:
        if not self._settings.keeps or sequence.prompt.size < BLOCK:
            return False
        return any(one.prompt is sequence.prompt and not one.answer.count for one in self._running)

    def _enter(self, sequence: GenaiSequence) -> None:
        try:
            sequence.handle = self._pipeline.begin(sequence.prompt.ids, sequence.settings)
        except (PipelineFault, ValueError) as error:
            self._fail(sequence.request, self._fault(f"does not take this request: {error}"))
            return
        self._running.append(sequence)

    # -- computing --

    def _compute(self) -> None:
        self._is_unswept = False
        try:
            self._pipeline.step()
        except PipelineFault as error:
            raise self._fault(f"failed in a step: {error}") from error

    def _collect(self) -> StepReport:
        """Take the tokens that have come, and answer."""
        now = time.monotonic()
        rows = prompt_tokens = new_tokens = 0
        touched: dict[ItemId, GenaiRequest] = {}
        ignored: list[GenaiSequence] = []
        for sequence in self._running.copy():
            request = sequence.request
            if request.item not in self._requests or sequence.handle is None:
                continue  # another sequence of it failed in this step
            came = sequence.handle.read()
            if not came:
                ignored += self._look(sequence)
                continue
            read = 0 if sequence.answer.count else request.note_read(sequence)
            prompt_tokens += read
            rows += not read
            new_tokens += len(came)
            error = self._take(sequence, came)
            if error is not None:
                touched.pop(request.item, None)
                self._fail(request, error)
                continue
            request.reply.came(now)
            touched[request.item] = request
        self._put_back(ignored)
        for request in touched.values():
            if request.is_over:
                self._end(request)
            elif request.generate.streams:
                self._outlet.offer(request.item, request.reply.parts(0))
        return self._report(rows, prompt_tokens, new_tokens)

    def _look(self, sequence: GenaiSequence) -> list[GenaiSequence]:
        """A sequence has nothing new: see whether it goes on. Returns it where the library has no memory for it now."""
        assert sequence.handle is not None, "it runs"
        state = sequence.handle.state
        if state is HandleState.RUNS:
            return []
        self._leave(sequence)
        if state is HandleState.IGNORED and not sequence.answer.count:
            return [sequence]
        self._fail(sequence.request, self._fault("ended a text before it was complete"))
        return []

    def _put_back(self, ignored: list[GenaiSequence]) -> None:
        """Have those begin again for which there was no memory: behind what runs, or one alone. One that was alone is
        refused.
        """
        if len(ignored) == 1 and not self._running:
            tokens = self._settings.budget.tokens
            what = f"has no memory for its keys and values: 'kv_bytes' is room for {tokens} tokens, of all sequences"
            self._fail(ignored[0].request, self._fault(what))
        elif ignored:
            self._waiting.extendleft(reversed([one for one in ignored if one.request.item in self._requests]))
            self._is_full = True

    def _take(self, sequence: GenaiSequence, came: Sequence[ChosenToken]) -> ServeError | None:
        for token in came:
            try:
                if sequence.answer.finish is None:
                    sequence.answer.take(_with_alternative(token, sequence.request.generate))
            except BaseException as error:  # a panic of Rust is no Exception
                return self._fault(f"made token {token.id}, which cannot be read as text: {named(error)}")
        if sequence.answer.finish is not None:
            self._leave(sequence)
        return None

    def _leave(self, sequence: GenaiSequence) -> None:
        """Let a sequence go: its memory is free after the next step."""
        self._running.remove(sequence)
        if sequence.handle is not None and sequence.handle.state is HandleState.RUNS:
            sequence.handle.cancel()
            self._is_unswept = True
        sequence.handle = None
        self._is_full = False

    def _sweep(self) -> None:
        """Have the memory of what was cancelled given back, where no other step does."""
        if self._is_unswept:
            self._compute()

    def _end(self, request: GenaiRequest) -> None:
        self._forget(request)
        answer, wasted = request.reply.whole(0)
        self._wasted += wasted
        self._outlet.end(request.item, answer)

    def _fail(self, request: GenaiRequest, error: ServeError) -> None:
        self._forget(request)
        self._wasted += request.computed_tokens
        self._outlet.end(request.item, error)

    def _forget(self, request: GenaiRequest) -> None:
        self._requests.pop(request.item, None)
        for sequence in [one for one in self._running if one.request is request]:
            self._leave(sequence)
        self._waiting = deque(one for one in self._waiting if one.request is not request)

    def _fault(self, what: str) -> ServeError:
        return ServeError(Code.MODEL_FAILED, f"Model '{self._limits.model}': OpenVINO GenAI {what}.")

    def _report(self, rows: int, prompt_tokens: int, new_tokens: int) -> StepReport:
        wasted, self._wasted = self._wasted, 0
        prompt_tokens, self._unread_tokens = prompt_tokens + self._unread_tokens, 0
        budget = self._settings.budget
        share = min(1.0, sum(one.blocks for one in self._running) / budget.blocks)
        return StepReport(rows, prompt_tokens, new_tokens, share, wasted, budget.bytes)


def _with_alternative(token: ChosenToken, generate: Generate) -> ChosenToken:
    """Return a token with the likeliest one, where that is wanted: then it is that one, or the request was refused."""
    if not generate.sampling.logprobs or token.logprob is None:
        return token
    return ChosenToken(token.id, token.logprob, ((token.id, token.logprob),))
