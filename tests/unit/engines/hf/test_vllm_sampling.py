"""What vLLM is asked for by a request's sampling, and how its scores are read."""

from types import SimpleNamespace

import pytest

from trivium.engines.hf.vllm.sampling import judge_sampling, sampling_arguments
from trivium.engines.hf.vllm.sequences import chosen, scored
from trivium.types.errors import ServeError
from trivium.types.generation import Embeddings, Generate, Sampling


def asked(room=10, number=0, is_scored=False, **fields):
    return sampling_arguments(Sampling(**fields), room, number, is_scored, {1})


def test_who_says_nothing_gets_the_likeliest_tokens():
    found = asked()
    assert found["temperature"] == 0.0
    assert (found["max_tokens"], found["min_tokens"]) == (10, 0)
    assert found["seed"] is found["logprobs"] is found["prompt_logprobs"] is found["logit_bias"] is None
    assert "top_k" not in found


def test_draws_have_all_that_was_asked_for():
    found = asked(samples=True, temperature=0.7, top_k=-1, top_p=0.9, min_p=0.1, seed=5, number=2)
    assert (found["temperature"], found["top_k"], found["top_p"], found["min_p"]) == (0.7, 0, 0.9, 0.1)
    assert found["seed"] == 7, "each sequence has draws of its own"


def test_any_seed_is_one_of_vllms():
    assert asked(seed=-1)["seed"] == 2**63 - 1
    assert 0 <= asked(seed=2**64 - 1, number=3)["seed"] < 2**63


def test_ends_are_stop_tokens_unless_they_are_ignored():
    assert asked(stop_ids=(9,))["stop_token_ids"] == [1, 9]
    assert asked(stop_ids=(9,), ignores_eos=True)["stop_token_ids"] == [9]
    assert asked()["ignore_eos"], "the end is among the stop tokens, and not known to vLLM by itself"


def test_the_minimum_is_within_the_room():
    assert asked(room=3, min_tokens=8)["min_tokens"] == 3


def test_a_prompt_that_is_scored_alone_has_one_token_that_nobody_gets():
    found = asked(room=0, is_scored=True, logprobs=2)
    assert (found["max_tokens"], found["prompt_logprobs"]) == (1, 2)


def test_the_best_are_known_by_their_log_probabilities():
    assert asked(best_of=3, choices=1)["logprobs"] == 0
    assert asked(best_of=3, choices=3)["logprobs"] is None


@pytest.mark.parametrize(
    ("generate", "words"),
    [
        (Generate(prompts=("x",), sampling=Sampling(typical_p=0.5)), "typical_p.*no such filter"),
        (Generate(prompts=("x",), sampling=Sampling(processor="shout")), "logits_processor.*runs no"),
        (Generate(embeds=Embeddings(1, 1, b"0000")), "inputs_embeds.*enable_prompt_embeds=true"),
        (
            Generate(prompts=("x",), scores_prompts=True),
            "cannot score prompts of a model that takes adapters",
        ),
    ],
)
def test_what_vllm_cannot_do_is_refused_by_its_field(generate, words):
    with pytest.raises(ServeError, match=words):
        judge_sampling(generate, "m", takes_embeds=False, has_adapters=True)


def test_what_it_can_do_is_not():
    judge_sampling(Generate(embeds=Embeddings(1, 1, b"0000")), "m", takes_embeds=True, has_adapters=True)
    judge_sampling(Generate(prompts=("x",), scores_prompts=True), "m", takes_embeds=False, has_adapters=False)
    judge_sampling(
        Generate(prompts=("x",), sampling=Sampling(typical_p=1.0)), "m", takes_embeds=False, has_adapters=True
    )


def scores(*ids):
    return {one: SimpleNamespace(logprob=-float(rank), rank=rank) for rank, one in ids}


def test_alternatives_are_the_likeliest_and_not_the_token_that_was_drawn_below_them():
    told = chosen(7, scores((1, 3), (2, 4), (9, 7)), 2)
    assert told.logprob == -9.0
    assert told.alternatives == ((3, -1.0), (4, -2.0))
    assert chosen(3, scores((1, 3)), 0).alternatives == ()
    assert chosen(3, None, 5) == chosen(3, {}, 5)


def test_the_first_token_of_a_prompt_has_no_score():
    first, second = scored((5, 6), [None, scores((1, 6))], 1)
    assert (first.logprob, second.logprob) == (None, -1.0)
    assert [one.id for one in scored((5, 6), (), 0)] == [5, 6]
