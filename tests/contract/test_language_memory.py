"""Memory for keys and values: taken as tokens come, given back at the end, and within its budget whatever is asked."""

import random

import psutil
import pytest
from tests.harness.language_models import Steps, embeddings, kv_bytes, text, write

from trivium.engines.hf import pool
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Sampling

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

TOKENS = 256
"""What the small budget holds: eight blocks."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("memory"), "llama")


@pytest.fixture(params=[True, False], ids=["slots", "pool"])
def bound(request, monkeypatch, folder):
    """The small budget, in both kinds of storage: that of a processor, and that of a GPU."""
    monkeypatch.setattr(pool, "can_map", lambda size: request.param)
    return kv_bytes(folder, TOKENS)


def drawn(number, **others):
    """A request of up to 110 tokens, which draws."""
    told = {
        "max_tokens": 30 + number * 11 % 50,
        "temperature": 0.9,
        "seed": number,
        "ignores_eos": True,
        "repetition_penalty": (None, 1.3)[number % 2],
    }
    ids = tuple(5 + (number + 3) * k % 700 for k in range(4 + number * 17 % 50))
    return {"ids": (ids,), "sampling": Sampling(**told | others), "streams": number % 3 == 0}


def test_who_is_computed_again_draws_the_same_and_is_sent_each_token_once(folder, bound):
    told = [drawn(number) for number in range(12)]
    with Steps(folder, slots=6) as steps:
        expected = [answer.choices for answer in steps.answers(told)]
        assert not sum(report.wasted_tokens for report in steps.reports)
    with Steps(folder, slots=6, prefill_chunk=16, kv_bytes=bound) as steps:
        found = steps.answers(told)
        assert [answer.choices for answer in found] == expected
        assert sum(report.wasted_tokens for report in steps.reports) > 0, "some were computed again"
        assert max(report.share for report in steps.reports) > 0.8
        assert steps.reports[-1].share == 0
        new = sum(answer.usage.new_tokens for answer in found)
        assert sum(report.new_tokens for report in steps.reports) == new


def test_choices_of_one_request_share_the_memory_that_there_is(folder, bound):
    told = [drawn(number, choices=4, max_tokens=60) for number in range(4)]
    with Steps(folder, slots=6) as steps:
        expected = [by_index(answer) for answer in steps.answers(told)]
    with Steps(folder, slots=6, kv_bytes=bound) as steps:
        assert [by_index(answer) for answer in steps.answers(told)] == expected
        assert all(report.share <= 1 for report in steps.reports)
        assert steps.runner.debug_state()["free"] == 6


def by_index(answer):
    return sorted((choice.index, choice.ids) for choice in answer.choices)


def test_one_that_alone_exceeds_the_budget_is_refused_with_both_numbers(folder, bound):
    with Steps(folder, slots=4, kv_bytes=bound) as steps:
        good = steps.add(ids=((5,) * 100,), sampling=Sampling(max_tokens=156))
        asks, long = (
            steps.add(ids=((5,) * 100,), sampling=Sampling(max_tokens=157)),
            steps.add(ids=((5,) * 256,)),
        )
        steps.run()
        assert steps.answer(good).usage
        asked, said = (steps.ends[item] for item in (asks, long))
    assert isinstance(asked, ServeError)
    assert isinstance(said, ServeError)
    assert asked.code is said.code is Code.INVALID
    per_token = bound // TOKENS
    assert asked.message == (
        f"Model 'm': 'max_tokens' is 157: with a prompt of 100 tokens keys and values are {257 * per_token} bytes, and "
        f"the model has {bound} for them, which is 256 tokens of prompt and answer. Expected at most 156, or a model "
        "with a greater 'kv_bytes'."
    )
    assert said.reason == reasons.TOO_LONG
    assert f"'input_ids' has 256 tokens, whose keys and values are {257 * per_token} bytes" in said.message
    assert "maximum context length is 256 tokens" in said.message
    assert f"is {bound} bytes" in said.message


def test_one_without_a_maximum_reserves_a_block_and_ends_with_the_budget(folder, bound):
    endless = {"ids": ((5, 6, 7),), "sampling": Sampling(ignores_eos=True)}
    with Steps(folder, slots=4, kv_bytes=bound) as steps:
        items = [steps.add(**endless) for _ in range(4)]
        steps.step()
        steps.step()
        assert steps.reports[-1].rows == 4, "all run at once, though each may come to fill the budget"
        steps.run()
        for item in items:
            (choice,) = steps.answer(item).choices
            assert (choice.finish, len(choice.ids)) == (Finish.LENGTH, TOKENS - 3)


def test_who_leaves_while_it_waits_for_memory_keeps_nobody_waiting(folder, bound):
    with Steps(folder, slots=4, kv_bytes=bound) as steps:
        large = {"sampling": Sampling(max_tokens=60, ignores_eos=True)}
        first = steps.add(ids=((5,) * 150,), **large)
        steps.step()
        gone = steps.add(ids=((6,) * 150,), **large)
        last = steps.add(ids=((7,) * 20,), **large)
        for _ in range(5):
            steps.step()
        assert steps.reports[-1].rows == 1, "the second waits for memory, and the third behind it"
        assert steps.runner.abort(gone) == 0
        for _ in range(2):
            steps.step()
        assert steps.reports[-1].rows == 2
        steps.run()
        assert steps.answer(first).usage.new_tokens == steps.answer(last).usage.new_tokens == 60


def computed_again(steps, told):
    """Add requests, and step until one of them is being computed again."""
    items = [steps.add(**one) for one in told]
    while not any(report.wasted_tokens for report in steps.reports):
        assert steps.step() is not None
    return items


def long_ones(count):
    return [drawn(number, max_tokens=120) for number in range(count)]


def test_who_leaves_while_it_is_computed_again_leaves_nothing(folder, bound):
    told = long_ones(4)
    with Steps(folder, slots=4) as steps:
        expected = [answer.choices for answer in steps.answers(told)]
    for left in range(4):
        with Steps(folder, slots=4, prefill_chunk=8, kv_bytes=bound) as steps:
            items = computed_again(steps, told)
            steps.runner.abort(items[left])
            steps.run()
            stay = [number for number in range(4) if number != left and items[number] in steps.ends]
            assert len(stay) >= 3
            assert all(steps.answer(items[number]).choices == expected[number] for number in stay)
            assert steps.runner.debug_state() == {"unread": 0, "requests": 0, "free": 4}


def test_a_step_that_raises_while_one_is_computed_again_is_followed_by_a_fresh_start(
    folder, bound, monkeypatch
):
    told = long_ones(4)
    with Steps(folder, slots=4, prefill_chunk=8, kv_bytes=bound) as steps:
        computed_again(steps, told)
        with monkeypatch.context() as patch:
            patch.setattr(torch.nn.Embedding, "forward", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                steps.step()
        steps.runner.reset()
        steps.reports.clear()
        assert len(steps.answers(told)) == 4
        assert steps.reports[-1].share == 0


def test_no_number_that_is_none_reaches_who_gets_the_memory_next(folder, bound):
    """The pool is as it comes from the system, and a request that failed leaves such numbers."""
    dirty = torch.full((4, 2**20), torch.nan)
    del dirty
    rows = torch.full((100, 64), torch.nan).numpy()
    good = {"prompts": (text(2, 150),), "sampling": Sampling(max_tokens=20)}
    with Steps(folder, slots=2, prefill_chunk=16, kv_bytes=bound) as steps:
        (expected,) = steps.answers([good])
        for _ in range(4):
            bad = [steps.add(embeds=embeddings(rows)) for _ in range(2)]
            steps.run()
            assert all("no numbers" in steps.ends[item].message for item in bad)
            assert [one.choices for one in steps.answers([good, good])] == [expected.choices] * 2


WIDE = {"num_key_value_heads": 2, "head_dim": 512, "max_position_embeddings": 2048}
"""Keys and values of 16 KiB for each token, which cost little to compute."""


def taken() -> int:
    return psutil.Process().memory_info().rss


def served(folder, count, prefix_cache):
    """Serve mixed requests, some of which leave; the bytes held at most and at the end, beyond those of a warm-up."""
    chance = random.Random(7)
    budget = kv_bytes(folder, 3072)
    with Steps(folder, slots=16, kv_bytes=budget, prefix_cache=prefix_cache) as steps:
        steps.answers([drawn(number) for number in range(16)])
        warm = most = taken()
        waiting = {}
        for number in range(count):
            ids = tuple(chance.randrange(5, 700) for _ in range(chance.choice((5, 40, 300, 1200))))
            most_new = chance.choice((None, 1, 8, 30))
            sampling = Sampling(max_tokens=most_new, choices=chance.choice((1, 1, 1, 3)), seed=number)
            item = steps.add(ids=(ids,), sampling=sampling)
            waiting[item] = chance.randint(3, 30) if most_new is None or number % 9 == 0 else 10_000
            while steps.runner.debug_state()["requests"] + steps.runner.debug_state()["unread"] >= 16:
                steps.step()
                for one in list(waiting):
                    waiting[one] -= 1
                    if one in steps.ends or waiting[one] <= 0:
                        del waiting[one]
                        steps.runner.abort(one)
            most = max(most, taken())
        for one in waiting:
            steps.runner.abort(one)
        steps.run()
        assert all(report.share <= 1 for report in steps.reports)
        assert max(report.share for report in steps.reports) > 0.7, "the budget is made use of"
        return budget, most - warm, taken() - warm


@pytest.mark.parametrize("prefix_cache", [True, False])
@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.soak)])
def test_memory_stays_within_the_budget_and_goes_back(tmp_path, count, prefix_cache):
    budget, most, left = served(write(tmp_path, "llama", **WIDE), count, prefix_cache)
    assert most <= budget + 300 * 10**6
    assert left <= (budget if prefix_cache else 0) + 100 * 10**6


def test_addresses_take_no_memory_until_tokens_come(tmp_path):
    folder = write(tmp_path, "llama", **WIDE)
    before = taken()
    with Steps(folder, slots=64, kv_bytes=kv_bytes(folder, 64 * 2048)) as steps:
        assert taken() - before < 200 * 10**6, "64 slots of 2048 tokens would take 2 GB"
        steps.answers([drawn(1)])
