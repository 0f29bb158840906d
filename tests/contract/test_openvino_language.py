"""Language models by OpenVINO GenAI, in worker processes: their tokens, what ends them, and what is refused by name."""

import asyncio
import os
import signal

import psutil
import pytest
from tests.harness.generate_reference import CLOSE, compare, generated
from tests.harness.generating_workers import parts_of, serving
from tests.harness.language_models import text, tokenizer
from tests.harness.openvino_models import needs_genai, write_gguf_of, write_halved, write_openvino
from tests.harness.openvino_specs import described

from trivium.engines.hf.genai.engine import ENGINE
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Embeddings, Finish, Generate, Sampling, joined

needs_genai()

HALVED_ROTATION = 2e-3
"""How far logits move where OpenVINO has saved the angles of positions in half precision, as in these folders."""


@pytest.fixture(scope="module")
def halved(tmp_path_factory):
    return write_halved(tmp_path_factory.mktemp("halved"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, halved):
    return write_openvino(tmp_path_factory.mktemp("openvino"), halved)


@pytest.fixture(scope="module")
def gguf(tmp_path_factory, halved):
    return write_gguf_of(halved, tmp_path_factory.mktemp("gguf") / "model.gguf")


def answers(place, told, **parameters):
    """The answers of a model to requests that come at once, or the error of each."""
    found = []

    async def play(model):
        async def one(number, generate):
            try:
                return joined(await parts_of(model, number, generate))
            except ServeError as error:
                return error

        found.extend(await asyncio.gather(*(one(number, generate) for number, generate in enumerate(told))))

    serving(described(place, **parameters), play)
    return found


def requests(count):
    """Prompts of 5 to 300 tokens, as ids, since GGUF files have tokenizers of their own, and answers of 4 to 40."""
    return [
        {
            "ids": (
                tuple(tokenizer()(text(i, 20 + (i * 53) % 180 + (700 if i % 16 == 5 else 0)))["input_ids"]),
            ),
            "sampling": Sampling(max_tokens=4 + i * 7 % 37),
        }
        for i in range(count)
    ]


def ask(prompt="The Python language", **fields):
    """A request for one text."""
    return Generate(prompts=(prompt,), sampling=Sampling(**fields))


@pytest.mark.parametrize("kind", ["folder", "gguf"])
@pytest.mark.parametrize("keeps", ["true", "false"])
def test_exact_tokens_are_those_of_generate(request, halved, kind, keeps):
    told = requests(48)
    reference = generated(halved, told)
    gaps = sorted(gap for _, gaps in reference for gap in gaps)
    assert gaps[len(gaps) // 2] >= 0.1, "the model's tokens are decided, as those of a trained one"
    place = request.getfixturevalue(kind)
    streamed = [Generate(**one, streams=bool(i % 2)) for i, one in enumerate(told)]
    found = answers(place, streamed, slots=8, prefill_chunk=48, prefix_cache=keeps)
    compare(found, reference, HALVED_ROTATION if kind == "folder" else CLOSE)


def test_what_ends_a_text(halved, folder):
    ids = generated(halved, [{"prompts": ("The Python language",), "sampling": Sampling(max_tokens=30)}])[0][
        0
    ]
    whole = tokenizer().decode(ids)
    stop = whole[len(whole) // 2 :][:3]
    found = answers(
        folder,
        [
            ask(max_tokens=30),
            ask(max_tokens=30, stop=(stop,)),
            ask(max_tokens=30, stop=(stop,), keeps_stop=True),
            ask(max_tokens=30, stop_ids=(ids[4],)),
            ask(max_tokens=30, stop_ids=(ids[4],), min_tokens=12),
            ask(max_tokens=0),
            Generate(prompts=("The Python language",), sampling=Sampling(max_tokens=2), echoes=True),
            ask(truncate=2, max_tokens=3),
        ],
    )
    texts = [one.choices[0].text for one in found]
    assert texts[0] == whole
    before = whole[: whole.index(stop)]
    assert texts[1] == before
    assert texts[2] == before + stop
    assert [one.choices[0].finish for one in found[1:4]] == [Finish.STOP] * 3
    first = ids.index(ids[4])
    assert list(found[3].choices[0].ids) == ids[: first + 1]
    held = list(found[4].choices[0].ids)
    assert ids[4] not in held[:11], "it is held back"
    assert len(held) >= 12
    assert found[5].choices[0].ids == ()
    assert found[5].usage.prompt_tokens == found[0].usage.prompt_tokens
    assert texts[6].startswith("The Python language")
    assert found[7].usage.prompt_tokens == 2


def test_drawn_tokens_are_their_seeds_alone(folder):
    drawn = {"samples": True, "temperature": 0.9, "max_tokens": 12}
    many = [ask(text(i, 60), **drawn, seed=i) for i in range(12)]
    first = answers(folder, [ask(**drawn, seed=7, choices=3), *many], slots=5)
    again = answers(folder, [ask(**drawn, seed=7, choices=3), ask(**drawn, seed=8, choices=3)])
    assert first[0].choices == again[0].choices
    texts = [choice.text for answer in again for choice in answer.choices]
    assert len(set(texts)) == 6, "every choice, and every seed, draws others"
    assert first[0].usage.new_tokens == 36


def test_log_probabilities_are_the_models_own(halved, folder):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    drawn = {"samples": True, "temperature": 0.7, "max_tokens": 8, "seed": 3, "top_k": 5}
    found = answers(
        folder,
        [
            ask(**drawn, logprobs=0),
            ask(max_tokens=8, logprobs=1),
            ask(max_tokens=8, logprobs=0, repetition_penalty=1.4, presence_penalty=0.3),
            ask(**drawn | {"seed": None}, best_of=4, choices=1, logprobs=0),
        ],
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(halved).eval()
    prompt = tokenizer()("The Python language")["input_ids"]
    for answer in found:
        (choice,) = answer.choices
        with torch.inference_mode():
            logits = model(torch.tensor([[*prompt, *choice.ids]])).logits[0].float()
        scores = torch.log_softmax(logits, -1)[len(prompt) - 1 :]
        for place, token in enumerate(choice.tokens):
            assert token.logprob == pytest.approx(float(scores[place, token.id]), abs=2e-4)
    assert [token.alternatives[0][0] for token in found[1].choices[0].tokens] == list(found[1].choices[0].ids)


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("logit_bias", {"logit_bias": {5: 1.0}}),
        ("typical_p", {"typical_p": 0.5}),
        ("logits_processor", {"processor": "upper"}),
        ("logprobs", {"logprobs": 2}),
        ("logprobs", {"logprobs": 1, "samples": True, "temperature": 1.0}),
        ("temperature", {"samples": True, "temperature": 0.0}),
        ("stop_ids", {"stop_ids": (99999,)}),
    ],
)
def test_what_it_does_not_know_is_refused_by_name_and_neighbours_are_answered(folder, field, fields):
    ours, neighbour = answers(folder, [ask(max_tokens=3, **fields), ask(max_tokens=3)])
    assert isinstance(ours, ServeError)
    assert ours.code is Code.INVALID
    assert f"'{field}'" in ours.message
    assert neighbour.usage.new_tokens == 3


def test_prompts_that_it_does_not_know_are_refused_by_name(folder):
    rows = Embeddings(1, 64, b"\0" * 256)
    told = [
        Generate(embeds=rows),
        Generate(prompts=("x",), scores_prompts=True, sampling=Sampling(logprobs=0)),
        Generate(prompts=("x",), cache_salt="mine"),
        Generate(ids=((1, 5000),)),
        Generate(prompts=("x " * 3000,)),
        Generate(messages=({"role": "refuse", "content": "x"},)),
    ]
    found = answers(folder, [*told, ask(max_tokens=2)])
    assert all(one.code is Code.INVALID for one in found[:-1]), found
    for one, word in zip(
        found, ("inputs_embeds", "logprobs", "cache_salt", "input_ids", "prompt", "messages"), strict=False
    ):
        assert f"'{word}'" in one.message
    assert found[-1].usage.new_tokens == 2
    (salted,) = answers(
        folder, [Generate(prompts=("x",), cache_salt="mine")], prefix_cache="false", max_context=20
    )
    assert salted.usage.new_tokens


def test_memory_for_a_few_is_shared_by_many(halved, folder):
    told = [
        {"prompts": (text(i, 300),), "sampling": Sampling(max_tokens=40, ignores_eos=False)}
        for i in range(24)
    ]
    reference = generated(halved, told)
    blocks = 12
    found = answers(folder, [Generate(**one) for one in told], kv_bytes=blocks * 32 * 512, slots=16)
    compare(found, reference, HALVED_ROTATION)
    (long,) = answers(folder, [ask(text(1, 1100), max_tokens=4)], kv_bytes=blocks * 32 * 512)
    assert isinstance(long, ServeError)
    assert "kv_bytes" in long.message


def test_the_death_of_its_process_is_answered(folder):
    async def play(model):
        before = {child.pid for child in psutil.Process().children(recursive=True)}
        waits = [
            asyncio.ensure_future(
                parts_of(model, number, ask(text(number, 400), max_tokens=100, ignores_eos=True))
            )
            for number in range(4)
        ]
        await asyncio.sleep(0.05)
        for pid in before:
            if any("trivium.cli.worker" in word for word in psutil.Process(pid).cmdline()):
                os.kill(pid, signal.SIGKILL)
        found = await asyncio.gather(*waits, return_exceptions=True)
        assert all(isinstance(one, ServeError) for one in found), found

    serving(described(folder, max_context=512), play)


@pytest.mark.parametrize("kind", ["folder", "gguf"])
def test_facts_say_sizes_memory_and_where_it_runs(request, kind):
    found = ENGINE.facts(described(request.getfixturevalue(kind), slots=4))
    details = {name: words for name, (words, _) in found.details.items()}
    assert details["runs in"] == "process"
    assert details["vocabulary"] == "768 tokens"
    assert details["context"] == "512 tokens per slot"
    assert "512 bytes for each token" in details["memory"]
    assert details["precision"] == "in 32 bits"
    assert found.context == 512
