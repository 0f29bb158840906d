"""Language models under cancellations and faults: what fails ends alone, and nobody else loses a slot or a token."""

import random

import numpy as np
import pytest
from tests.harness.language_models import Steps, embeddings, kv_bytes, text, write

from trivium.types.errors import Code, ServeError
from trivium.types.generation import Sampling

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

PROCESSORS = """
class Third:
    calls = 0

    def __call__(self, ids, scores):
        self.calls += 1
        if self.calls == 3:
            raise RuntimeError("the third call")
        return scores
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = write(tmp_path_factory.mktemp("faults"), "llama")
    (made / "third.py").write_text(PROCESSORS)
    return made


def request(random, number):
    kind = number % 5
    fields = {
        "prompts": (text(number, random.randint(10, 400)),),
        "sampling": Sampling(
            max_tokens=random.randint(1, 24), seed=number, temperature=(None, 0.9)[number % 2]
        ),
        "streams": random.random() < 0.5,
    }
    if kind == 3:
        fields["sampling"] = Sampling(max_tokens=random.randint(4, 24), processor="third")
    if kind == 4:
        fields |= random.choice(
            [
                {"sampling": Sampling(top_p=7.0)},
                {"prompts": ("long " * 3000,)},
                {"sampling": Sampling(processor="none.py:None")},
                {"prompts": None, "ids": ((4000,),)},
                {"sampling": Sampling(stop=("",))},
            ]
        )
    return fields


def loaded(steps, told, cancels):
    """Run requests as they find room, some of which are cancelled; the answer or the error of each."""
    found, numbers = {}, {}
    waiting = list(enumerate(told))
    steps_left = {}
    while waiting or len(found) + len(steps_left) < len(told) or steps.runner.debug_state()["requests"]:
        state = steps.runner.debug_state()
        while waiting and state["unread"] + state["requests"] < steps.runner.slots:
            number, fields = waiting.pop(0)
            try:
                numbers[number] = steps.add(**fields)
            except ServeError as error:
                found[number] = error
            state = steps.runner.debug_state()
        steps.step()
        for number, item in list(numbers.items()):
            if item in steps.ends:
                end = steps.ends[item]
                found[number] = end if isinstance(end, ServeError) else steps.answer(item)
                del numbers[number]
            elif number in cancels and cancels[number] <= 0:
                steps.runner.abort(item)
                found[number] = None
                del numbers[number]
            elif number in cancels:
                cancels[number] -= 1
    return found


@pytest.mark.parametrize("tokens", [8 * 512, 320], ids=["memory for all", "memory for few"])
def test_a_load_of_good_and_bad_requests_leaves_the_good_ones_alone(folder, tokens):
    chance = random.Random(4)
    told = [request(chance, number) for number in range(500)]
    cancels = {number: chance.randint(0, 12) for number in range(0, 500, 9)}
    good = [number for number in range(500) if number % 5 < 3 and number not in cancels]
    named = {"trust_remote_code": "true", "logits_processors": "third=third.py:Third"}
    with Steps(folder, slots=8, prefill_chunk=64, kv_bytes=kv_bytes(folder, tokens), **named) as steps:
        found = loaded(steps, told, dict(cancels))
        assert sorted(found) == list(range(500)), "each is answered or cancelled"
        assert steps.runner.debug_state() == {"unread": 0, "requests": 0, "free": 8}
        assert all(report.rows + report.prompt_tokens <= 8 + 64 for report in steps.reports)
        assert all(report.share <= 1 for report in steps.reports)
        for number, end in found.items():
            if number not in cancels and number % 5 == 3:
                assert isinstance(end, ServeError)
                assert (end.code, "the third call" in end.message) == (Code.MODEL_FAILED, True)
            elif number not in cancels and number % 5 == 4:
                assert isinstance(end, ServeError)
                assert end.code is Code.INVALID
    with Steps(folder, slots=8, prefill_chunk=64) as steps:
        expected = loaded(steps, [told[number] for number in good], {})
    differ = [number for i, number in enumerate(good) if found[number].choices != expected[i].choices]
    assert not differ


def test_what_is_no_number_ends_its_request_alone_and_leaves_nothing_in_its_slot(folder):
    rows = np.ones((40, 64))
    rows[17, 3] = np.nan
    good = {"prompts": (text(2, 150),), "sampling": Sampling(max_tokens=20)}
    with Steps(folder, slots=2, prefill_chunk=16) as steps:
        (expected,) = steps.answers([good])
        item, bad = steps.add(**good), steps.add(embeds=embeddings(rows))
        steps.run()
        assert steps.answer(item).choices == expected.choices
        with pytest.raises(ServeError, match="no numbers") as caught:
            steps.answer(bad)
        assert caught.value.code is Code.MODEL_FAILED
        gone = steps.add(embeds=embeddings(rows))
        for _ in range(2):
            steps.step()
        assert steps.runner.abort(gone) == 32, "the row that is none has been read"
        for _ in range(2):
            assert [one.choices for one in steps.answers([good, good])] == [expected.choices] * 2


def test_nothing_is_computed_for_who_is_gone(folder):
    with Steps(folder, slots=2) as steps:
        item = steps.add(prompts=(text(1, 100),), sampling=Sampling(max_tokens=300), streams=True)
        for _ in range(5):
            steps.step()
        read = steps.reports[0].prompt_tokens
        new = sum(report.new_tokens for report in steps.reports)
        assert steps.runner.abort(item) == read + new
        assert steps.runner.abort(item) == 0
        assert steps.runner.step() is None
        assert item not in steps.ends
        unread = steps.add(prompts=("x",))
        assert steps.runner.abort(unread) == 0
        assert steps.step() is None


def test_a_step_that_raises_is_followed_by_a_fresh_start(folder, monkeypatch):
    good = {"prompts": (text(2, 150),), "sampling": Sampling(max_tokens=20)}
    with Steps(folder, slots=2) as steps:
        (expected,) = steps.answers([good])
        for _ in range(2):
            steps.add(**good)
        steps.step()
        with monkeypatch.context() as patch:
            patch.setattr(torch.nn.Embedding, "forward", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                steps.step()
        steps.runner.reset()
        assert steps.runner.debug_state() == {"unread": 0, "requests": 0, "free": 2}
        assert steps.answers([good])[0].choices == expected.choices


def test_a_stream_gets_a_part_in_every_step(folder):
    with Steps(folder, slots=2) as steps:
        item = steps.add(
            prompts=("a b",), sampling=Sampling(max_tokens=6, choices=2, temperature=1.0), streams=True
        )
        quiet = steps.add(prompts=("a b",), sampling=Sampling(max_tokens=6))
        steps.run()
        assert quiet not in steps.parts
        assert all(part.usage is None for part in steps.parts[item])
        told = [choice for part in (*steps.parts[item], steps.ends[item]) for choice in part.choices]
        assert sorted(choice.index for choice in told if choice.finish) == [0, 1]
        usage = steps.ends[item].usage
        assert (usage.new_tokens, usage.first_at > 0, usage.last_at >= usage.first_at) == (12, True, True)


@pytest.mark.parametrize("tokens", [5 * 512, 160], ids=["memory for all", "memory for few"])
def test_requests_of_many_sequences_share_what_is_free_and_lose_no_slot(folder, tokens):
    chance = random.Random(11)
    told = [
        {
            "prompts": tuple(
                text(chance.randrange(99), chance.randint(5, 300)) for _ in range(chance.randint(1, 3))
            ),
            "sampling": Sampling(
                max_tokens=chance.randint(1, 15),
                choices=chance.randint(1, 4),
                temperature=0.9,
                seed=number,
                repetition_penalty=chance.choice([None, 1.2]),
            ),
            "streams": number % 3 == 0,
        }
        for number in range(60)
    ]
    cancels = {number: chance.randint(0, 15) for number in range(3, 60, 7)}
    with Steps(folder, slots=5, prefill_chunk=32, kv_bytes=kv_bytes(folder, tokens)) as steps:
        found = loaded(steps, told, dict(cancels))
        assert steps.runner.debug_state() == {"unread": 0, "requests": 0, "free": 5}
        assert all(report.rows + report.prompt_tokens <= 5 + 32 for report in steps.reports)
        assert all(report.share <= 1 for report in steps.reports)
        assert steps.reports[-1].share == 0
        whole = [found[number] for number in range(60) if number not in cancels]
        alone = [steps.answers([told[number]])[0] for number in range(60) if number not in cancels]
    for one, other in zip(whole, alone, strict=True):
        assert sorted(one.choices, key=by_index) == sorted(other.choices, key=by_index)
        assert one.usage.prompt_tokens == other.usage.prompt_tokens


def by_index(choice):
    return choice.index
