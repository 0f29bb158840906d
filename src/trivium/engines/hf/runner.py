"""Serves many requests with one model, a step at a time: joins, one forward pass, one choice of tokens, the answers.

What a step does is `plan`'s to decide; this acts on it. A fault of one request ends that one.
"""

import time
from collections.abc import Mapping, Sequence
from itertools import count
from os import urandom
from typing import Any

import torch

from trivium.engines.hf.answers import ChosenToken, TokenReading
from trivium.engines.hf.attention import StepAttention
from trivium.engines.hf.call_guard import CallGuard
from trivium.engines.hf.forward import ForwardPass
from trivium.engines.hf.lora.adapters import Adapters
from trivium.engines.hf.memory import blocks_of
from trivium.engines.hf.plan import SlotHolder, SlotSeeker, StepPlan, StepSettings, StepView, plan
from trivium.engines.hf.prefix_cache import PrefixCache
from trivium.engines.hf.processors import LogitsProcessors
from trivium.engines.hf.prompts import PromptInput, input_field
from trivium.engines.hf.requests import GenerationLimits, judge_memory, judged
from trivium.engines.hf.sampling import TokenSampler
from trivium.engines.hf.sequences import GenerationRequest, SequenceState
from trivium.engines.hf.slots import SlotTable
from trivium.engines.hf.texts import PromptReader
from trivium.types.errors import Code, ServeError, frameless, named
from trivium.types.interfaces import StepOutlet, StepReport
from trivium.types.operations import Infer
from trivium.types.payload import Raw
from trivium.types.running import ItemId

MOST_SCORES = 2**24
"""Numbers of the logits that one step computes to score prompts."""

SHORT = 0.003
"""Seconds that a step waits for a text to become tokens, where a slot is free for it."""


