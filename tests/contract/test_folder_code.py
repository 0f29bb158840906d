"""Code of a language model's folder runs behind one gate: never on a request's behalf, and not at all without trust."""

import json

import pytest
from tests.harness.language_models import Steps, spec, text, write

from trivium.engines.hf.engine import ENGINE
from trivium.engines.hf.folder_code import FolderCode
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Sampling

pytest.importorskip("torch")
pytest.importorskip("transformers")

_MARKING = """
from pathlib import Path

with (Path({folder!r}) / "marks").open("a") as file:
    file.write("{name}\\n")

def keep(ids, scores):
    return scores

generate = keep
"""
_CODE = ("own.py", "configuration_own.py", "tokenization_own.py", "custom_generate/generate.py", "random.py")


@pytest.fixture
def folder(tmp_path):
    """A model with every file of code that a folder can bring, each of which leaves a mark."""
    made = write(tmp_path, "llama")
    for name in _CODE:
        file = made / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(_MARKING.format(folder=str(made), name=name))
    return made


def marks(folder):
    file = folder / "marks"
    return file.read_text().splitlines() if file.exists() else []


def with_keys(path, **keys):
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))


@pytest.mark.parametrize(
    "name",
    ["own.py:keep", "own.py", "custom_generate/generate.py:keep", "random.py:keep", "keep", "own:keep"],
)
@pytest.mark.parametrize("trust", ["false", "true"])
def test_a_request_runs_no_file(folder, name, trust):
    with Steps(folder, slots=2, trust_remote_code=trust) as steps:
        before = marks(folder)
        item = steps.add(prompts=(text(5, 40),), sampling=Sampling(max_tokens=4, processor=name))
        steps.run()
        with pytest.raises(ServeError, match="has no processors") as caught:
            steps.answer(item)
    assert caught.value.code is Code.INVALID
    assert marks(folder) == before
    assert before == ([] if trust == "false" else ["custom_generate/generate.py"])


def test_a_file_that_is_named_runs_once_as_the_model_loads(folder):
    named = {"trust_remote_code": "true", "logits_processors": "one=own.py:keep;two=own.py:keep"}
    with Steps(folder, slots=2, **named) as steps:
        loaded = marks(folder)
        for name in ("one", "two", "one"):
            (answer,) = steps.answers(
                [{"prompts": ("text",), "sampling": Sampling(max_tokens=2, processor=name)}]
            )
            assert answer.choices[0].ids
    assert marks(folder) == loaded
    assert loaded.count("own.py") == 1


UNTRUSTED = {
    "config.json": {"auto_map": {"AutoConfig": "configuration_own.Own"}},
    "tokenizer_config.json": {
        "auto_map": {"AutoTokenizer": ["tokenization_own.Own", None]},
        "tokenizer_class": "Own",
    },
    "": {},
}


@pytest.mark.parametrize("file", UNTRUSTED)
def test_without_trust_no_load_and_no_look_runs_a_file(folder, file):
    parameters = {} if file else {"logits_processors": "one=own.py:keep"}
    if file:
        with_keys(folder / file, **UNTRUSTED[file])
    with pytest.raises(ServeError, match="trust_remote_code") as caught:
        Steps(folder, slots=2, **parameters)
    assert caught.value.code in (Code.UNSUPPORTED, Code.LOAD_FAILED)
    if file != "tokenizer_config.json":  # which is not looked at
        with pytest.raises(ServeError, match="trust_remote_code"):
            ENGINE.facts(spec(folder, **parameters))
    assert marks(folder) == []


@pytest.mark.parametrize(
    ("code", "named", "words"),
    [
        ("raise KeyError('no such word')", "own.py:keep", "cannot be run: KeyError: 'no such word'"),
        ("import sys\nsys.exit(3)", "own.py:keep", "cannot be run: SystemExit: 3"),
        ("keep = 3", "own.py:keep", "no such class or function"),
        ("", "other.py:keep", "there is no file"),
    ],
)
def test_a_named_file_that_is_broken_fails_the_load(folder, code, named, words):
    (folder / "own.py").write_text(code)
    with pytest.raises(ServeError, match=words) as caught:
        Steps(folder, slots=2, trust_remote_code="true", logits_processors=f"one={named}")
    assert caught.value.code is Code.LOAD_FAILED


@pytest.mark.parametrize("code", ["while True:\n    pass", "import time\ntime.sleep(600)"])
def test_a_file_that_never_ends_fails_the_load_by_its_name(folder, code):
    (folder / "own.py").write_text(code)
    with pytest.raises(
        ServeError, match=r"own\.py cannot be run: CallTooLong: it took longer than 0\.3 s"
    ) as caught:
        FolderCode("m", True, 0.3).run(folder / "own.py")
    assert caught.value.code is Code.LOAD_FAILED
