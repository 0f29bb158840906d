"""How language models choose tokens: cut as transformers cuts, by a seed that no neighbour changes, with penalties."""

import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.harness.language_models import Steps, text, write

from trivium.engines.hf.call_guard import CallGuard
from trivium.engines.hf.draws import draw
from trivium.engines.hf.sampling import TokenSampler
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Sampling

torch = pytest.importorskip("torch")
generation = pytest.importorskip("transformers.generation.logits_process")

WORDS = 1500


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = write(tmp_path_factory.mktemp("sampled"), "llama")
    (made / "processors.py").write_text(PROCESSORS)
    return made


PROCESSORS = """
import torch
from transformers import LogitsProcessor


class Even(LogitsProcessor):
    def __call__(self, ids, scores):
        scores[:, 1::2] = -torch.inf
        return scores


class Broken(LogitsProcessor):
    def __init__(self):
        self.calls = 0

    def __call__(self, ids, scores):
        self.calls += 1
        if self.calls == 3:
            raise KeyError("no such word")
        return scores


class Unmade(LogitsProcessor):
    def __init__(self):
        raise OSError("no file")


def nothing(ids, scores):
    return scores * float("nan")


def other_shape(ids, scores):
    return scores[:, :-1]

"""


@dataclass
class Row:
    """A sequence as the sampler sees one."""

    key: int
    sampling: Sampling
    prompt: list[int] = field(default_factory=list)
    new: list[int] = field(default_factory=list)
    seed: int = 0
    number: int = 0
    processor: Any = None
    wants_logprob: bool = False

    @property
    def place(self):
        return self.key

    def known(self):
        return [*self.prompt, *self.new]


CUTS = (
    Sampling(samples=True),
    Sampling(temperature=0.5),
    Sampling(temperature=1.3, top_k=7),
    Sampling(temperature=1.0, top_k=900),
    Sampling(temperature=1.0, top_p=0.6),
    Sampling(temperature=3.0, top_p=0.98),
    Sampling(temperature=1.0, min_p=0.02),
    Sampling(temperature=4.0, min_p=1e-4),
    Sampling(temperature=1.0, typical_p=0.5),
    Sampling(temperature=1.2, typical_p=0.9, top_k=40),
    Sampling(temperature=0.8, top_k=50, top_p=0.9, min_p=0.01),
    Sampling(temperature=0.7, top_p=0.8, typical_p=0.7),
)


def warped(logits, sampling):
    """Scores of one row as transformers' own warpers leave them."""
    scores = logits[None] / (1.0 if sampling.temperature is None else sampling.temperature)
    for value, make in (
        (sampling.top_k, generation.TopKLogitsWarper),
        (sampling.top_p, generation.TopPLogitsWarper),
        (sampling.min_p, generation.MinPLogitsWarper),
        (sampling.typical_p, generation.TypicalLogitsWarper),
    ):
        if value is not None:
            scores = make(value)(None, scores)
    return scores[0]


@pytest.mark.parametrize("sampling", CUTS, ids=range(len(CUTS)))
def test_tokens_are_drawn_from_what_transformers_leaves(sampling):
    torch.manual_seed(1)
    count = 64
    rows = [Row(key, sampling, seed=key * 31, new=[0] * (key % 5)) for key in range(count)]
    logits = torch.randn(count, WORDS) * torch.linspace(0.5, 4.0, count)[:, None]
    chosen = TokenSampler([], torch.device("cpu"), CallGuard()).choose(logits, rows)
    assert not chosen.failed
    for row, token, own in zip(rows, chosen.tokens, logits, strict=True):
        shares = warped(own, sampling).double().softmax(-1)
        summed = shares.cumsum(0)
        number = draw(row.seed, 0, len(row.new))
        assert shares[token.id] > 0, "transformers would leave it out"
        assert summed[token.id] >= number - 1e-4
        assert summed[token.id] - shares[token.id] <= number + 1e-4


def test_a_row_is_chosen_alone_as_among_others():
    torch.manual_seed(2)
    logits = torch.randn(len(CUTS), WORDS) * 2
    rows = [Row(key, sampling, seed=key) for key, sampling in enumerate(CUTS)]
    sampler = TokenSampler([], torch.device("cpu"), CallGuard())
    together = [token.id for token in sampler.choose(logits, rows).tokens]
    alone = [sampler.choose(logits[key : key + 1], [row]).tokens[0].id for key, row in enumerate(rows)]
    assert together == alone


