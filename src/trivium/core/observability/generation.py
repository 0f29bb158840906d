"""Counts what one version generates: tokens by the steps of its instances, times by the requests that ended."""

import logging
from bisect import bisect_left
from collections.abc import Sequence

from trivium.types.generation import Finish, Generated
from trivium.types.running import Stepped
from trivium.types.statistics import Duration, GenerationStatistics

FIRST_TOKEN_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds in seconds of the histogram of times to a first token; one more bucket takes the rest."""

GAP_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Upper bounds in seconds of the histogram of times from one token to the next."""

COUNT_BUCKETS = tuple(float(2**power) for power in range(18))
"""Upper bounds of the histograms of requests by their tokens."""

STEP_LOG = logging.getLogger("trivium.steps")


class GenerationCounters:
    """One version's, since it was loaded. Used on the loop only."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._prompt_tokens = self._new_tokens = self._wasted_tokens = 0
        self._queried_tokens = self._cached_tokens = 0
        self._steps = 0
        self._step_seconds = 0.0
        self._share = 0.0
        self._room = 0
        self._first_seconds = self._between_seconds = 0.0
        self._between = 0
        self._firsts = [0] * (len(FIRST_TOKEN_BUCKETS) + 1)
        self._gaps = [0] * (len(GAP_BUCKETS) + 1)
        self._prompts, self._answers = ([0] * (len(COUNT_BUCKETS) + 1) for _ in range(2))
        self._finishes: dict[Finish, int] = {}

    def stepped(self, step: Stepped) -> None:
        """An instance has computed a step, or tells what it computed in vain."""
        if step.ended > step.began and step.rows + step.prompt_tokens:
            self._steps += 1
            self._step_seconds += step.ended - step.began
        self._prompt_tokens += step.prompt_tokens
        self._new_tokens += step.new_tokens
        self._wasted_tokens += step.wasted_tokens
        self._queried_tokens += step.queried_tokens
        self._cached_tokens += step.cached_tokens
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

    def ended(self, last: Generated, since: float) -> None:
        """A request that came at `since`, in monotonic seconds, was answered, at last by this part."""
        usage = last.usage
        if usage is None:
            return
        for choice in last.choices[-1:]:
            if choice.finish is not None:
                self._finishes[choice.finish] = self._finishes.get(choice.finish, 0) + 1
        self._prompts[bisect_left(COUNT_BUCKETS, usage.prompt_tokens)] += 1
        self._answers[bisect_left(COUNT_BUCKETS, usage.new_tokens)] += 1
        if not usage.new_tokens:
            return
        waited = max(usage.first_at - since, 0.0)
        self._first_seconds += waited
        self._firsts[bisect_left(FIRST_TOKEN_BUCKETS, waited)] += 1
        self._between += usage.new_tokens - 1
        self._between_seconds += usage.last_at - usage.first_at
        if usage.new_tokens > 1:
            gap = (usage.last_at - usage.first_at) / (usage.new_tokens - 1)
            self._gaps[bisect_left(GAP_BUCKETS, gap)] += usage.new_tokens - 1

    def report(self, running: int) -> GenerationStatistics:
        """A frozen copy of the counters, with the requests that instances have."""
        return GenerationStatistics(
            self._prompt_tokens,
            self._new_tokens,
            self._wasted_tokens,
            Duration(self._steps, round(self._step_seconds * 1e9)),
            Duration(sum(self._firsts), round(self._first_seconds * 1e9)),
            _by(FIRST_TOKEN_BUCKETS, self._firsts),
            Duration(self._between, round(self._between_seconds * 1e9)),
            running,
            self._share,
            self._room,
            _by(GAP_BUCKETS, self._gaps),
            _by(COUNT_BUCKETS, self._prompts),
            _by(COUNT_BUCKETS, self._answers),
            {finish.value: count for finish, count in self._finishes.items()},
            self._queried_tokens,
            self._cached_tokens,
        )


def _by(bounds: Sequence[float], counts: Sequence[int]) -> tuple[tuple[float, int], ...]:
    """Return how many there are up to each bound, and beyond the last one."""
    return tuple(zip((*bounds, float("inf")), counts, strict=True))
