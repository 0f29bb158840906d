"""Models of TensorFlow, held beside the library: facts, answers, options, what they may not do, and damaged files."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness import saved_models
from tests.harness.saved_models import (
    WORDS,
    answers,
    own_answers,
    process,
    refusal,
    save_digits,
    save_graph,
    save_hostile_start,
    save_keras,
    save_old,
    save_other,
    save_shapes,
    save_unfrozen,
    save_words,
    spec_of,
)
from tests.harness.table_models import digits

from trivium.types.datatype import DataType
from trivium.types.errors import Code
from trivium.types.spec import TensorSpec

pytest.importorskip("tensorflow.version")
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    with process() as called:
        yield called


@pytest.fixture(scope="module")
def models(ask: Ask, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("models")
    ask(save_digits, place / "digits")
    ask(save_graph, place / "digits.pb")
    ask(save_words, place / "words")
    return place


def test_a_saved_model_answers_as_the_library_does(ask: Ask, models: Path) -> None:
    spec = ask(spec_of, models / "digits")
    assert spec.inputs == (TensorSpec("pixels", DataType.FP32, (64,)),)
    assert spec.outputs == (
        TensorSpec("digit", DataType.INT64, ()),
        TensorSpec("scores", DataType.FP32, (10,)),
    )
    rows, wanted = digits()
    outcomes = ask(answers, spec, *({"pixels": one} for one in (rows[:1], rows[1:20], rows[20:24])))
    own = ask(own_answers, models / "digits", pixels=rows[:24])
    scores = np.concatenate([one["scores"] for one in outcomes])
    np.testing.assert_allclose(scores, own["scores"], atol=1e-5)
    found = np.concatenate([one["digit"] for one in outcomes])
    np.testing.assert_array_equal(found, own["digit"])
    assert (found == wanted[:24]).mean() > 0.9


def test_a_frozen_graph_answers_as_the_saved_model(ask: Ask, models: Path) -> None:
    spec = ask(spec_of, models / "digits.pb")
    assert spec.inputs == (TensorSpec("pixels", DataType.FP32, (64,)),)
    assert spec.outputs == (TensorSpec("scores", DataType.FP32, (10,)),)
    rows = digits()[0][:24]
    (outcome,) = ask(answers, spec, {"pixels": rows})
    own = ask(own_answers, models / "digits", pixels=rows)
    np.testing.assert_allclose(outcome["scores"], own["scores"], atol=1e-5)


def test_strings_are_bytes_and_a_table_comes_from_the_model_s_own_file(ask: Ask, models: Path) -> None:
    spec = ask(spec_of, models / "words")
    assert [(one.name, one.datatype) for one in (*spec.inputs, *spec.outputs)] == [
        ("words", DataType.BYTES),
        ("loud", DataType.BYTES),
        ("place", DataType.INT64),
    ]
    told = np.array([b"cat", b"dog", b"ant"], object)
    (outcome,) = ask(answers, spec, {"words": told})
    assert outcome["loud"].tolist() == [b"CAT", b"DOG", b"ANT"]
    assert outcome["place"].tolist() == [WORDS.index("cat"), -1, WORDS.index("ant")]


def test_the_signature_is_chosen_and_one_that_is_not_there_named(ask: Ask, models: Path) -> None:
    rows = digits()[0][:2]
    spec = ask(spec_of, models / "digits", signature="darken", threads="2", inter_op_threads="2")
    (outcome,) = ask(answers, spec, {"pixels": rows})
    np.testing.assert_array_equal(outcome["dark"], rows * 2)
    code, words = ask(refusal, models / "digits", signature="dark")
    assert code == "LOAD_FAILED"
    assert "no signature 'dark'" in words
    assert "Set signature to one of darken, serving_default." in words
    code, words = ask(refusal, models / "digits", tags="train")
    assert (code, "Write the tags of one: serve." in words) == ("LOAD_FAILED", True)


def test_the_only_signature_serves_unasked(ask: Ask, tmp_path: Path) -> None:
    ask(save_digits, tmp_path / "m", signatures={"predict": "ask"})
    assert [one.name for one in ask(spec_of, tmp_path / "m").outputs] == ["digit", "scores"]
    ask(save_digits, tmp_path / "n", signatures={"predict": "ask", "darken": "darken"})
    assert "Set signature to one of darken, predict." in ask(refusal, tmp_path / "n")[1]


def test_a_model_of_tensorflow_1_has_its_variables_and_tables(ask: Ask, tmp_path: Path) -> None:
    ask(save_old, tmp_path / "m")
    spec = ask(spec_of, tmp_path / "m")
    (outcome,) = ask(answers, spec, {"x": np.array([[1, 1], [2, 2]], np.float32)})
    assert outcome["y"].ravel().tolist() == [5, 10]
    assert outcome["words"].tolist() == [b"five", b"other"]
    assert "Write the tags of one: old." in ask(refusal, tmp_path / "m", tags="serve")[1]


def test_operations_that_a_file_names_give_a_graph_its_variables(ask: Ask, tmp_path: Path) -> None:
    """Triton's TF_INIT_OPS_FILE: in the version's folder, else in the model's; outputs as the configuration says."""
    path = tmp_path / "m" / "1" / "model.graphdef"
    ask(save_unfrozen, path)
    assert "no init_ops_file 'a.json'" in ask(refusal, path, init_ops_file="a.json")[1]
    for folder, name, text, words in (
        (path.parent, "a.json", "{}", "does not name operations of the graph"),
        (path.parent, "b.json", '{"init_ops": ["none"]}', "does not name operations of the graph"),
    ):
        (folder / name).write_text(text)
        assert words in ask(refusal, path, init_ops_file=name)[1]
    assert "no init_ops_file '../a.json'" in ask(refusal, path, init_ops_file="../a.json")[1]
    (path.parents[1] / "c.json").write_text('{"init_ops": ["init"]}')
    spec = ask(spec_of, path, init_ops_file="c.json")
    assert [one.name for one in (*spec.inputs, *spec.outputs)] == ["x", "y"]
    middle = replace(spec, outputs=(replace(spec.outputs[0], name="middle"), *spec.outputs))
    (outcome,) = ask(answers, middle, {"x": np.ones(2, np.float32)})
    assert (outcome["middle"].tolist(), outcome["y"].tolist()) == ([4, 4], [5, 5])
    fed = replace(spec, inputs=(replace(spec.inputs[0], name="middle"),), outputs=spec.outputs)
    assert ask(answers, fed, {"middle": np.ones(2, np.float32)})[0]["y"].tolist() == [2, 2]


