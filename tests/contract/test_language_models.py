"""Greedy tokens of tiny language models: those of `generate`, alone and with requests that join and leave."""

import pytest
from tests.harness import language_models
from tests.harness.generate_reference import compare, generated
from tests.harness.language_models import SERVED, Steps, kv_bytes, text, write

from trivium.engines.hf import pool
from trivium.types.generation import Finish, Sampling

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

ALL_PROMPTS = ("llama", "qwen2", "gemma3", "mixtral", "gpt2")
"""The shapes of which all prompts are tried, of the others a part."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}

    def folder(kind):
        if kind not in made:
            made[kind] = write(tmp_path_factory.mktemp(kind), kind)
        return made[kind]

    return folder


def requests(count, times=1):
    """Prompts of 5 to 300 tokens, and answers of 4 to 40, or some times as many."""
    return [
        {
            "prompts": (text(i, 20 + (i * 53) % 180 + (700 if i % 16 == 5 else 0)),),
            "sampling": Sampling(max_tokens=(4 + i * 7 % 37) * times),
        }
        for i in range(count)
    ]


@pytest.mark.parametrize("kind", SERVED)
def test_greedy_tokens_are_those_of_generate(folders, kind):
    told = requests(64 if kind in ALL_PROMPTS else 16)
    folder = folders(kind)
    reference = generated(folder, told)
    gaps = sorted(gap for _, gaps in reference for gap in gaps)
    assert gaps[len(gaps) // 2] >= 0.1, "the model's tokens are decided, as those of a trained one"
    with Steps(folder, slots=8, prefill_chunk=48) as steps:
        items = []
        for i, request in enumerate(told):
            items.append(steps.add(**request))
            for _ in range(i % 3):
                steps.step()
            while steps.runner.debug_state()["free"] == 0:
                steps.step()
        steps.run()
        compare([steps.answer(item) for item in items], reference)
        assert steps.runner.debug_state() == {"unread": 0, "requests": 0, "free": 8}
        assert max(report.rows for report in steps.reports) > 4, "they run together"
        assert all(report.rows + report.prompt_tokens <= 8 + 48 for report in steps.reports)
        used = sum(steps.answer(item).usage.prompt_tokens for item in items)
        assert sum(report.prompt_tokens + report.cached_tokens for report in steps.reports) == used
        new = sum(steps.answer(item).usage.new_tokens for item in items)
        assert sum(report.new_tokens for report in steps.reports) == new
        few = slice(None, None, 8)
        compare([steps.answers([request])[0] for request in told[few]], reference[few])


def test_a_model_with_one_slot_serves_one_after_the_other(folders):
    told = requests(4)
    with Steps(folders("llama"), slots=1) as steps:
        compare(steps.answers(told), generated(folders("llama"), told))


@pytest.mark.parametrize(
    ("kind", "is_pool"),
    [
        *((kind, False) for kind in SERVED),
        *((kind, True) for kind in ("llama", "mistral", "gpt2", "deepseek_v3")),
    ],
)
def test_tokens_are_those_of_generate_where_memory_is_for_few(folders, monkeypatch, kind, is_pool):
    """Requests wait for memory, and are computed again; in slots, and in a pool as that of a GPU."""
    monkeypatch.setattr(pool, "can_map", lambda size: not is_pool)
    told = requests(24, times=3)
    folder = folders(kind)
    with Steps(folder, slots=8, prefill_chunk=48, kv_bytes=kv_bytes(folder, 448)) as steps:
        items = []
        for request in told:
            items.append(steps.add(**request))
            while steps.runner.debug_state()["free"] == 0 or steps.runner.debug_state()["requests"] >= 8:
                steps.step()
        steps.run()
        compare([steps.answer(item) for item in items], generated(folder, told))
        assert steps.runner.debug_state() == {"unread": 0, "requests": 0, "free": 8}
        assert all(report.share <= 1 for report in steps.reports)
        assert steps.reports[-1].share == 0
        assert {report.room for report in steps.reports} == {kv_bytes(folder, 448)}
        assert sum(report.wasted_tokens for report in steps.reports) > 0, "some were computed again"
        used = sum(steps.answer(item).usage.prompt_tokens for item in items)
        assert sum(report.prompt_tokens + report.cached_tokens for report in steps.reports) == used


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_other_data_types_answer(folders, dtype):
    with Steps(folders("llama"), slots=2, dtype=dtype) as steps:
        (answer,) = steps.answers(requests(1))
    assert answer.choices[0].finish in (Finish.LENGTH, Finish.EOS)


def test_prompts_as_tokens_and_as_embeddings_answer_alike(folders):
    folder = folders("llama")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    ids = tuple(language_models.tokenizer()(text(1, 200))["input_ids"])
    rows = model.get_input_embeddings()(torch.tensor(ids)).detach()
    embeds = language_models.embeddings(rows.numpy())
    with Steps(folder, slots=4, prefill_chunk=16) as steps:
        by_ids, by_rows = steps.answers(
            {"sampling": Sampling(max_tokens=20), **prompt}
            for prompt in ({"ids": (ids,)}, {"embeds": embeds})
        )
    assert by_ids.choices[0].ids == by_rows.choices[0].ids
    assert by_ids.usage.prompt_tokens == by_rows.usage.prompt_tokens == len(ids)


def test_choices_and_prompts_of_one_request_are_those_of_many(folders):
    prompts = tuple(text(i, 60 + 50 * i) for i in range(3))
    sampling = Sampling(max_tokens=12, choices=3, temperature=0.9, seed=5)
    with Steps(folders("llama"), slots=4) as steps:
        (whole,) = steps.answers([{"prompts": prompts, "sampling": sampling}])
        greedy = steps.answers({"prompts": (one,), "sampling": Sampling(max_tokens=12)} for one in prompts)
        (together,) = steps.answers([{"prompts": prompts, "sampling": Sampling(max_tokens=12, choices=2)}])
        assert steps.runner.debug_state()["free"] == 4
    assert [choice.index for choice in whole.choices] == list(range(9))
    assert len({choice.ids for choice in whole.choices}) == 9, "each choice draws its own numbers"
    assert [one.choices[0].ids for one in greedy for _ in range(2)] == [one.ids for one in together.choices]
    assert together.usage.prompt_tokens == sum(one.usage.prompt_tokens for one in greedy)


def test_a_slot_that_was_lent_is_given_back_and_its_sequence_goes_on_later(folders):
    sampling = Sampling(max_tokens=30, choices=4, temperature=1.0, seed=3)
    with Steps(folders("llama"), slots=4) as steps:
        (alone,) = steps.answers([{"prompts": (text(1, 100),), "sampling": sampling}])
        steps.reports.clear()
        first = steps.add(prompts=(text(1, 100),), sampling=sampling)
        for _ in range(8):
            steps.step()
        others = [steps.add(prompts=(text(i, 50),), sampling=Sampling(max_tokens=5)) for i in range(3)]
        steps.settled(4)
        assert all(item in steps.ends for item in others), (
            "they did not wait for the many choices of the first"
        )
        steps.run()
        assert [one.ids for one in steps.answer(first).choices] == [one.ids for one in alone.choices]
        used = sum(steps.answer(item).usage.prompt_tokens for item in (first, *others))
        assert sum(report.prompt_tokens + report.cached_tokens for report in steps.reports) == used
        assert sum(report.wasted_tokens for report in steps.reports) > 0, "some was read a second time"
        assert steps.runner.debug_state()["free"] == 4


def test_the_best_are_answered_and_the_others_are_wasted(folders):
    sampling = Sampling(max_tokens=10, choices=2, best_of=5, temperature=1.5, seed=1, logprobs=0)
    with Steps(folders("llama"), slots=3) as steps:
        (best,) = steps.answers([{"prompts": (text(1, 100),), "sampling": sampling}])
        wasted = sum(report.wasted_tokens for report in steps.reports)
        everything = Sampling(max_tokens=10, choices=5, temperature=1.5, seed=1, logprobs=0)
        (whole,) = steps.answers([{"prompts": (text(1, 100),), "sampling": everything}])
    scores = sorted(
        (sum(token.logprob for token in one.tokens) / len(one.tokens), one.ids) for one in whole.choices
    )
    assert [one.ids for one in best.choices] == [ids for _, ids in scores[:-3:-1]]
    assert best.usage.new_tokens == whole.usage.new_tokens
    assert wasted == whole.usage.new_tokens - sum(len(one.ids) for one in best.choices)


def test_long_prompts_among_running_requests_leave_each_its_token(tmp_path):
    folder = write(tmp_path, "llama", max_position_embeddings=4096)
    with Steps(folder, slots=8, prefill_chunk=256) as steps:
        running = [
            steps.add(ids=((5 + i, 6, 7),), sampling=Sampling(max_tokens=150, ignores_eos=True), streams=True)
            for i in range(4)
        ]
        for _ in range(6):
            steps.step()
        before = {item: len(steps.parts[item]) for item in running}
        for i in range(4):
            ids = tuple(5 + (i + 1) * k % 700 for k in range(2000))
            steps.add(ids=(ids,), sampling=Sampling(max_tokens=20, ignores_eos=True))
        for _ in range(40):
            steps.step()
        assert {len(steps.parts[item]) - before[item] for item in running} == {40}
        assert max(report.rows + report.prompt_tokens for report in steps.reports) <= 8 + 256
        steps.run()
        assert steps.runner.debug_state() == {"unread": 0, "requests": 0, "free": 8}