def test_penalties_and_bias_are_those_of_their_definitions():
    torch.manual_seed(3)
    told = [
        Sampling(repetition_penalty=1.7),
        Sampling(presence_penalty=0.9, frequency_penalty=0.4),
        Sampling(logit_bias={3: 50.0, 4: -50.0}),
        Sampling(),
        Sampling(repetition_penalty=0.5, logit_bias={9: -100.0}),
    ]
    rows = [
        Row(key, one, prompt=[1, 2, 2, 3], new=[5, 5, 6], wants_logprob=True) for key, one in enumerate(told)
    ]
    logits = torch.randn(len(rows), 12)
    sampler = TokenSampler([], torch.device("cpu"), CallGuard())
    for row in rows:
        sampler.begin(row)
    for _ in range(3):
        expected = logits.clone()
        for key in (0, 4):
            make = generation.RepetitionPenaltyLogitsProcessor(told[key].repetition_penalty)
            expected[key] = make(torch.tensor([rows[key].known()]), logits[key : key + 1].clone())[0]
        for token in range(12):
            times = rows[1].new.count(token)
            expected[1, token] -= times * 0.4 + (times > 0) * 0.9
        expected[2, 3] += 50
        expected[2, 4] -= 50
        expected[4, 9] -= 100
        chosen = sampler.choose(logits, rows)
        assert [token.id for token in chosen.tokens] == expected.argmax(-1).tolist()
        for row, token in zip(rows, chosen.tokens, strict=True):
            assert token.logprob == pytest.approx(float(logits[row.key].log_softmax(-1)[token.id]), abs=1e-5)
            row.new.append(token.id)


def mixed(count):
    """Requests of every kind, each with a seed of its own."""
    return [
        {
            "prompts": (text(i, 30 + i * 41 % 400),),
            "sampling": Sampling(
                temperature=0.6 + i % 5 * 0.3,
                top_k=(None, 5, 40, None)[i % 4],
                top_p=(None, 0.9, 0.5)[i % 3],
                min_p=(None, 0.05)[i % 2],
                typical_p=0.8 if i % 7 == 3 else None,
                repetition_penalty=1.3 if i % 3 == 1 else None,
                presence_penalty=0.5 if i % 4 == 2 else None,
                frequency_penalty=0.2 if i % 5 == 2 else None,
                seed=1000 + i,
                max_tokens=10 + i % 20,
            ),
        }
        for i in range(count)
    ]


def test_seeds_draw_the_same_alone_and_together(folder):
    told = mixed(32)
    with Steps(folder, slots=16, prefill_chunk=64) as steps:
        alone = [steps.answers([request])[0] for request in told]
        items = []
        for i, request in enumerate(told):
            while steps.runner.debug_state()["free"] == 0:
                steps.step()
            items.append(steps.add(**request))
            if i % 3 == 0:
                steps.step()
        steps.run()
        together = [steps.answer(item) for item in items]
    differ = [
        i for i, (one, other) in enumerate(zip(alone, together, strict=True)) if one.choices != other.choices
    ]
    assert not differ
    assert len({one.choices[0].ids for one in alone}) == 32


def test_without_a_seed_each_request_draws_anew(folder):
    request = {"prompts": (text(1, 50),), "sampling": Sampling(temperature=1.5, max_tokens=20)}
    with Steps(folder, slots=2) as steps:
        one, other = steps.answers([request, request])
    assert one.choices[0].ids != other.choices[0].ids


@pytest.mark.parametrize(
    ("sampling", "is_greedy"),
    [
        (Sampling(), True),
        (Sampling(temperature=0.0), True),
        (Sampling(samples=False, temperature=5.0), True),
        (Sampling(top_p=0.5, seed=3), True),
        (Sampling(samples=True, seed=3), False),
        (Sampling(temperature=2.0, seed=3), False),
    ],
)
def test_what_is_greedy(folder, sampling, is_greedy):
    prompt = (text(9, 80),)
    with Steps(folder, slots=2) as steps:
        greedy, other = steps.answers(
            {"prompts": prompt, "sampling": one} for one in (Sampling(max_tokens=16), with_most(sampling, 16))
        )
    assert (greedy.choices[0].ids == other.choices[0].ids) == is_greedy


def with_most(sampling, most):
    fields = {name: getattr(sampling, name) for name in sampling.__struct_fields__}
    return Sampling(**fields | {"max_tokens": most})


