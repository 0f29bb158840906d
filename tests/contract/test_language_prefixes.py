"""Beginnings that are kept: each token of a conversation is computed once, and answers are those without them."""

import pytest
from tests.harness.generate_reference import compare, generated
from tests.harness.language_models import SERVED, Steps, embeddings, kv_bytes, text, tokenizer, write

from trivium.engines.hf import pool
from trivium.types.errors import ServeError
from trivium.types.generation import Sampling

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

POOLED = ("llama", "mistral", "gemma3", "gpt2", "deepseek_v3")
"""Shapes that are tried in a pool as well: that of a GPU."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}

    def folder(kind):
        if kind not in made:
            made[kind] = write(tmp_path_factory.mktemp(kind), kind)
        return made[kind]

    return folder


@pytest.fixture(params=[True, False], ids=["slots", "pool"])
def folder(request, monkeypatch, folders):
    """A folder, whose model is tried with both kinds of storage."""
    monkeypatch.setattr(pool, "can_map", lambda size: request.param)
    return folders("llama")


def ids_of(start, length):
    return tuple(tokenizer()(text(start, length * 8))["input_ids"][:length])


def greedy(ids, tokens=12, **others):
    return {"ids": (ids,), "sampling": Sampling(max_tokens=tokens, ignores_eos=True)} | others


def asked(ids, tokens=12):
    """As `generate` takes it: it ends with the model's own end."""
    return {"ids": (ids,), "sampling": Sampling(max_tokens=tokens)}


def only(answer):
    (choice,) = answer.choices
    return choice.ids


def conversations(steps, turns, requests, most=18, said=17):
    """Hold conversations side by side, each of which begins with the same words; all that was asked, and the answers.
    One whose turn it is goes on with what it was answered.
    """
    shared = ids_of(1, 40)
    histories = [shared + ids_of(2 + number, 5 + 9 * number) for number in range(requests)]
    told, answers = [], []
    for turn in range(turns):
        turns_told = [asked(history, most - 5 * turn % 13) for history in histories]
        found = steps.answers(turns_told)
        told += turns_told
        answers += found
        histories = [
            history + only(answer) + ids_of(20 + turn * requests + number, said)
            for number, (history, answer) in enumerate(zip(histories, found, strict=True))
        ]
    return told, answers


@pytest.mark.parametrize(
    ("kind", "is_pool"), [*((kind, False) for kind in SERVED), *((kind, True) for kind in POOLED)]
)
def test_conversations_answer_as_generate_does(folders, monkeypatch, kind, is_pool):
    monkeypatch.setattr(pool, "can_map", lambda size: not is_pool)
    with Steps(folders(kind), slots=4, prefill_chunk=32) as steps:
        told, answers = conversations(steps, turns=4, requests=3)
        compare(answers, generated(folders(kind), told))
        later = answers[3:]
        assert all(answer.usage.cached_tokens >= 40 for answer in later)
        reports = steps.reports
        used = sum(answer.usage.prompt_tokens for answer in answers)
        assert sum(report.queried_tokens for report in reports) == used
        cached = sum(answer.usage.cached_tokens for answer in answers)
        assert sum(report.cached_tokens for report in reports) == cached
        assert sum(report.prompt_tokens for report in reports) == used - cached
        assert steps.runner.debug_state() == {"unread": 0, "requests": 0, "free": 4}


@pytest.mark.parametrize(
    ("kind", "is_pool"), [*((kind, False) for kind in SERVED), *((kind, True) for kind in POOLED)]
)
def test_conversations_answer_as_generate_does_where_memory_is_for_few(folders, monkeypatch, kind, is_pool):
    """What is kept goes, what a request begins with among it; who is computed again begins with what there is."""
    monkeypatch.setattr(pool, "can_map", lambda size: not is_pool)
    folder = folders(kind)
    with Steps(folder, slots=6, prefill_chunk=32, kv_bytes=kv_bytes(folder, 384)) as steps:
        told, answers = conversations(steps, turns=3, requests=6, most=75)
        compare(answers, generated(folder, told))
        assert all(report.share <= 1 for report in steps.reports)
        assert sum(report.cached_tokens for report in steps.reports) > 0
        assert steps.reports[-1].share == 0


