"""What a request's fields mean to OpenVINO GenAI: a table of settings, and one of refusals."""

import pytest

from trivium.engines.hf.genai.asking import judge_known, seed_of, settings_of, wants_logprobs
from trivium.engines.hf.requests import GenerationLimits
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Embeddings, Generate, Sampling

LIMITS = GenerationLimits("m", 100, 1000, 8)
PLAIN = {
    "max_new_tokens": 7,
    "ignore_eos": True,
    "logprobs": 0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "do_sample": False,
}
DRAWN = {"do_sample": True, "rng_seed": seed_of(5, 2), "temperature": 1.0}


@pytest.mark.parametrize(
    ("sampling", "changed"),
    [
        (Sampling(), {}),
        (Sampling(temperature=0.0), {}),
        (Sampling(samples=False, temperature=2.0, top_k=3), {}),
        (Sampling(samples=True), DRAWN),
        (Sampling(temperature=0.5), {**DRAWN, "temperature": 0.5}),
        (Sampling(samples=True, top_k=-1), DRAWN),
        (
            Sampling(samples=True, top_k=4, top_p=0.5, min_p=0.1),
            {**DRAWN, "top_k": 4, "top_p": 0.5, "min_p": 0.1},
        ),
        (Sampling(logprobs=0), {"logprobs": 1}),
        (Sampling(best_of=2), {"logprobs": 1}),
        (Sampling(best_of=2, choices=2), {}),
        (
            Sampling(repetition_penalty=1.2, presence_penalty=0.5),
            {"repetition_penalty": 1.2, "presence_penalty": 0.5},
        ),
        (Sampling(frequency_penalty=-1.0), {"frequency_penalty": -1.0}),
        (
            Sampling(min_tokens=3, stop_ids=(8,)),
            {"min_new_tokens": 3, "stop_token_ids": {8, 9}, "ignore_eos": False},
        ),
        (
            Sampling(min_tokens=3, stop_ids=(8,), ignores_eos=True),
            {"min_new_tokens": 3, "stop_token_ids": {8}, "ignore_eos": False},
        ),
        (Sampling(min_tokens=3, ignores_eos=True), {}),
        (Sampling(stop=("x",), stop_ids=(8,)), {}),
    ],
)
def test_fields_become_settings(sampling, changed):
    made = settings_of(Generate(ids=((1,),), sampling=sampling), 7, {9}, 5, 2)
    assert made == {**PLAIN, **changed}
    assert wants_logprobs(Generate(sampling=sampling)) == bool(made["logprobs"])


def test_every_sequence_has_a_seed_of_its_own_and_equal_ones_are_equal():
    seeds = {seed_of(seed, number) for seed in (0, 1, -1, 2**63, 2**64 - 2) for number in range(50)}
    assert len(seeds) == 250
    assert all(0 <= seed < 2**32 for seed in seeds)


@pytest.mark.parametrize(
    ("field", "generate"),
    [
        ("inputs_embeds", Generate(embeds=Embeddings(1, 8, b"\0" * 32))),
        ("logit_bias", Generate(sampling=Sampling(logit_bias={1: 2.0}))),
        ("typical_p", Generate(sampling=Sampling(typical_p=0.3))),
        ("logits_processor", Generate(sampling=Sampling(processor="mine"))),
        ("adapter", Generate(adapter="mine")),
        ("logprobs", Generate(scores_prompts=True)),
        ("logprobs", Generate(sampling=Sampling(logprobs=2))),
        ("logprobs", Generate(sampling=Sampling(logprobs=1, samples=True))),
        ("logprobs", Generate(sampling=Sampling(logprobs=1, frequency_penalty=0.5))),
        ("cache_salt", Generate(cache_salt="mine")),
    ],
)
def test_what_it_cannot_honour_is_refused_by_name(field, generate):
    with pytest.raises(ServeError) as caught:
        judge_known(generate, LIMITS, keeps=True)
    assert caught.value.code is Code.INVALID
    assert f"'{field}' is" in caught.value.message
    assert "openvino-llm" in caught.value.message
    assert caught.value.metadata["field"] == field


@pytest.mark.parametrize(
    "generate",
    [
        Generate(),
        Generate(sampling=Sampling(logprobs=0, samples=True)),
        Generate(sampling=Sampling(logprobs=1)),
        Generate(sampling=Sampling(typical_p=1.0)),
    ],
)
def test_what_it_knows_passes(generate):
    judge_known(generate, LIMITS, keeps=True)


def test_a_salt_is_honoured_where_nothing_is_kept():
    judge_known(Generate(cache_salt="mine"), LIMITS, keeps=False)