class RollingRunner:
    """See `StepRunner`."""

    def __init__(  # noqa: PLR0913 - what a loaded model consists of
        self,
        model: Any,
        attention: StepAttention,
        slots: SlotTable,
        reader: PromptReader,
        reading: TokenReading,
        limits: GenerationLimits,
        settings: StepSettings,
        sampling: Mapping[str, float],
        processors: LogitsProcessors,
        adapters: Adapters,
        outlet: StepOutlet,
    ) -> None:
        device = next(model.parameters()).device
        self._forward = ForwardPass(model, attention, device, adapters.layers)
        self._adapters = adapters
        self._calls = CallGuard()
        self._sampler = TokenSampler(sorted(reading.ends), device, self._calls)
        self._reading = reading
        self._limits = limits
        self._settings = settings
        self._sampling = sampling
        self._outlet = outlet
        self._reader = reader
        self._processors = processors
        self._keys = count()
        self._requests: dict[ItemId, GenerationRequest] = {}
        self._unread: dict[ItemId, GenerationRequest] = {}
        self._slots = slots
        self._prefixes = PrefixCache(slots, str(next(model.parameters()).dtype))
        self._wasted = self._unread_tokens = self._queried = self._cached = 0

    @property
    def slots(self) -> int:
        """See `StepRunner`."""
        return self._settings.slots

    def add(self, item: ItemId, infer: Infer) -> None:
        """See `StepRunner`."""
        generate = judged(infer, self._sampling, self._limits)
        adapter = self._adapters.find(generate.adapter) if generate.adapter else None
        seed = generate.sampling.seed
        chosen = int.from_bytes(urandom(8), "little") if seed is None else seed
        self._reader.read(item, generate)
        self._unread[item] = GenerationRequest(item, generate, chosen, adapter)

    def call(self, function: str, payload: Raw) -> Raw:
        """See `CallsFunctions`: adapters come, go and change between two steps."""
        retired = self._adapters.call(function, payload)
        if retired is not None:
            self._prefixes.drop_adapter(retired.key)
            self._sweep()
        return Raw(())

    def step(self) -> StepReport | None:
        """See `StepRunner`."""
        self._take_read()
        decided = plan(self._view(), self._settings)
        if not (decided.rows or decided.pieces):
            return self._report(0, 0, 0) if self._wasted or self._unread_tokens else None
        with torch.inference_mode():
            self._join(decided)
            return self._compute(decided)

    def abort(self, item: ItemId) -> int:
        """See `StepRunner`."""
        if self._unread.pop(item, None) is not None:
            self._reader.cancel(item)
            self._sweep()
        request = self._requests.get(item)
        if request is None:
            return 0
        for sequence in request.running:
            self._prefixes.keep(sequence, sequence.place)
        self._forget(request)
        return request.computed_tokens

    def reset(self) -> None:
        """See `StepRunner`."""
        self._requests.clear()
        for item in self._unread:
            self._reader.cancel(item)
        self._unread.clear()
        self._prefixes.clear()
        self._slots.release_all()
        self._sweep()
        self._wasted = self._unread_tokens = self._queried = self._cached = 0

    def close(self) -> None:
        """See `StepRunner`."""
        self._reader.close()
        self.reset()

    def debug_state(self) -> dict[str, int]:
        """Return what there is: requests that are read or computed, and slots that nobody has."""
        return {"unread": len(self._unread), "requests": len(self._requests), "free": len(self._slots.free)}

    def debug_adapters(self) -> dict[str, int]:
        """Return how many adapters there are, those that were removed and still run among them, and how many modules
        look for them.
        """
        return {"held": self._adapters.held, "modules": self._adapters.layers.hooked}

    # -- joining --

    def _take_read(self) -> None:
        """Take up what has been turned into tokens. Where a slot is free a short text is waited for: its thread needs
        the interpreter, which a step gives away late.
        """
        while (
            prepared := self._reader.take(SHORT if self._slots.free and self._reader.is_brief else 0.0)
        ) is not None:
            request = self._unread.pop(prepared.item, None)
            if request is None:
                continue
            if prepared.error is not None:
                self._sweep()
                self._outlet.end(prepared.item, prepared.error)
                continue
            error = self._begin(request, prepared.prompts)
            if error is not None:
                self._sweep()
                self._outlet.end(request.item, error)
                continue
            self._requests[request.item] = request
            if request.is_over:
                self._unread_tokens += request.prompt_tokens
                self._end(request)

    def _begin(self, request: GenerationRequest, prompts: Sequence[PromptInput]) -> ServeError | None:
        """Have a request's sequences wait for slots. Returns why that cannot be."""
        field = input_field(request.generate)
        try:
            for prompt in prompts:
                judge_memory(request.generate, field, prompt.size, self._limits)
        except ServeError as error:
            return frameless(error)
        request.begin(prompts, self._keys, self._limits, self._reading)
        return self._add_processors(request)

    def _add_processors(self, request: GenerationRequest) -> ServeError | None:
        """Give each sequence the processor that its request names: code of the folder, which may run for the first time
        here. Returns why there is none.
        """
        name = request.sampling.processor
        if name is None:
            return None
        try:
            for sequence in request.all:
                sequence.processor = self._calls.call(name, self._processors.make, name)
        except ServeError as error:
            return frameless(error)
        return None

    def _view(self) -> StepView:
        holders: list[SlotHolder] = []
        seekers: list[SlotSeeker] = []
        kept = self._prefixes.kept()
        open_slots = self._settings.slots - sum(one.own is not None for one in self._requests.values())
        for request in self._requests.values():
            own = request.own if request.is_own_idle else None
            found = request.seekers(self._settings.slots) if request.waiting else []
            idle = self._slots.blocks(own) if own is not None and not found else 0
            for one in request.running:
                blocks = max(self._slots.blocks(one.place), blocks_of(one.wanted)) + idle
                is_lent = one.slot != request.own
                holders.append(SlotHolder(one.key, one.place, one.left, is_lent, request.number, blocks))
                idle = 0
            is_first = request.own is None
            for one in found:
                source = request.source(one)
                left = one.left if source is None else max(1, one.left - source[1])
                blocks = blocks_of(one.entry)
                if own is not None:
                    blocks = max(self._slots.blocks(own), blocks_of(one.wanted))
                match = None
                if kept and source is None and (own is not None or open_slots):  # it may get a slot now
                    match = self._prefixes.match(one)
                    open_slots -= own is None
                place, known = (None, 0) if match is None else (match.place, match.size)
                seekers.append(SlotSeeker(one.key, left, own, is_first, request.number, blocks, place, known))
                own, is_first = None, False
        return StepView(tuple(self._slots.free), tuple(holders), tuple(seekers), kept)

    def _join(self, decided: StepPlan) -> None:
        used = [join.kept for join in decided.joins]
        for place in decided.dropped:
            if place not in used:
                self._prefixes.drop(place)
        for number in decided.preempted:
            request = next(one for one in self._requests.values() if one.number == number)
            for slot in request.give_all_back():
                self._slots.release(slot)
        if not (decided.returns or decided.joins):
            return
        sequences = self._sequences()
        for key in decided.returns:
            given = sequences[key]
            self._slots.release(given.request.give_back(given))
        for join in decided.joins:
            sequence = sequences[join.key]
            self._slots.take(join.slot)
            match = None if join.kept is None else sequence.match[1]
            copied = sequence.request.enter(sequence, join.slot, match)
            if match is not None:
                self._prefixes.give(match.place, sequence, match.place not in decided.dropped)
            elif copied is not None:
                self._slots.copy(copied[0], join.slot, copied[1])
            self._count_cached(sequence)
            self._sampler.begin(sequence)

    def _count_cached(self, sequence: SequenceState) -> None:
        """Count what of a prompt a sequence need not compute, that nobody had read for its request."""
        prompt = sequence.prompt
        if not prompt.is_looked_up and self._prefixes.takes(prompt):
            prompt.is_looked_up = True
            self._queried += prompt.size
        found = max(0, min(sequence.done, prompt.size) - prompt.read)
        prompt.read += found
        prompt.cached += found
        self._cached += found

    def _sequences(self) -> dict[int, SequenceState]:
        return {
            one.key: one
            for request in self._requests.values()
            for one in (*request.running, *request.waiting)
        }

    # -- computing --

    def _compute(self, decided: StepPlan) -> StepReport:
        sequences = {one.key: one for request in self._requests.values() for one in request.running}
        reads = [(sequences[key], 1) for key in decided.rows]
        pieces = [(one, min(count, one.left)) for one, count in self._pieces(decided, sequences)]
        reads += [piece for piece in pieces if piece[1] == 1] + [piece for piece in pieces if piece[1] > 1]
        rows, prompt_tokens = self._count(reads)
        logits, ended, told = self._forward.run(reads)
        for one in told:
            self._sampler.score(one)
        for sequence, _ in reads:
            self._slots.wrote(sequence.place, sequence.done)
        if ended:
            self._choose(logits, ended)
        return self._report(rows, prompt_tokens, sum(one.answer.has_room for one in ended))

    def _pieces(
        self, decided: StepPlan, sequences: Mapping[int, SequenceState]
    ) -> list[tuple[SequenceState, int]]:
        """Return how many inputs are read of each prompt: fewer of those that are scored, since each of their tokens
        has logits, which are as many numbers as the vocabulary has tokens.
        """
        found = [(sequences[one.key], one.count) for one in decided.pieces]
        scored = sum(not sequence.prompt.is_scored for sequence, _ in found)
        if not scored:
            return found
        most = max(1, MOST_SCORES // (self._limits.vocabulary * scored))
        return [
            (sequence, count if sequence.prompt.is_scored else min(count, most)) for sequence, count in found
        ]

    def _count(self, reads: list[tuple[SequenceState, int]]) -> tuple[int, int]:
        """Count what is computed: tokens of sequences, and tokens of prompts that nobody had read yet."""
        rows = prompt_tokens = 0
        for sequence, size in reads:
            prompt = sequence.prompt
            new = max(0, min(sequence.done + size, prompt.size) - max(prompt.read, sequence.done))
            prompt.read += new
            prompt_tokens += new
            if size == 1 and not new:
                rows += 1
            else:
                self._wasted += (
                    size - new
                )  # read a second time, since the slot was needed for another request
        return rows, prompt_tokens

    def _choose(self, logits: torch.Tensor, sequences: list[SequenceState]) -> None:
        choices = self._sampler.choose(logits, sequences)
        now = time.monotonic()
        touched: dict[ItemId, GenerationRequest] = {}
        for row, (sequence, token) in enumerate(zip(sequences, choices.tokens, strict=True)):
            request = sequence.request
            if request.item not in self._requests:
                continue  # another sequence of it failed in this step
            error = choices.failed.get(row) or self._take(sequence, token)
            if error is not None:
                touched.pop(request.item, None)
                self._fail(request, error)
                continue
            request.reply.came(now)
            touched[request.item] = request
        for request in touched.values():
            if request.is_over:
                self._end(request)
            elif request.generate.streams:
                self._outlet.offer(request.item, request.parts())

    def _take(self, sequence: SequenceState, token: ChosenToken) -> ServeError | None:
        try:
            if sequence.answer.lacks_prompt:
                sequence.answer.begin(sequence.request.scored(sequence.prompt, self._reading))
            if sequence.answer.finish is None:
                sequence.new.append(token.id)
                sequence.answer.take(token)
        except BaseException as error:  # a panic of Rust is no Exception
            return ServeError(
                Code.MODEL_FAILED,
                f"Model '{self._limits.model}': token {token.id} cannot be read as text: {named(error)}",
            )
        if sequence.answer.finish is not None:
            slot = sequence.request.leave(sequence)
            if slot is not None:
                self._prefixes.keep(sequence, slot)
                self._slots.release(slot)
        return None

    def _end(self, request: GenerationRequest) -> None:
        self._forget(request)
        answer, wasted = request.whole()
        self._wasted += wasted
        self._outlet.end(request.item, answer)

    def _fail(self, request: GenerationRequest, error: ServeError) -> None:
        self._forget(request)
        self._wasted += request.computed_tokens
        self._outlet.end(request.item, error)

    def _forget(self, request: GenerationRequest) -> None:
        """Free what a request has: in a slot that was released nothing is left that may be no number."""
        del self._requests[request.item]
        for slot in request.slots:
            self._slots.release(slot)
        self._sweep()

    def _sweep(self) -> None:
        """Let adapters go that were replaced or removed, and that no request has any more."""
        if self._adapters.has_retired:
            self._adapters.sweep({one.adapter for one in (*self._unread.values(), *self._requests.values())})

    def _report(self, rows: int, prompt_tokens: int, new_tokens: int) -> StepReport:
        wasted, self._wasted = self._wasted, 0
        prompt_tokens, self._unread_tokens = prompt_tokens + self._unread_tokens, 0
        queried, cached, self._queried, self._cached = self._queried, self._cached, 0, 0
        taken = self._slots.share, wasted, self._slots.bound
        return StepReport(rows, prompt_tokens, new_tokens, *taken, queried, cached)
