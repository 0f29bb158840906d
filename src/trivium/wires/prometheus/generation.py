"""Metrics of models that generate text, by tokens: Trivium's own families, in seconds and tokens."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from trivium.codecs.exposition import ExposedMetric, written
from trivium.types.statistics import GenerationStatistics
from trivium.wires.prometheus.triton import TritonMetric

_COUNTERS: Sequence[tuple[str, str, Callable[[GenerationStatistics], float]]] = (
    ("trivium_prompt_tokens_total", "Tokens of prompts that were read", lambda counts: counts.prompt_tokens),
    (
        "trivium_prefix_cache_queried_tokens_total",
        "Tokens of prompts that were looked for among kept beginnings",
        lambda counts: counts.queried_tokens,
    ),
    (
        "trivium_prefix_cache_hit_tokens_total",
        "Tokens of prompts that were kept, and not read",
        lambda counts: counts.cached_tokens,
    ),
    ("trivium_generated_tokens_total", "Tokens that were generated", lambda counts: counts.new_tokens),
    (
        "trivium_wasted_tokens_total",
        "Tokens that were generated though nobody waited any more",
        lambda counts: counts.wasted_tokens,
    ),
    ("trivium_generation_steps_total", "Steps that were computed", lambda counts: counts.steps.count),
    (
        "trivium_generation_step_seconds_total",
        "Time that steps have taken",
        lambda counts: counts.steps.ns / 1e9,
    ),
)
_GAUGES: Sequence[tuple[str, str, Callable[[GenerationStatistics], float]]] = (
    ("trivium_generation_running", "Requests in the last step", lambda counts: counts.running),
    (
        "trivium_generation_cache_share",
        "Share of the room for keys and values that is taken [0.0 - 1.0]",
        lambda counts: counts.share,
    ),
    (
        "trivium_generation_cache_used_bytes",
        "Memory for keys and values that is taken",
        lambda counts: round(counts.share * counts.room),
    ),
    (
        "trivium_generation_cache_bytes",
        "Memory that keys and values may take, of the instance that stepped last",
        lambda counts: counts.room,
    ),
)


def tokens(rows: Sequence[TritonMetric]) -> Iterator[ExposedMetric]:
    """Yield the families, of the versions that generate; none where there is no such version."""
    counted = [(row, row.counts.generation) for row in rows if row.counts.generation is not None]
    if not counted:
        return
    for kind, families in (("counter", _COUNTERS), ("gauge", _GAUGES)):
        for name, words, value_of in families:
            family = ExposedMetric(name, kind, words)
            for row, counts in counted:
                family.add(row.text, value_of(counts))
            yield family
    waiting = ExposedMetric(
        "trivium_generation_waiting", "gauge", "Requests in the queue of a model that generates"
    )
    first = ExposedMetric(
        "trivium_first_token_seconds", "histogram", "Time from a request to its first token"
    )
    between = ExposedMetric("trivium_between_tokens_seconds", "summary", "Time from a token to the next one")
    for row, counts in counted:
        waiting.add(row.text, row.counts.queued_items)
        first.add_histogram(row.text, counts.first_token.ns / 1e9, counts.first_token_buckets)
        between.add_summary(row.text, counts.between_tokens.count, counts.between_tokens.ns / 1e9, ())
    yield from (waiting, first, between)


def ignored_fields(counts: Mapping[str, int]) -> Iterator[ExposedMetric]:
    """Yield how many fields of requests had no effect, by the model that a request named; nothing where none had."""
    if not counts:
        return
    ignored = ExposedMetric(
        "trivium_ignored_fields_total", "counter", "Fields of requests to generate that had no effect"
    )
    for model, count in sorted(counts.items()):
        ignored.add(written({"model": model}), count)
    yield ignored