def test_bits_of_bf16_and_dims_that_only_a_run_tells(ask: Ask, tmp_path: Path) -> None:
    ask(save_shapes, tmp_path / "m")
    spec = ask(spec_of, tmp_path / "m")
    assert [(one.datatype, one.dims) for one in spec.outputs] == [(DataType.BF16, ()), (DataType.BF16, (-1,))]
    (outcome,) = ask(answers, spec, {"x": np.array([0x3F80, 0x4000], np.uint16)})
    assert outcome["twice"].tolist() == [0x4000, 0x4080]
    assert outcome["wide"].tolist() == [[0x3F80], [0x4000]]
    ask(save_shapes, tmp_path / "n", None)
    assert "how many dimensions the input 'x' has" in ask(refusal, tmp_path / "n")[1]


def test_what_keras_exports_is_served(ask: Ask, tmp_path: Path) -> None:
    ask(save_keras, tmp_path / "m")
    spec = ask(spec_of, tmp_path / "m")
    (one,) = spec.inputs
    rows = np.ones((2, 3), np.float32)
    (outcome,) = ask(answers, spec, {one.name: rows})
    own = ask(own_answers, tmp_path / "m", **{one.name: rows})
    for name, array in own.items():
        np.testing.assert_allclose(outcome[name], array, atol=1e-5)


def test_what_a_run_does_not_take_is_the_client_s_fault(ask: Ask, models: Path) -> None:
    spec = ask(spec_of, models / "digits")
    ((code, message),) = ask(answers, spec, {"pixels": digits()[0][:2, :5]})
    assert code is Code.INVALID
    assert "TensorFlow did not run it" in message


