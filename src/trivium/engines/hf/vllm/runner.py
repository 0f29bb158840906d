"""Serves many requests with vLLM: reads them, gives their sequences to its engine, and answers with what comes back.

vLLM decides what is computed when; a step here takes up what it has made since the last one. A fault of one request
ends that one.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from trivium.engines.hf.answers import TokenReading
from trivium.engines.hf.prompts import PromptInput, input_field
from trivium.engines.hf.requests import GenerationLimits, judged, refusal
from trivium.engines.hf.texts import PromptReader
from trivium.engines.hf.vllm.adapters import VllmAdapters
from trivium.engines.hf.vllm.counters import StepCounters
from trivium.engines.hf.vllm.engine_thread import EngineOrder, EngineOutput, EngineThread
from trivium.engines.hf.vllm.sampling import judge_sampling, sampling_arguments
from trivium.engines.hf.vllm.sequences import VllmRequest, VllmSequence
from trivium.types.errors import Code, ServeError, frameless, named
from trivium.types.interfaces import StepOutlet, StepReport
from trivium.types.operations import Infer
from trivium.types.payload import Raw
from trivium.types.running import ItemId


@dataclass(frozen=True, slots=True)
class OpenedVllm:
    """An engine that has passed its test, and what reads for it. `inputs_of` and `params_of` make vLLM's own objects of
    a prompt, and of the arguments of its sampling; `room` is the bytes for keys and values, 0 where nobody knows.
    """

    core: EngineThread
    slots: int
    limits: GenerationLimits
    reading: TokenReading
    sampling: Mapping[str, float]
    counters: StepCounters
    inputs_of: Callable[[PromptInput, str], Any]
    params_of: Callable[..., Any]
    takes_embeds: bool = False
    has_adapters: bool = False
    room: int = 0


class _Counts:
    """Counts what came since the last report."""

    def __init__(self) -> None:
        self.rows = self.prompt = self.new = self.wasted = self.queried = self.cached = 0


class VllmRunner:
    """See `StepRunner`."""

    def __init__(
        self, opened: OpenedVllm, reader: PromptReader, adapters: VllmAdapters, outlet: StepOutlet
    ) -> None:
        self._opened = opened
        self._core = opened.core
        self._reader = reader
        self._adapters = adapters
        self._outlet = outlet
        self._keys = count(1)
        self._unread: dict[ItemId, VllmRequest] = {}
        self._requests: dict[ItemId, VllmRequest] = {}
        self._sequences: dict[int, VllmSequence] = {}
        self._counts = _Counts()
        self._has_news = False

    @property
    def slots(self) -> int:
        """See `StepRunner`."""
        return self._opened.slots

    def add(self, item: ItemId, infer: Infer) -> None:
        """See `StepRunner`."""
        generate = judged(infer, self._opened.sampling, self._opened.limits)
        judge_sampling(
            generate, self._opened.limits.model, self._opened.takes_embeds, self._opened.has_adapters
        )
        adapter = self._adapters.find(generate.adapter) if generate.adapter else None
        self._reader.read(item, generate)
        self._unread[item] = VllmRequest(item, generate, adapter)

    def call(self, function: str, payload: Raw) -> Raw:
        """See `CallsFunctions`: adapters come, go and change while others are computed."""
        if self._adapters.call(function, payload) is not None:
            self._sweep()
        return Raw(())

    def step(self) -> StepReport | None:
        """See `StepRunner`."""
        self._take_read()
        touched: dict[ItemId, VllmRequest] = {}
        for came in self._core.take():
            self._take(came, touched)
        for request in touched.values():
            if request.item not in self._requests:
                continue
            if not request.running:
                self._end(request)
            elif request.generate.streams:
                self._outlet.offer(request.item, request.reply.parts(request.cached_tokens))
        return self._report()

    def abort(self, item: ItemId) -> int:
        """See `StepRunner`."""
        if self._unread.pop(item, None) is not None:
            self._reader.cancel(item)
            self._sweep()
        request = self._requests.get(item)
        if request is None:
            return 0
        self._forget(request)
        return request.computed_tokens

    def reset(self) -> None:
        """See `StepRunner`."""
        for item in self._unread:
            self._reader.cancel(item)
        self._unread.clear()
        for request in list(self._requests.values()):
            self._forget(request)
        self._counts = _Counts()

    def close(self) -> None:
        """See `StepRunner`."""
        self._reader.close()
        self.reset()
        self._core.close()

    def debug_state(self) -> dict[str, int]:
        """Return what there is: requests that are read or computed, and sequences that the engine still has."""
        return {
            "unread": len(self._unread),
            "requests": len(self._requests),
            "sequences": len(self._sequences),
            "computed": self._core.running,
        }

    # -- joining --

    def _take_read(self) -> None:
        while (prepared := self._reader.take(0.0)) is not None:
            request = self._unread.pop(prepared.item, None)
            if request is None:
                continue
            if prepared.error is not None:
                self._sweep()
                self._outlet.end(prepared.item, prepared.error)
                continue
            self._has_news = True
            request.begin(prepared.prompts, self._keys, self._opened.limits, self._opened.reading)
            self._requests[request.item] = request
            try:
                orders = [self._order(one) for one in request.running.values()]
            except Exception as error:  # vLLM judges them when they are made
                self._fail(request, self._refused(request, frameless(error)))
                continue
            if not orders:  # nothing is computed of it
                self._counts.prompt += request.reply.prompt_tokens
                self._end(request)
                continue
            for one, order in zip(list(request.running.values()), orders, strict=True):
                self._sequences[one.key] = one
                self._core.submit(order)

    def _order(self, one: VllmSequence) -> EngineOrder:
        generate = one.request.generate
        arguments = sampling_arguments(
            *(generate.sampling, one.room, one.number),
            *(generate.scores_prompts, self._opened.reading.ends),
        )
        inputs = self._opened.inputs_of(one.prompt, generate.cache_salt)
        adapter = one.request.adapter
        return EngineOrder(
            one.key, inputs, self._opened.params_of(**arguments), None if adapter is None else adapter.request
        )

    # -- taking up what came --

    def _take(self, came: EngineOutput, touched: dict[ItemId, VllmRequest]) -> None:
        sequence = self._sequences.get(came.key)
        self._has_news = True
        if came.error is not None:
            if sequence is not None:
                self._fail(sequence.request, self._refused(sequence.request, came.error))
            return
        completion = came.output.outputs[0]
        if sequence is None:  # it has ended, or nobody waits for it
            self._counts.wasted += len(completion.token_ids)
            return
        request = sequence.request
        self._count_prompt(sequence, came.output.num_cached_tokens or 0)
        try:
            taken = sequence.take(completion, self._opened.reading, came.output.prompt_logprobs)
        except BaseException as error:  # a panic of Rust is no Exception
            text = (
                f"Model '{self._opened.limits.model}': what vLLM made cannot be read as text: {named(error)}"
            )
            self._fail(request, ServeError(Code.MODEL_FAILED, text))
            return
        self._counts.rows += bool(taken)
        self._counts.new += taken
        self._counts.wasted += len(completion.token_ids) - taken
        if taken:
            request.reply.came(time.monotonic())
        touched[request.item] = request
        self._leave(sequence, came.output.finished, completion.finish_reason)

    def _leave(self, sequence: VllmSequence, is_over: bool, reason: str | None) -> None:
        """Let a sequence go that has ended, for vLLM or by its text."""
        if is_over and (wrong := sequence.end(reason)):
            text = f"Model '{self._opened.limits.model}': {wrong}"
            self._fail(sequence.request, ServeError(Code.MODEL_FAILED, text))
        elif sequence.answer.finish is not None:
            del self._sequences[sequence.key], sequence.request.running[sequence.key]
            if not is_over:
                self._core.abort(sequence.key)

    def _count_prompt(self, sequence: VllmSequence, cached: int) -> None:
        if sequence.cached is None:
            sequence.cached = cached
            self._counts.prompt += sequence.prompt.size - cached
            self._counts.queried += sequence.prompt.size
            self._counts.cached += cached

    def _refused(self, request: VllmRequest, error: Exception) -> ServeError:
        """Return the error of a request that vLLM did not take, or could not compute."""
        import vllm.exceptions

        is_theirs = isinstance(error, ValueError | TypeError | vllm.exceptions.VLLMClientError)
        if is_theirs:
            return refusal(
                self._opened.limits.model,
                getattr(error, "parameter", None) or input_field(request.generate),
                "what vLLM takes",
                f"refused by it: {named(error)}",
            )
        cause = error.__cause__ or error
        text = f"Model '{self._opened.limits.model}': vLLM could not compute it: {named(cause)[:1000]}"
        return ServeError(Code.MODEL_FAILED, text)

    def _end(self, request: VllmRequest) -> None:
        self._forget(request)
        answer, wasted = request.reply.whole(request.cached_tokens)
        self._counts.wasted += wasted
        self._outlet.end(request.item, answer)

    def _fail(self, request: VllmRequest, error: ServeError) -> None:
        self._forget(request)
        self._counts.wasted += request.computed_tokens
        self._outlet.end(request.item, error)

    def _forget(self, request: VllmRequest) -> None:
        """Have nothing more computed for a request."""
        self._requests.pop(request.item, None)
        for key in request.running:
            if self._sequences.pop(key, None) is not None:
                self._core.abort(key)
        request.running.clear()
        self._sweep()

    def _sweep(self) -> None:
        """Let adapters go that were replaced or removed, and that no request has any more."""
        if self._adapters.has_retired:
            self._adapters.sweep({one.adapter for one in (*self._unread.values(), *self._requests.values())})

    def _report(self) -> StepReport | None:
        if not self._has_news:
            return None
        self._has_news = False
        counts, self._counts = self._counts, _Counts()
        share = min(1.0, max(0.0, self._opened.counters.share)) if self._sequences else 0.0
        return StepReport(
            counts.rows,
            counts.prompt,
            counts.new,
            *(share, counts.wasted, self._opened.room, counts.queried, counts.cached),
        )