def test_a_chat_of_ten_turns_computes_each_token_once(folder):
    history = ids_of(1, 12)
    before = 1
    with Steps(folder, slots=2) as steps:
        for turn in range(10):
            (answer,) = steps.answers([greedy(history, 9)])
            assert answer.usage.cached_tokens == before - 1, (
                "the last token of an answer is not computed with it"
            )
            before = len(history) + 9
            history += only(answer) + ids_of(30 + turn, 10)
        read = sum(report.prompt_tokens for report in steps.reports)
        rows = sum(report.rows for report in steps.reports)
        assert read + rows == before - 1
        assert not sum(report.wasted_tokens for report in steps.reports)


def test_a_chat_that_fills_more_than_half_of_the_memory_begins_with_what_it_had(folder):
    history = ids_of(1, 150)
    with Steps(folder, slots=2, kv_bytes=kv_bytes(folder, 256)) as steps:
        (first,) = steps.answers([greedy(history, 20)])
        history += only(first) + ids_of(3, 10)
        (second,) = steps.answers([greedy(history, 20)])
        assert second.usage.cached_tokens == 169, "there is no room for it twice: it goes into the slot"
        history += only(second) + ids_of(4, 10)
        (third,) = steps.answers([greedy(history, 20)])
        assert third.usage.cached_tokens == 199
    with Steps(folder, slots=2, prefix_cache="false") as steps:
        assert only(steps.answers([greedy(history, 20)])[0]) == only(third)


def test_a_prompt_that_comes_again_computes_its_last_token_alone(folder):
    prompt = ids_of(1, 70)
    with Steps(folder, slots=2) as steps:
        first, again = (steps.answers([greedy(prompt)])[0] for _ in range(2))
        assert (first.usage.cached_tokens, again.usage.cached_tokens) == (0, 69)
        assert only(first) == only(again)
        (shorter,) = steps.answers([greedy(prompt[:50])])
        assert shorter.usage.cached_tokens == 49


def test_without_a_prefix_cache_nothing_is_kept(folder):
    prompt = ids_of(1, 70)
    with Steps(folder, slots=2, prefix_cache="false") as steps:
        for _ in range(2):
            (answer,) = steps.answers([greedy(prompt)])
            assert answer.usage.cached_tokens == 0
        assert not any(report.queried_tokens or report.cached_tokens for report in steps.reports)


def test_choices_of_one_prompt_begin_with_what_is_kept_once(folder):
    prompt = ids_of(1, 70)
    drawn = {"ids": (prompt,), "sampling": Sampling(max_tokens=12, choices=3, temperature=0.9, seed=4)}
    with Steps(folder, slots=4, prefix_cache="false") as steps:
        (expected,) = steps.answers([drawn])
    with Steps(folder, slots=4) as steps:
        steps.answers([greedy(prompt)])
        (found,) = steps.answers([drawn])
        assert found.usage.cached_tokens == 69
        assert {one.index: one.ids for one in found.choices} == {
            one.index: one.ids for one in expected.choices
        }
        assert steps.runner.debug_state()["free"] == 4


def test_nothing_is_found_with_another_salt(folder):
    prompt = ids_of(1, 70)
    with Steps(folder, slots=2) as steps:
        cached = [
            steps.answers([greedy(prompt, cache_salt=salt)])[0].usage.cached_tokens
            for salt in ("", "a", "b", "a", "")
        ]
    assert cached == [0, 0, 0, 69, 69]