@pytest.mark.parametrize(
    ("kind", "operation"),
    [("write", "WriteFile"), ("print", "PrintV2"), ("read", "ReadFile"), ("save", "SaveV2")],
)
def test_a_graph_that_reaches_for_files_is_served_by_trust_alone(
    ask: Ask, tmp_path: Path, kind: str, operation: str
) -> None:
    marker = tmp_path / "marker"
    if kind == "read":
        marker.write_text("here")
    ask(save_other, tmp_path / "m", kind, str(marker))
    code, words = ask(refusal, tmp_path / "m")
    assert code == "LOAD_FAILED"
    assert f"{operation} (node " in words
    assert "--engine-parameters tensorflow.trust_file_operations=true" in words
    assert kind == "read" or not list(tmp_path.glob("marker*"))
    spec = ask(spec_of, tmp_path / "m", saved_models.Batching(), trust_file_operations="true")
    (outcome,) = ask(answers, spec, {"x": np.ones(2, np.float32)})
    assert outcome["y"].shape == (2,)
    assert list(tmp_path.glob("marker*"))


def test_a_model_that_writes_as_it_is_initialised_writes_nothing(ask: Ask, tmp_path: Path) -> None:
    ask(save_hostile_start, tmp_path / "m", str(tmp_path / "marker"))
    assert "WriteFile (node " in ask(refusal, tmp_path / "m")[1]
    assert not (tmp_path / "marker").exists()


def test_a_model_that_calls_python_is_never_served(ask: Ask, tmp_path: Path) -> None:
    ask(save_other, tmp_path / "m", "code")
    _, words = ask(refusal, tmp_path / "m", trust_file_operations="true")
    assert "it calls Python functions, which are not in its files: EagerPyFunc" in words
    assert "handler in Python" in words


def test_a_table_may_not_be_filled_from_a_file_of_others(ask: Ask, models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / "words", tmp_path / "m")
    data = (tmp_path / "m" / "saved_model.pb").read_bytes()
    named = b"words-words.txt"
    (tmp_path / "m" / "saved_model.pb").write_bytes(data.replace(named, b"../../words.txt"))
    assert len(named) == len(b"../../words.txt")
    assert "it names the file ../../words.txt among its own" in ask(refusal, tmp_path / "m")[1]


def test_an_unknown_operation_is_named_with_the_way_out(ask: Ask, models: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.graphdef"
    path.write_bytes((models / "digits.pb").read_bytes().replace(b"Softmax", b"Softmix"))
    code, words = ask(refusal, path)
    assert code == "LOAD_FAILED"
    assert "does not know the operations Softmix (node scores)" in words
    assert "python -m tf2onnx.convert" in words


@pytest.mark.parametrize("name", ["m.keras", "m.h5"])
def test_files_of_keras_are_refused_with_the_way_out(ask: Ask, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PK")
    assert "model.export('folder')" in ask(refusal, tmp_path / name)[1]


def test_it_keeps_what_every_engine_keeps() -> None:
    file = Path(__file__).with_name("test_engines.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file), "-k", "tensorflow"]
    given = {**os.environ, saved_models.ALONE: "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=given)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "skipped" not in done.stdout


SCRIPT = """
import sys
from pathlib import Path
from tests.harness.saved_models import refusal
for path in sys.argv[1:]:
    print(*refusal(Path(path)), sep="|")
"""


def test_damaged_files_are_refused_or_served(models: Path, tmp_path: Path) -> None:
    """They are looked at in the probe's process first; an instance runs in a thread."""
    chance = random.Random(38)
    paths = []
    for turn, file in enumerate(
        ["digits/saved_model.pb", "digits/variables/variables.index", "digits.pb"] * 2
    ):
        folder = tmp_path / str(turn)
        shutil.copytree(models, folder)
        data = bytearray((folder / file).read_bytes())
        if turn % 2:
            data = data[: chance.randrange(len(data))]
        else:
            for _ in range(chance.randrange(4, 40)):
                data[chance.randrange(len(data))] = chance.randrange(256)
        (folder / file).write_bytes(data)
        paths.append(folder / Path(file).parts[0])
    for name, data in (("empty.pb", b""), ("zeros.pb", b"\0" * 999), ("other.pb", b"{}" * 99)):
        (tmp_path / name).write_bytes(data)
        paths.append(tmp_path / name)
    os.mkfifo(tmp_path / "pipe.pb")
    (tmp_path / "folder.pb").mkdir()
    paths += [tmp_path / "pipe.pb", tmp_path / "folder.pb"]
    command = [sys.executable, "-c", SCRIPT, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith(("LOAD_FAILED|", "|"))]
    assert len(lines) == len(paths), done.stdout
    for path, line in zip(paths, lines, strict=True):
        assert line == "|" or (str(path) in line and "TensorFlow" in line), line
    assert all(line != "|" for line in lines[-5:])
