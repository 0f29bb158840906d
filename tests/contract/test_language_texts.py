"""Texts of language models: prompts, chats and echoes in, whole characters out, cut where a stop text begins."""

import pytest
from tests.harness import language_models
from tests.harness.language_models import Steps, tokenizer, write

from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Sampling

pytest.importorskip("transformers")

TEXTS = ("你好，世界", "مرحبا بالعالم", "👩‍👩‍👧‍👦 and 🏳️‍🌈", "plain words")
SAY = """
from transformers import LogitsProcessor
import torch

WORDS = {words!r}


class Say(LogitsProcessor):
    "Says the word that the prompt's last token names, and ends."

    def __call__(self, ids, scores):
        word = WORDS[int((ids[0] == {mark}).sum()) - 1]
        place = ids.shape[1] - 1 - int((ids[0] == {mark}).nonzero().max())
        scores[:] = 0
        scores[0, word[place] if place < len(word) else 1] = 9
        return scores
"""
MARK = 2


def said():
    words = [tokenizer()(one)["input_ids"] for one in TEXTS]
    broken = [tokenizer().convert_tokens_to_ids(one) for one in ("ÿ", "þ", "ä", "½")]
    return [*words, broken, [*words[0], *broken, *words[2]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = write(tmp_path_factory.mktemp("texts"), "llama")
    (made / "say.py").write_text(SAY.format(words=said(), mark=MARK))
    return made


@pytest.fixture(scope="module")
def steps(folder):
    named = {"trust_remote_code": "true", "logits_processors": "say=say.py:Say"}
    with Steps(folder, slots=8, **named) as made:
        yield made


def say(word, **fields):
    sampling = Sampling(max_tokens=60, processor="say", **fields)
    return {"ids": ((5, *(MARK,) * (word + 1)),), "sampling": sampling}


@pytest.mark.parametrize("word", range(len(TEXTS) + 2))
def test_a_joined_stream_is_the_whole_answer_and_what_the_tokens_say(steps, word):
    (whole,) = steps.answers([say(word)])
    item = steps.add(**say(word, logprobs=1), streams=True)
    steps.run()
    parts = [choice for part in (*steps.parts[item], steps.ends[item]) for choice in part.choices]
    assert "".join(part.text for part in parts) == whole.choices[0].text
    assert "".join(token.text for part in parts for token in part.tokens) == whole.choices[0].text
    assert whole.choices[0].text == tokenizer().decode(said()[word])
    assert all(not part.text.endswith("\N{REPLACEMENT CHARACTER}") for part in parts if word < len(TEXTS))
    assert [part.finish for part in parts] == [None] * (len(parts) - 1) + [Finish.EOS]
    assert steps.ends[item].usage.new_tokens == len(said()[word]) + 1


def test_bytes_that_are_no_character_are_one_sign_each(steps):
    (answer,) = steps.answers([say(len(TEXTS))])
    assert answer.choices[0].text == "\N{REPLACEMENT CHARACTER}" * 3  # the last two bytes are one beginning


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(
    ("stop", "keeps", "expected"),
    [
        (("n wor",), False, "plai"),
        (("n wor",), True, "plain wor"),
        (("nowhere", "in"), False, "pla"),
        (("wordsy",), False, "plain words"),
    ],
)
def test_a_stop_text_across_tokens_is_cut_exactly(steps, stop, keeps, expected, streams):
    item = steps.add(**say(3, stop=stop, keeps_stop=keeps), streams=streams)
    steps.run()
    (choice,) = steps.answer(item).choices
    assert choice.text == expected
    assert choice.finish is (Finish.EOS if expected == TEXTS[3] else Finish.STOP)


def test_an_echo_comes_before_what_is_generated(steps):
    ids = tuple(tokenizer()("some words")["input_ids"])
    messages = ({"role": "user", "content": "hi"},)
    plain, echo, by_ids, chat = steps.answers(
        {"sampling": Sampling(max_tokens=5), **one}
        for one in (
            {"prompts": ("some words",)},
            {"prompts": ("some words",), "echoes": True},
            {"ids": (ids,), "echoes": True},
            {"messages": messages, "echoes": True},
        )
    )
    assert echo.choices[0].text == by_ids.choices[0].text == "some words" + plain.choices[0].text
    assert chat.choices[0].text.startswith("<|user|>hi</s><|assistant|>")


def test_no_new_tokens_are_the_echo_alone(steps):
    (answer,) = steps.answers(
        [{"prompts": ("some words",), "echoes": True, "sampling": Sampling(max_tokens=0)}]
    )
    assert (answer.choices[0].text, answer.choices[0].finish) == ("some words", Finish.LENGTH)
    assert answer.usage.new_tokens == 0
    assert answer.usage.prompt_tokens == len(tokenizer()("some words")["input_ids"])


def test_a_chat_is_what_its_template_writes(steps):
    messages = ({"role": "user", "content": "hello there"},)
    written = "<|user|>hello there</s><|assistant|>"
    ids = tuple(tokenizer()(written, add_special_tokens=False)["input_ids"])
    chat, same = steps.answers(
        {"sampling": Sampling(max_tokens=8), **one} for one in ({"messages": messages}, {"ids": (ids,)})
    )
    assert chat.choices == same.choices
    assert chat.usage.prompt_tokens == len(ids)


def test_the_last_tokens_of_a_prompt_are_kept_where_it_is_truncated(steps):
    ids = tuple(range(10, 60))
    cut, short = steps.answers(
        {"ids": (one,), "sampling": Sampling(max_tokens=8, truncate=20)} for one in (ids, ids[-20:])
    )
    assert cut.choices == short.choices
    assert cut.usage.prompt_tokens == 20


MANY = dict.fromkeys(range(1025), 1.0)
LONG = "word " * 2000


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "prompts"),
        ({"prompts": ("a",), "ids": ((1,),)}, "prompts"),
        ({"prompts": ()}, "prompts"),
        ({"messages": ()}, "messages"),
        ({"messages": ({"role": "refuse", "content": "x"},)}, "messages"),
        (
            {"messages": ({"role": "user", "content": "x"},), "template_arguments": {"chat_template": "x"}},
            "template",
        ),
        ({"prompts": ("a",), "tools": ({"name": "x"},)}, "tools"),
        ({"ids": ((),)}, "input_ids"),
        ({"ids": ((768,),)}, "input_ids"),
        ({"ids": ((-1,),)}, "input_ids"),
        ({"prompts": (LONG,)}, "'prompt' has"),
        ({"ids": ((5,) * 512,)}, "'input_ids' has 512 tokens"),
        ({"prompts": ("a",), "sampling": Sampling(temperature=-1.0)}, "temperature"),
        ({"prompts": ("a",), "sampling": Sampling(temperature=float("nan"))}, "temperature"),
        ({"prompts": ("a",), "sampling": Sampling(samples=True, temperature=0.0)}, "temperature"),
        ({"prompts": ("a",), "sampling": Sampling(top_p=0.0)}, "top_p"),
        ({"prompts": ("a",), "sampling": Sampling(top_k=-2)}, "top_k"),
        ({"prompts": ("a",), "sampling": Sampling(min_p=1.5)}, "min_p"),
        ({"prompts": ("a",), "sampling": Sampling(typical_p=0.0)}, "typical_p"),
        ({"prompts": ("a",), "sampling": Sampling(repetition_penalty=0.0)}, "repetition_penalty"),
        ({"prompts": ("a",), "sampling": Sampling(logit_bias={768: 1.0})}, "logit_bias"),
        ({"prompts": ("a",), "sampling": Sampling(logit_bias={1: float("inf")})}, "logit_bias"),
        ({"prompts": ("a",), "sampling": Sampling(stop=("",))}, "stop"),
        ({"prompts": ("a",), "sampling": Sampling(stop_ids=(9999,))}, "stop_ids"),
        ({"prompts": ("a",), "sampling": Sampling(stop_ids=(5,) * 257)}, "stop_ids"),
        ({"prompts": ("a",), "sampling": Sampling(logit_bias=MANY)}, "logit_bias"),
        ({"prompts": ("a",), "sampling": Sampling(min_tokens=5, max_tokens=3)}, "min_tokens"),
        ({"prompts": ("a",), "sampling": Sampling(logprobs=21)}, "logprobs"),
        ({"prompts": ("a",), "sampling": Sampling(choices=0)}, "choices"),
        ({"prompts": ("a",), "sampling": Sampling(choices=3, best_of=2)}, "best_of"),
        ({"prompts": ("a",), "sampling": Sampling(best_of=2), "streams": True}, "best_of"),
        ({"prompts": ("a",) * 200, "sampling": Sampling(choices=100)}, "prompts"),
        ({"embeds": language_models.Embeddings(2, 63, bytes(504))}, "inputs_embeds"),
        ({"embeds": language_models.Embeddings(2, 64, bytes(500))}, "inputs_embeds"),
        ({"embeds": language_models.Embeddings(1, 64, bytes(256)), "echoes": True}, "echo"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field_before_anything_is_computed(steps, fields, field):
    steps.reports.clear()
    with pytest.raises(ServeError, match=field) as caught:
        steps.answers([fields])
    assert caught.value.code is Code.INVALID
    assert not steps.reports
    assert steps.runner.debug_state() == {"unread": 0, "requests": 0, "free": 8}
