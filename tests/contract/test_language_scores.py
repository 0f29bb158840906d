"""What a model makes of a prompt: a log probability of each token, its ids and its text, without one of its own."""

import math

import pytest
from tests.harness.language_models import Steps, embeddings, kv_bytes, text, tokenizer, write

from trivium.engines.hf import runner
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Sampling

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SCORED = {"scores_prompts": True, "echoes": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("scored"), "llama")


@pytest.fixture(scope="module")
def model(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def expected(model, ids):
    """Log probabilities of each token but the first, behind those before it, of all tokens."""
    with torch.inference_mode():
        return torch.log_softmax(model(input_ids=torch.tensor([ids])).logits[0].float(), -1)[:-1]


def check(model, ids, tokens, alternatives):
    """Hold the tokens that an answer begins with against the model itself."""
    assert [token.id for token in tokens] == list(ids)
    assert (tokens[0].logprob, tokens[0].alternatives) == (None, ())
    for row, token in zip(expected(model, ids), tokens[1:], strict=True):
        assert math.isclose(token.logprob, row[token.id], abs_tol=1e-4)
        best = row.topk(alternatives).values.tolist()
        assert [p for _, _, p in token.alternatives] == pytest.approx(best, abs=1e-4)
        assert all(math.isclose(row[id], p, abs_tol=1e-4) for id, _, p in token.alternatives)


@pytest.mark.parametrize("most", [2**24, 3 * 1500])
@pytest.mark.parametrize("chunk", [512, 7])
def test_each_token_of_a_prompt_has_its_log_probability(folder, model, monkeypatch, most, chunk):
    monkeypatch.setattr(runner, "MOST_SCORES", most)
    prompts = [
        tuple(5 + (k * k + seed) % 700 for k in range(size)) for seed, size in enumerate((1, 2, 30, 61))
    ]
    told = [
        {"ids": (ids,), "sampling": Sampling(max_tokens=number % 3, logprobs=number), **SCORED}
        for number, ids in enumerate(prompts)
    ]
    neighbours = [{"ids": ((9, 8, 7),), "sampling": Sampling(max_tokens=20)}] * 2
    with Steps(folder, slots=3, prefill_chunk=chunk) as steps:
        answers = steps.answers([*told, *neighbours])
        alone = steps.answers(neighbours[:1])
    assert [answer.choices for answer in answers[-2:]] == [alone[0].choices] * 2
    for number, (ids, answer) in enumerate(zip(prompts, answers, strict=False)):
        (choice,) = answer.choices
        assert (len(choice.ids), choice.finish) == (number % 3, Finish.LENGTH)
        check(model, ids, choice.tokens[: len(ids)], number)
        assert [token.id for token in choice.tokens[len(ids) :]] == list(choice.ids)
        assert answer.usage.new_tokens == number % 3


def test_choices_of_a_prompt_share_its_scores(folder, model):
    ids = tuple(range(20, 50))
    sampling = Sampling(max_tokens=3, logprobs=1, choices=2, best_of=4, temperature=0.9, seed=1)
    with Steps(folder, slots=4) as steps:
        (answer,) = steps.answers([{"ids": (ids, ids[::-1]), "sampling": sampling, **SCORED}])
    for choice in answer.choices:
        check(model, (ids, ids[::-1])[choice.index // 2], choice.tokens[:30], 1)
        assert len(choice.tokens) == 33


def test_scores_are_whole_where_memory_is_for_few(folder, model):
    told = [
        {
            "ids": (tuple(5 + (k * seed) % 700 for k in range(1, 60)),),
            "sampling": Sampling(max_tokens=75, logprobs=0, ignores_eos=True),
            **SCORED,
        }
        for seed in range(1, 7)
    ]
    with Steps(folder, slots=6, prefill_chunk=16, kv_bytes=kv_bytes(folder, 256)) as steps:
        answers = steps.answers(told)
        assert sum(report.wasted_tokens for report in steps.reports) > 0, "some were computed again"
    for one, answer in zip(told, answers, strict=True):
        check(model, one["ids"][0], answer.choices[0].tokens[:59], 0)


def test_a_stream_begins_with_the_prompt_and_its_ids(folder):
    told = {"prompts": (text(0, 40),), "sampling": Sampling(max_tokens=3, logprobs=1), "streams": True}
    with Steps(folder, slots=1) as steps:
        item = steps.add(**told, **SCORED, tells_prompts=True, counts_parts=True)
        steps.run()
        parts = [*steps.parts[item], steps.ends[item]]
        ids = tuple(tokenizer()(told["prompts"][0])["input_ids"])
    assert [part.prompts for part in parts] == [(ids,), *[()] * (len(parts) - 1)]
    assert [part.usage.new_tokens for part in parts] == [1, 2, 3]
    assert {part.usage.prompt_tokens for part in parts} == {len(ids)}
    first = parts[0].choices[0]
    assert first.text.startswith(text(0, 40))
    assert tuple(token.id for token in first.tokens[:-1]) == ids
    assert "".join(token.text for token in first.tokens[:-1]).endswith(text(0, 40)[1:])


def test_nothing_is_computed_where_nothing_is_asked_for(folder):
    words = text(0, 90)
    nothing = Sampling(max_tokens=0, shows_special=True)
    with Steps(folder, slots=1, max_context=16) as steps:
        told = steps.answers(
            [
                {"prompts": (words,), "sampling": nothing, "tells_prompts": True},
                {"prompts": ("",), "sampling": nothing, "tells_prompts": True, "adds_special": False},
                {"prompts": (words,), "sampling": nothing, "tells_prompts": True, "adds_special": False},
            ]
        )
        ids = told[0].prompts[0]
        assert len(ids) > 16, "longer than the context"
        assert ids == tuple(tokenizer()(words)["input_ids"])
        assert told[1].prompts == ((),)
        assert told[2].prompts[0] == tuple(tokenizer()(words, add_special_tokens=False)["input_ids"])
        (back,) = steps.answers([{"ids": (ids,), "sampling": nothing, "echoes": True}])
        assert back.choices[0].text == tokenizer().decode(ids)
        assert not any(report.new_tokens or report.rows for report in steps.reports)


def test_a_prompt_is_cut_to_what_leaves_room(folder):
    words = text(0, 200)
    with Steps(folder, slots=1, max_context=32) as steps:
        (answer,) = steps.answers(
            [
                {
                    "prompts": (words,),
                    "sampling": Sampling(max_tokens=5, truncate=-1, ignores_eos=True),
                    "tells_prompts": True,
                }
            ]
        )
    whole = tuple(tokenizer()(words)["input_ids"])
    assert answer.prompts == (whole[-27:],)
    assert len(answer.choices[0].ids) == 5


def test_embeddings_have_no_tokens_to_score(folder):
    width = transformers.AutoConfig.from_pretrained(folder).hidden_size
    rows = embeddings(torch.zeros(2, width).numpy())
    with (
        Steps(folder, slots=1) as steps,
        pytest.raises(ServeError, match="'echo' is set for embeddings") as caught,
    ):
        steps.add(embeds=rows, sampling=Sampling(logprobs=1), scores_prompts=True)
    assert caught.value.code is Code.INVALID