def test_the_end_is_held_back_until_the_minimum_and_may_be_ignored(folder):
    bias = {1: 1000.0}
    with Steps(folder, slots=4) as steps:
        ended, least, ignored, shown = steps.answers(
            {"prompts": ("some text",), "sampling": one}
            for one in (
                Sampling(logit_bias=bias, max_tokens=9),
                Sampling(logit_bias=bias, max_tokens=9, min_tokens=4),
                Sampling(logit_bias=bias, max_tokens=9, ignores_eos=True),
                Sampling(logit_bias=bias, max_tokens=9, shows_special=True),
            )
        )
    assert (ended.choices[0].ids, ended.choices[0].text, ended.choices[0].finish) == ((1,), "", Finish.EOS)
    assert len(least.choices[0].ids) == 5
    assert 1 not in least.choices[0].ids[:4]
    assert least.choices[0].finish is Finish.EOS
    assert (ignored.choices[0].ids, ignored.choices[0].finish) == ((1,) * 9, Finish.LENGTH)
    assert shown.choices[0].text == "</s>"


def test_stop_tokens_end_a_sequence(folder):
    prompt = ("some text",)
    with Steps(folder, slots=4) as steps:
        (whole,) = steps.answers([{"prompts": prompt, "sampling": Sampling(max_tokens=12)}])
        ids = whole.choices[0].ids
        stop = ids[6]
        place = ids.index(stop)
        cut, kept = steps.answers(
            {"prompts": prompt, "sampling": Sampling(max_tokens=12, stop_ids=(stop,), keeps_stop=keeps)}
            for keeps in (False, True)
        )
    assert cut.choices[0].ids == kept.choices[0].ids == ids[: place + 1]
    assert cut.choices[0].finish is kept.choices[0].finish is Finish.STOP
    assert whole.choices[0].text.startswith(cut.choices[0].text)
    assert len(kept.choices[0].text) > len(cut.choices[0].text)


def test_log_probabilities_come_with_the_likeliest_tokens(folder):
    with Steps(folder, slots=2) as steps:
        one, none = steps.answers(
            {"prompts": ("some text",), "sampling": Sampling(max_tokens=6, logprobs=count)}
            for count in (3, 0)
        )
    (choice,) = one.choices
    assert [token.id for token in choice.tokens] == list(choice.ids)
    assert "".join(token.text for token in choice.tokens) == choice.text
    for token in choice.tokens:
        assert [len(token.alternatives), token.alternatives[0][0]] == [3, token.id]
        values = [value for _, _, value in token.alternatives]
        assert values == sorted(values, reverse=True)
        assert values[0] == token.logprob <= 0
        assert sum(map(math.exp, values)) <= 1.0001
    assert [token.alternatives for token in none.choices[0].tokens] == [()] * 6


NAMED = {
    "trust_remote_code": "true",
    "logits_processors": "; ".join(
        f"{name}=processors.py:{name}" for name in ("Even", "Broken", "Unmade", "nothing", "other_shape")
    ),
}
"""How the operator names the processors of the folder."""


def test_a_processor_of_the_folder_changes_its_request_alone(folder):
    prompt = (text(5, 60),)
    with Steps(folder, slots=2, **NAMED) as steps:
        even, plain = steps.answers(
            {"prompts": prompt, "sampling": Sampling(max_tokens=12, processor=name)}
            for name in ("Even", None)
        )
    assert all(token % 2 == 0 for token in even.choices[0].ids)
    assert any(token % 2 for token in plain.choices[0].ids)


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("Broken", Code.MODEL_FAILED, "'Broken' failed: KeyError: 'no such word'"),
        ("nothing", Code.MODEL_FAILED, "no numbers"),
        ("other_shape", Code.MODEL_FAILED, "expected were scores of shape"),
        ("Unmade", Code.MODEL_FAILED, "OSError: no file"),
        ("Evens", Code.INVALID, "did you mean 'Even'"),
        ("processors.py:Even", Code.INVALID, "'logits_processor' is 'processors.py:Even'; expected one of"),
        ("../processors.py:Even", Code.INVALID, "logits_processor"),
        ("/etc/passwd:Even", Code.INVALID, "logits_processor"),
        ("", Code.INVALID, "logits_processor"),
    ],
)
def test_a_processor_that_fails_ends_its_request_alone(folder, name, code, words):
    good = {"prompts": (text(6, 60),), "sampling": Sampling(max_tokens=12)}
    with Steps(folder, slots=4, **NAMED) as steps:
        (expected,) = steps.answers([good])
        bad = steps.add(
            prompts=(text(7, 60),), sampling=Sampling(max_tokens=12, processor=name), streams=True
        )
        item = steps.add(**good)
        steps.run()
        assert steps.answer(item).choices == expected.choices
        with pytest.raises(ServeError, match=words) as caught:
            steps.answer(bad)
        assert caught.value.code is code
        assert steps.runner.debug_state() == {"unread": 0, "requests": 0, "free": 4}
