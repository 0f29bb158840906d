"""Prompts read in a process beside the worker are those that the worker itself would read, or none are."""

import json
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.harness.language_models import KINDS, Steps, text, tokenizer, write, write_gguf, write_tokenizer

from trivium.engines.hf.prompt_work import TokenizerSource, prompt_work
from trivium.engines.hf.prompts import PromptTokenizer, as_work, from_work
from trivium.engines.hf.requests import GenerationLimits
from trivium.engines.hf.token_length_policy import UNKNOWN
from trivium.machine.helper_process import HelperLane, HelperProcess
from trivium.types.errors import Code
from trivium.types.generation import Generate, Sampling

pytest.importorskip("transformers")

LIMITS = GenerationLimits("m", 2**20, 2**20, 64)
CHAT = ({"role": "user", "content": "¿qué tal?"}, {"role": "assistant", "content": "bien\n"})
OWN = """
import torch
from transformers import PreTrainedTokenizerFast


class Own(PreTrainedTokenizerFast):
    def _encode_plus(self, text, **others):
        return super()._encode_plus(text[::-1], **others)
"""
REQUESTS = (
    *(
        Generate(prompts=(one,), echoes=True)
        for one in ("plain words", " 你好，世界 مرحبا 👩‍👩‍👧‍👦", "</s><|user|> \t\n\n x", "\x00\ufffd", "a")
    ),
    Generate(prompts=("good", text(5, 3000))),
    Generate(prompts=(text(7, 400_000),), sampling=Sampling(truncate=999)),
    Generate(ids=((5, 6, 7),), echoes=True),
)
CHATS = (
    Generate(messages=CHAT, echoes=True),
    Generate(messages=CHAT, template_arguments={"add_generation_prompt": False}),
)


def both(source: TokenizerSource):
    """What reads prompts here, and what opens the same elsewhere."""
    opened = source.open()
    return PromptTokenizer(opened, LIMITS, UNKNOWN), prompt_work(source, opened, LIMITS, UNKNOWN)


def asked(lane: HelperLane, generate: Generate):
    return from_work(lane.do(as_work(generate), time.monotonic(), 60.0, lambda: True))


def compare(source: TokenizerSource, requests, has_torch: bool = False) -> None:
    here, opener = both(source)
    with closing(HelperProcess(opener, 2**30)) as process, closing(HelperLane(process, 0)) as lane:
        for generate in requests:
            expected = here.prompts(generate)
            found = asked(lane, generate)
            assert found == expected
            assert all(prompt.ids for prompt in found)
        told = Path(f"/proc/{process.pid}")
        assert ("torch" in (told / "maps").read_text()) is has_torch
        assert "\nThreads:\t1\n" in (told / "status").read_text(), "what has threads must not be forked"


KIND_ROWS = [pytest.param(kind, marks=() if kind == "llama" else pytest.mark.soak) for kind in KINDS]


@pytest.mark.parametrize("kind", KIND_ROWS)
def test_each_kind_of_model_has_the_same_prompts_by_both_roads(tmp_path, kind):
    compare(TokenizerSource(str(write_tokenizer(tmp_path, kind)), "", False), REQUESTS + CHATS)


def test_a_gguf_file_has_the_same_prompts_by_both_roads(tmp_path):
    """The library reads the head of such a file by a module that needs PyTorch."""
    compare(TokenizerSource(str(write_gguf(tmp_path / "a.gguf").parent), "a.gguf", False), REQUESTS, True)


def test_code_of_the_folder_has_the_same_prompts_by_both_roads(tmp_path, monkeypatch):
    cache = str(tmp_path / "modules")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", cache)
    monkeypatch.setenv("HF_MODULES_CACHE", cache)
    folder = write_tokenizer(tmp_path / "m", "llama")
    (folder / "own.py").write_text(OWN)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config |= {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": [None, "own.Own"]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    source = TokenizerSource(str(folder), "", True)
    assert source.open()("ab")["input_ids"] == tokenizer()("ba")["input_ids"]
    compare(source, REQUESTS + CHATS, True)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        (
            "tokenizer.json",
            lambda told: told.replace('_space": false', '_space": true'),
            "is another one than",
        ),
        ("chat_template.jinja", lambda told: f"{told} ", "is another one than"),
        ("tokenizer.json", lambda told: told[:1000], "can no longer be opened"),
    ],
)
def test_a_folder_that_was_changed_reads_no_prompts(tmp_path, name, change, words):
    folder = write(tmp_path / "m", "llama")
    place = folder / name
    before = place.read_text()
    chat = {"messages": CHAT, "sampling": Sampling(max_tokens=2)}
    with Steps(folder, slots=2) as steps:
        place.write_text(change(before))
        assert place.read_text() != before
        chats = [steps.add(**chat) for _ in range(2)]
        good = steps.add(prompts=("good",), sampling=Sampling(max_tokens=2))
        steps.run()
        for item in chats:
            assert steps.ends[item].code is Code.MODEL_FAILED
            assert words in steps.ends[item].message
            assert str(folder) not in steps.ends[item].message
        assert steps.answer(good)
        place.write_text(before)
        assert steps.answers([chat])
