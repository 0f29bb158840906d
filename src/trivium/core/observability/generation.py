"""Counts what one version generates: tokens by the steps of its instances, times by the requests that ended."""

import logging
from bisect import bisect_left

from trivium.types.generation import GenerationUsage
from trivium.types.running import Stepped
from trivium.types.statistics import Duration, GenerationStatistics

FIRST_TOKEN_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds in seconds of the histogram of times to a first token; one more bucket takes the rest."""

STEP_LOG = logging.getLogger("trivium.steps")


class GenerationCounters:
    """One version's, since it was loaded. Used on the loop only."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._prompt_tokens = self._new_tokens = self._wasted_tokens = 0
        self._steps = 0
        self._step_seconds = 0.0
        self._share = 0.0
        self._room = 0
        self._first_seconds = self._between_seconds = 0.0
        self._between = 0
        self._firsts = [0] * (len(FIRST_TOKEN_BUCKETS) + 1)

    def stepped(self, step: Stepped) -> None:
        """An instance has computed a step, or tells what it computed in vain."""
        if step.ended > step.began and step.rows + step.prompt_tokens:
            self._steps += 1
            self._step_seconds += step.ended - step.began
        self._prompt_tokens += step.prompt_tokens
        self._new_tokens += step.new_tokens
        self._wasted_tokens += step.wasted_tokens
        self._share = step.share
        self._room = step.room or self._room
        if STEP_LOG.isEnabledFor(logging.DEBUG):
            STEP_LOG.debug(
                "step of model '%s': rows %d, prompt tokens %d, new tokens %d, wasted tokens %d, share %.3f, "
                "began %.6f, ended %.6f",
                self._model,
                step.rows,
                step.prompt_tokens,
                step.new_tokens,
                step.wasted_tokens,
                step.share,
                step.began,
                step.ended,
            )

    def ended(self, usage: GenerationUsage, since: float) -> None:
        """A request that came at `since`, in monotonic seconds, was answered."""
        if not usage.new_tokens:
            return
        waited = max(usage.first_at - since, 0.0)
        self._first_seconds += waited
        self._firsts[bisect_left(FIRST_TOKEN_BUCKETS, waited)] += 1
        self._between += usage.new_tokens - 1
        self._between_seconds += usage.last_at - usage.first_at

    def report(self, running: int) -> GenerationStatistics:
        """A frozen copy of the counters, with the requests that instances have."""
        return GenerationStatistics(
            self._prompt_tokens,
            self._new_tokens,
            self._wasted_tokens,
            Duration(self._steps, round(self._step_seconds * 1e9)),
            Duration(sum(self._firsts), round(self._first_seconds * 1e9)),
            tuple(zip((*FIRST_TOKEN_BUCKETS, float("inf")), self._firsts, strict=True)),
            Duration(self._between, round(self._between_seconds * 1e9)),
            running,
            self._share,
            self._room,
        )
