"""What a language model's tokens cost: one request at a time, in our rolling batch, in transformers' own batching.

Every way runs the same seeded model and requests in a process of its own with one thread, and tells output tokens per
CPU-second, loading not counted. Rounds alternate the ways; a way's figure is the median of its ratios to `generate` in
the same round. Run alone, it writes `docs/benchmarks/llm.md`.
"""

import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import llm_server

ROUNDS, MOST_REPEATS = 3, 3
REQUESTS, SHORTEST, LONGEST = 32, 32, 96
SHARPENED = 16.0
"""Factor of the last layer's random weights: without it all words were about as likely, as in no real model."""

OUTLIER = 0.3
"""By how much a round's `generate` may differ from the median; one that differs more is run again."""

OWN_WAYS: dict[str, dict[str, str]] = {
    "ours 8": {"slots": "8"},
    "ours 32": {"slots": "32"},
    "ours 32, sampled": {"slots": "32"},
    "ours 32, no kept beginnings": {"slots": "32", "prefix_cache": "false"},
    "ours 32, the cache full": {"slots": "32"},
    "ours 32, bf16": {"slots": "32", "dtype": "bf16"},
    "ours 32, bitsandbytes8": {"slots": "32", "quantize": "bitsandbytes8"},
    "ours 32, bitsandbytes4": {"slots": "32", "quantize": "bitsandbytes4"},
    "ours 32, dynamic_int8": {"slots": "32", "quantize": "dynamic_int8"},
}
"""Way -> the engine's parameters."""

WAYS = ("generate", *OWN_WAYS, "continuous 32")
FILLED = 3
"""Rounds of other requests whose keys and values fill the cache before that way is measured."""

KEPT_BYTES = 2**28
"""Memory for keys and values of all ways of ours: room for all that run, and for as much again that is kept."""

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "llm.md"

Prompts = list[tuple[list[int], int]]


def prompts(seed: int = 25) -> Prompts:
    """Token ids of each request, and how many it shall get."""
    chance = random.Random(seed)
    return [
        (
            [chance.randrange(10, 31_000) for _ in range(chance.randint(SHORTEST, LONGEST))],
            chance.randint(SHORTEST, LONGEST),
        )
        for _ in range(REQUESTS)
    ]


def build(folder: Path, size: int = 640, layers: int = 13) -> None:
    """Write a model of the shape of a small Llama with about 100 million random weights (or fewer: the `size` of its
    hidden layers is a multiple of 160), and a tokenizer.
    """
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(25)
    config = LlamaConfig(
        vocab_size=32_000,
        hidden_size=size,
        intermediate_size=size * 27 // 10,
        num_hidden_layers=layers,
        num_attention_heads=size // 64,
        num_key_value_heads=size // 128,
        max_position_embeddings=2048,
        eos_token_id=None,
        bos_token_id=1,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        model.lm_head.weight *= SHARPENED
    model.save_pretrained(folder)
    words = {f"w{number}": number for number in range(32_000)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="w0").save_pretrained(folder)


def measured(work: Callable[[], int]) -> dict[str, float]:
    """Tokens that the work makes, and the CPU-seconds that it takes."""
    began = time.process_time()
    tokens = work()
    return {"tokens": tokens, "seconds": time.process_time() - began}


def by_generate(folder: Path) -> dict[str, float]:
    """One request after the other."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def work() -> int:
        made = 0
        with torch.inference_mode():
            for ids, count in prompts():
                given = torch.tensor([ids])
                mask = torch.ones_like(given)
                out = model.generate(
                    given, attention_mask=mask, max_new_tokens=count, do_sample=False, pad_token_id=0
                )
                made += out.shape[1] - len(ids)
        return made

    return measured(work)


def by_continuous(folder: Path) -> dict[str, float]:
    """By transformers' own manager, as many at once as there are."""
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig
    from transformers.generation import ContinuousBatchingConfig

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="sdpa"
    ).eval()
    settings = GenerationConfig(max_new_tokens=LONGEST, do_sample=False, eos_token_id=-1, pad_token_id=0)
    bounds = ContinuousBatchingConfig(num_blocks=64, max_batch_tokens=512, max_requests_per_batch=REQUESTS)

    def work() -> int:
        with model.continuous_batching_context_manager(
            generation_config=settings, continuous_batching_config=bounds, warmup=False
        ) as manager:
            for ids, count in prompts():
                manager.add_request(ids, max_new_tokens=count)
            made = ended = 0
            while ended < REQUESTS:
                result = manager.get_result(timeout=60)
                assert result is not None, "the manager has stopped"
                if result.is_finished():
                    ended += 1
                    made += len(result.generated_tokens)
        return made

    return measured(work)