def test_a_prompt_that_is_scored_is_read_whole(folder):
    scored = greedy(ids_of(1, 70), 2, scores_prompts=True, echoes=True)
    scored["sampling"] = Sampling(max_tokens=2, logprobs=0)
    with Steps(folder, slots=2, prefix_cache="false") as steps:
        (expected,) = steps.answers([scored])
    with Steps(folder, slots=2) as steps:
        steps.answers([greedy(ids_of(1, 70))])
        (found,) = steps.answers([scored])
        assert found.usage.cached_tokens == 0
        pairs = zip(found.choices[0].tokens, expected.choices[0].tokens, strict=True)
        assert all(one.id == other.id for one, other in pairs)
        assert [one.logprob for one in found.choices[0].tokens][1:] == pytest.approx(
            [one.logprob for one in expected.choices[0].tokens][1:], abs=1e-4
        )
        (after,) = steps.answers([greedy(ids_of(1, 71))])
        assert after.usage.cached_tokens == 70


def test_embeddings_are_neither_kept_nor_found(folder):
    rows = torch.zeros(40, 64).numpy()
    with Steps(folder, slots=2) as steps:
        for _ in range(2):
            (answer,) = steps.answers([{"embeds": embeddings(rows), "sampling": Sampling(max_tokens=5)}])
            assert answer.usage.cached_tokens == 0
        (answer,) = steps.answers([greedy((0,) * 40)])
        assert answer.usage.cached_tokens == 0


def test_what_was_cancelled_is_kept_as_far_as_it_came(folder):
    prompt = ids_of(1, 70)
    with Steps(folder, slots=2, prefill_chunk=16) as steps:
        item = steps.add(**greedy(prompt, 400))
        steps.step()
        steps.step()
        assert steps.runner.abort(item) == 32
        (answer,) = steps.answers([greedy(prompt)])
        assert answer.usage.cached_tokens == 32
        item = steps.add(**greedy(prompt))
        steps.step()
        assert steps.runner.abort(item) == 2, "what was there has cost nothing"


def test_nothing_of_a_request_that_failed_is_kept(folder, monkeypatch):
    prompt = ids_of(1, 70)
    with Steps(folder, slots=2) as steps:
        item = steps.add(**greedy(prompt))
        steps.step()
        with monkeypatch.context() as patch:
            forward = torch.nn.Linear.forward
            patch.setattr(torch.nn.Linear, "forward", lambda own, x: forward(own, x) * torch.nan)
            steps.run()
        assert isinstance(steps.ends[item], ServeError)
        (answer,) = steps.answers([greedy(prompt)])
        assert answer.usage.cached_tokens == 0


def test_nothing_outlives_a_reset(folder):
    prompt = ids_of(1, 70)
    with Steps(folder, slots=2) as steps:
        steps.answers([greedy(prompt)])
        steps.runner.reset()
        (answer,) = steps.answers([greedy(prompt)])
        assert answer.usage.cached_tokens == 0


def test_a_running_request_is_given_the_memory_of_what_is_kept(folder):
    with Steps(folder, slots=2, kv_bytes=kv_bytes(folder, 256)) as steps:
        for number in range(5):
            steps.answers([greedy(ids_of(number, 60))])
        (answer,) = steps.answers([greedy(ids_of(9, 10), 240)])
        assert len(only(answer)) == 240
        assert not sum(report.wasted_tokens for report in steps.reports)
        (again,) = steps.answers([greedy(ids_of(4, 60))])
        assert again.usage.cached_tokens == 0, "it has gone"


def test_more_conversations_than_are_kept_go_on(folder):
    """What has not been used for longest goes."""
    with Steps(folder, slots=32, kv_bytes=kv_bytes(folder, 8192)) as steps:
        prompts = [(5 + number // 100, 5 + number % 100) * 10 for number in range(140)]
        expected = [only(answer) for answer in steps.answers([greedy(ids, 2) for ids in prompts])]
        last = steps.answers([greedy(ids, 2) for ids in prompts[-20:]])
        assert all(answer.usage.cached_tokens == 19 for answer in last)
        assert [only(answer) for answer in last] == expected[-20:]
