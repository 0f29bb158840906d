"""Metrics of language models under vLLM's names, for gateways, autoscalers and dashboards that were made for it.

Source: vLLM's page "Production Metrics". All carry `model_name` and `engine`, which numbers the versions of a
model. What is not counted here is left out, and
so is what nobody can compare: a step of its engine.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from trivium.codecs.exposition import ExposedMetric, written
from trivium.types.generation import Finish
from trivium.types.metrics import Buckets
from trivium.types.statistics import GenerationStatistics, VersionStatistics
from trivium.wires.prometheus.triton import TritonMetric

_Value = Callable[[VersionStatistics, GenerationStatistics], float]
_NUMBERS: Sequence[tuple[str, str, str, _Value]] = (
    ("num_requests_running", "gauge", "Requests in the last step", lambda _, tokens: tokens.running),
    ("num_requests_waiting", "gauge", "Requests that wait for a slot", lambda all, _: all.queued_items),
    (
        "kv_cache_usage_perc",
        "gauge",
        "Share of the room for keys and values that is taken. 1 means 100 percent",
        lambda _, tokens: tokens.share,
    ),
    (
        "gpu_cache_usage_perc",
        "gauge",
        "The same under its name before vLLM 0.10",
        lambda _, tokens: tokens.share,
    ),
    (
        "prompt_tokens_total",
        "counter",
        "Tokens of prompts, those that were kept among them",
        lambda _, tokens: tokens.prompt_tokens + tokens.cached_tokens,
    ),
    (
        "prefix_cache_queries_total",
        "counter",
        "Tokens of prompts that were looked for among kept beginnings",
        lambda _, tokens: tokens.queried_tokens,
    ),
    (
        "prefix_cache_hits_total",
        "counter",
        "Tokens of prompts that were kept, and not read",
        lambda _, tokens: tokens.cached_tokens,
    ),
    ("generation_tokens_total", "counter", "Tokens that were generated", lambda _, tokens: tokens.new_tokens),
)
_Histogram = Callable[[VersionStatistics, GenerationStatistics], tuple[float, Buckets]]
_HISTOGRAMS: Sequence[tuple[str, str, _Histogram]] = (
    (
        "time_to_first_token_seconds",
        "Time from a request to its first token",
        lambda _, tokens: (tokens.first_token.ns / 1e9, tokens.first_token_buckets),
    ),
    (
        "inter_token_latency_seconds",
        "Time from a token to the next one; each counts as the mean of its request",
        lambda _, tokens: (tokens.between_tokens.ns / 1e9, tokens.between_buckets),
    ),
    (
        "time_per_output_token_seconds",
        "The same under its name before vLLM 0.11",
        lambda _, tokens: (tokens.between_tokens.ns / 1e9, tokens.between_buckets),
    ),
    (
        "e2e_request_latency_seconds",
        "Whole time of requests that succeeded",
        lambda all, _: (all.success.ns / 1e9, all.success_buckets),
    ),
    (
        "request_queue_time_seconds",
        "Time in the queue of requests that succeeded",
        lambda all, _: (all.queue.ns / 1e9, all.queue_wait_buckets),
    ),
    (
        "request_prompt_tokens",
        "Requests by the tokens of their prompts",
        lambda _, tokens: (tokens.prompt_tokens + tokens.cached_tokens, tokens.prompt_buckets),
    ),
    (
        "request_generation_tokens",
        "Requests by the tokens of their answers",
        lambda _, tokens: (tokens.new_tokens, tokens.answer_buckets),
    ),
)
_REASONS: Mapping[Finish, str] = {
    Finish.EOS: "stop",
    Finish.STOP: "stop",
    Finish.LENGTH: "length",
    Finish.CANCELLED: "abort",
    Finish.ERROR: "error",
}


def families(rows: Sequence[TritonMetric]) -> Iterator[ExposedMetric]:
    """Yield the families, of the versions that generate; none where there is no such version."""
    counted: list[tuple[Mapping[str, str], VersionStatistics, GenerationStatistics]] = []
    engines: Counter[str] = Counter()
    for row in rows:
        if row.counts.generation is None:
            continue
        model = row.counts.model
        counted.append(
            ({"model_name": model, "engine": str(engines[model])}, row.counts, row.counts.generation)
        )
        engines[model] += 1
    if not counted:
        return
    for name, kind, words, value_of in _NUMBERS:
        family = ExposedMetric(f"vllm:{name}", kind, words)
        for labels, counts, tokens in counted:
            family.add(written(labels), value_of(counts, tokens))
        yield family
    for name, words, histogram_of in _HISTOGRAMS:
        family = ExposedMetric(f"vllm:{name}", "histogram", words)
        for labels, counts, tokens in counted:
            family.add_histogram(written(labels), *histogram_of(counts, tokens))
        yield family
    ended = ExposedMetric(
        "vllm:request_success_total", "counter", "Requests that were answered, by why they ended"
    )
    for told, _, tokens in counted:
        for reason, count in _ended(tokens).items():
            ended.add(written({**told, "finished_reason": reason}), count)
    yield ended


def _ended(tokens: GenerationStatistics) -> Mapping[str, int]:
    found = dict.fromkeys(_REASONS.values(), 0)
    for finish, count in tokens.finishes.items():
        found[_REASONS[Finish(finish)]] += count
    return found