def by_ours(folder: Path, way: str) -> dict[str, float]:
    """By the engine alone, without a server; `outside`: the part of its time that is not the forward pass; `bytes`:
    the most memory that the process held.
    """
    from msgspec.structs import replace

    from trivium.engines.hf.engine import ENGINE
    from trivium.types.generation import Generate, Generated, Sampling
    from trivium.types.operations import Infer
    from trivium.types.running import Placement
    from trivium.types.spec import Isolation, ModelSpec

    class Outlet:
        """Counts tokens and ends."""

        made = ended = 0

        def offer(self, item: int, part: Generated) -> None:
            self.made += sum(len(choice.ids) for choice in part.choices)

        def end(self, item: int, part: object) -> None:
            assert isinstance(part, Generated), f"a request ended with {part}"
            self.offer(item, part)
            self.ended += 1

        def wake(self) -> None:
            pass

    told = {"threads": "1", "dtype": "fp32", "max_context": "256", "kv_bytes": str(KEPT_BYTES)}
    parameters = told | OWN_WAYS[way]
    slots, samples = int(parameters["slots"]), "sampled" in way
    spec = ModelSpec("llm", "1", folder, "hf", ".", parameters=parameters)
    outlet = Outlet()
    runner = ENGINE.open_steps(spec, Placement("llm_0", Isolation.PROCESS), outlet)
    forward = timed_forward()
    plain = Sampling(ignores_eos=True, samples=False)
    varied = Sampling(
        ignores_eos=True, temperature=0.8, top_p=0.9, repetition_penalty=1.1, presence_penalty=0.1, seed=7
    )

    def work(seed: int = 25) -> int:
        made, first = outlet.made, outlet.ended + 1
        waiting = list(enumerate(prompts(seed), first))
        while outlet.ended < first - 1 + REQUESTS:
            while waiting and waiting[0][0] - 1 - outlet.ended < slots:
                number, (ids, count) = waiting.pop(0)
                sampling = varied if samples and number % 2 else plain
                told = Generate(ids=(tuple(ids),), sampling=replace(sampling, max_tokens=count))
                runner.add(number, Infer("llm", told))
            if runner.step() is None:
                time.sleep(0.0005)
        return outlet.made - made

    if "full" in way:
        for seed in range(FILLED):
            work(seed)
        forward["seconds"] = 0.0
    result = measured(work)
    runner.close()
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {**result, "outside": 1 - forward["seconds"] / result["seconds"], "bytes": held}


def timed_forward() -> dict[str, float]:
    """Have the forward pass of causal models add its CPU-seconds to what is returned."""
    from transformers import LlamaForCausalLM

    plain, spent = LlamaForCausalLM.forward, {"seconds": 0.0}

    def forward(self: object, *arguments: object, **named: object) -> object:
        began = time.thread_time()
        try:
            return plain(self, *arguments, **named)
        finally:
            spent["seconds"] += time.thread_time() - began

    LlamaForCausalLM.forward = forward
    return spent


def run_way(way: str, folder: Path) -> dict[str, float]:
    """One way, in this process."""
    if way == "generate":
        return by_generate(folder)
    if way.startswith("continuous"):
        return by_continuous(folder)
    return by_ours(folder, way)


def in_child(way: str, folder: Path) -> dict[str, float]:
    """One way, in a process of its own."""
    command = [sys.executable, "-m", "bench.llm", way, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def rounds(folder: Path) -> Iterator[dict[str, dict[str, float]]]:
    """Rounds whose `generate` is near the median of those so far."""
    rates: list[float] = []
    repeats = 0
    while len(rates) < ROUNDS:
        found = {way: in_child(way, folder) for way in WAYS}
        rate = found["generate"]["tokens"] / found["generate"]["seconds"]
        if rates and abs(rate / statistics.median(rates) - 1) > OUTLIER and repeats < MOST_REPEATS:
            repeats += 1
            continue
        rates.append(rate)
        yield found


def report(found: list[dict[str, dict[str, float]]]) -> str:
    """Return the page."""
    method = (
        f"{REQUESTS} requests with prompts and answers of {SHORTEST} to {LONGEST} tokens, 100 million random weights "
        "in fp32, one thread, each way in a process of its own. Output tokens per CPU-second, loading not counted; "
        f"ratios are those of the same round, the median of {len(found)} rounds and in brackets the extremes. "
        "`make bench-llm` runs it."
    )
    lines = [
        "# What a language model's tokens cost",
        "",
        *textwrap.wrap(method, 120),
        "",
        "| way | tokens per CPU-second | ratio to `generate` | outside the forward pass | most memory |",
        "|---|---|---|---|---|",
    ]
    for way in WAYS:
        rates = [one[way]["tokens"] / one[way]["seconds"] for one in found]
        ratios = [
            rate / (one["generate"]["tokens"] / one["generate"]["seconds"])
            for rate, one in zip(rates, found, strict=True)
        ]
        outside = [one[way]["outside"] for one in found if "outside" in one[way]]
        share = f"{statistics.median(outside):.0%}" if outside else ""
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        held = [one[way]["bytes"] for one in found if "bytes" in one[way]]
        most = f"{statistics.median(held) / 1e9:.2f} GB" if held else ""
        lines.append(f"| {way} | {statistics.median(rates):.0f} | {spread} | {share} | {most} |")
    ours = [one["ours 32"]["tokens"] / one["ours 32"]["seconds"] for one in found]
    theirs = [one["continuous 32"]["tokens"] / one["continuous 32"]["seconds"] for one in found]
    beside = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    lines += [
        "",
        f"With 32 running ours makes {beside:.2f} times the tokens of transformers' own batching per CPU-second.",
        "`generate` is transformers' own, one request after the other. In the sampled way every second request draws",
        "with temperature, top-p and two penalties.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print and write the page; or run one way and print what it came to."""
    if len(sys.argv) == 3:
        print(json.dumps(run_way(sys.argv[1], Path(sys.argv[2]))))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder)
        found = []
        for one in rounds(folder):
            found.append(one)
            print({way: round(told["tokens"] / told["seconds"], 1) for way, told in one.items()}, flush=True)
        tiny = folder / llm_server.NAME
        tiny.mkdir()
        build(tiny, 128, 2)
        costs = llm_server.measure(folder)
    page = report(found) + "\n" + "\n".join(llm_server.told(costs)) + "\n"
    PAGE.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
