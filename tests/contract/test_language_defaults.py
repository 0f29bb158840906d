"""What a model's own files say of its texts holds: each token that ends one, and how tokens are chosen by default."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.harness.language_models import Steps, spec, text, write

from trivium.engines.hf.engine import ENGINE
from trivium.types.errors import ServeError
from trivium.types.generation import Finish, Sampling

pytest.importorskip("transformers")

DRAWN = Sampling(samples=True, max_tokens=12, seed=3)
PROMPT = {"prompts": (text(4, 90),)}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return write(tmp_path_factory.mktemp("defaults") / "plain", "llama")


@pytest.fixture
def folder(plain, tmp_path):
    return shutil.copytree(plain, tmp_path / "folder")


def told(folder, **fields):
    path = folder / "generation_config.json"
    path.write_text(json.dumps(fields))


def renamed_end(folder, token):
    """Have the tokenizer call another token its end, as tuned models do."""
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "eos_token": token}))


def answer(folder, sampling, **parameters):
    with Steps(folder, **parameters) as steps:
        return steps.answers([{**PROMPT, "sampling": sampling}])[0].choices[0]


def greedy(plain, count=12):
    return answer(plain, Sampling(max_tokens=count)).ids


def test_each_token_that_a_file_names_ends_a_text(plain, folder):
    ids = greedy(plain)
    told(folder, eos_token_id=[1, ids[5]])
    renamed_end(folder, "<|assistant|>")
    found = ENGINE.facts(spec(folder)).details["ends"]
    assert set(found[0].split(", ")) == {"1", "3", str(ids[5])}
    for words in (
        f"{ids[5]}: generation_config.json",
        "config.json (eos_token_id)",
        "3: tokenizer_config.json",
    ):
        assert words in found[1]
    ended = answer(folder, Sampling(max_tokens=12))
    assert (ended.ids, ended.finish) == (ids[: ids.index(ids[5]) + 1], Finish.EOS)
    pushed = Sampling(max_tokens=3, logit_bias={3: 100.0})
    assert answer(folder, pushed).ids == (3,)
    assert answer(folder, Sampling(max_tokens=12, ignores_eos=True)).ids == ids


def test_a_setting_has_the_last_word_on_ends(plain, folder):
    ids = greedy(plain)
    told(folder, eos_token_id=[1, ids[2]])
    assert (
        answer(folder, Sampling(max_tokens=12), eos_token_id=f"{ids[4]}; 1").ids
        == (ids[: ids.index(ids[4]) + 1])
    )
    assert answer(folder, Sampling(max_tokens=12), eos_token_id="none").ids == ids
    assert ENGINE.facts(spec(folder, eos_token_id="7")).details["ends"] == (
        "7",
        "7: parameter 'eos_token_id'",
    )
    with pytest.raises(ServeError, match="names token 768, and it has 768"):
        ENGINE.facts(spec(folder, eos_token_id="768"))


def test_sampling_of_the_model_holds_where_a_request_says_nothing(plain, folder):
    told(folder, temperature=0.7, top_k=1, do_sample=True)
    likeliest = greedy(plain)
    assert ENGINE.facts(spec(folder)).details["sampling"][0] == "temperature 0.7, top_k 1"
    with Steps(folder) as steps:
        drawn, said = steps.answers(
            [
                {**PROMPT, "sampling": DRAWN},
                {
                    **PROMPT,
                    "sampling": Sampling(samples=True, max_tokens=12, seed=3, top_k=0, temperature=5.0),
                },
            ]
        )
    assert drawn.choices[0].ids == likeliest
    assert (
        said.choices[0].ids
        == answer(plain, Sampling(temperature=5.0, max_tokens=12, seed=3)).ids
        != likeliest
    )
    off = {"generation_config": "none"}
    assert answer(folder, DRAWN, **off).ids == answer(plain, DRAWN).ids != likeliest
    assert ENGINE.facts(spec(folder, **off)).details["sampling"][0] == "as each request says"


def test_settings_that_cannot_be_are_named(folder):
    told(folder, temperature=-1, top_p="high", min_p=0.1)
    found = ENGINE.facts(spec(folder))
    assert found.details["sampling"][0] == "min_p 0.1"
    assert ["temperature" in found.notes[0], "top_p" in found.notes[1]] == [True, True]
    (folder / "generation_config.json").write_text("{")
    with pytest.raises(ServeError, match=r"generation_config\.json is no JSON.*'generation_config' to none"):
        ENGINE.facts(spec(folder))
    assert ENGINE.facts(spec(folder, generation_config="none")).details["ends"][0] == "1"


def test_what_is_no_file_is_not_waited_for(folder):
    """A named pipe in its place would hold whoever reads it, until somebody writes to it."""
    pipe = folder / "generation_config.json"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(lambda: ENGINE.facts(spec(folder)).details["ends"])
        try:
            assert asked.result(60)[0] == "1"
        except TimeoutError:
            pipe.write_text("{}")  # lets the thread go
            raise
