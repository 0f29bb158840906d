"""Models of OpenVINO and Paddle, held beside the libraries that made them: facts, answers, options, damaged files."""

import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.digit_networks import (
    NEWER,
    OLDER,
    chances,
    completed,
    network,
    pictures,
    run,
    write_onnx,
    write_openvino,
    write_paddle,
)
from tests.harness.table_models import HERE, ROWS, answers

from trivium.catalogue import CATALOGUE
from trivium.core.execution import execute
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.running import Batch
from trivium.types.spec import Batching, Isolation, TensorSpec

ALONE = "TRIVIUM_TEST_OPENVINO"
"""Set in a process that has OpenVINO, and runs nothing else behind it: see ADR 60."""

is_alone = ALONE in os.environ
alone = pytest.mark.skipif(not is_alone, reason="in a process of its own, by the last test here")
X, SCORES = TensorSpec("x", DataType.FP32, (64,)), TensorSpec("another", DataType.FP32, (10,))


@pytest.fixture(scope="module")
def paddle(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the programs of Paddle, in both forms."""
    root = tmp_path_factory.mktemp("paddle")
    return {name: write_paddle(root / name.replace(".", "_"), name) for name in (NEWER, OLDER)}


def ask(engine: str, path: Path, *parameters: str) -> Any:
    """Return what our engine makes of a file, in a process of its own."""
    return json.loads(run("ask", engine, path, *parameters).stdout.splitlines()[-1])


@alone
def test_openvino_answers_as_the_library_and_as_what_was_converted(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    path = write_openvino(tmp_path / "model.xml")
    spec = completed(path, "openvino", {})
    assert (spec.inputs, spec.outputs) == ((X,), (SCORES,))
    rows = pictures()
    found = np.concatenate([one["another"] for one in answers(spec, rows[:1], rows[1:8], rows[8:])])
    bare = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(rows)[0]
    np.testing.assert_allclose(found, bare, atol=1e-5)
    np.testing.assert_allclose(found, chances(), atol=1e-4)
    assert found.argmax(axis=1).tolist() == network().predict(rows).tolist()


@alone
def test_a_file_of_onnx_answers_as_onnx_runtime_does(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    path = write_onnx(tmp_path / "model.onnx")
    rows = pictures()
    found, known = (
        answers(completed(path, engine, {}), rows)[0]["scores"] for engine in ("openvino", "onnx")
    )
    np.testing.assert_allclose(found, known, atol=1e-4)


@alone
@pytest.mark.parametrize(
    "parameters",
    [
        {"threads": "2"},
        {"INFERENCE_NUM_THREADS": "0", "NUM_STREAMS": "AUTO", "PERFORMANCE_HINT": "throughput"},
        {"NUM_STREAMS": "numa", "PERFORMANCE_HINT": "CUMULATIVE_THROUGHPUT", "TARGET_DEVICE": "AUTO"},
        {"TARGET_DEVICE": "HETERO:CPU", "threads": "2"},
        {"TARGET_DEVICE": "cpu", "HINT_BF16": "no", "RESHAPE_IO_LAYERS": "NO"},
    ],
)
def test_options_of_openvino_change_no_answer(tmp_path: Path, parameters: dict[str, str]) -> None:
    path = write_openvino(tmp_path / "model.xml")
    (found,) = answers(completed(path, "openvino", parameters), pictures())
    np.testing.assert_allclose(found["another"], chances(), atol=1e-4)


@alone
@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"NUM_STREAMS": "many"}, "'NUM_STREAMS' is 'many'; expected a whole number from 0 to 9999 or auto"),
        ({"PERFORMANCE_HINT": "FAST"}, "expected one of LATENCY, THROUGHPUT, CUMULATIVE_THROUGHPUT"),
        ({"HINT_BF16": "maybe"}, "'HINT_BF16' is 'maybe'"),
        ({"TARGET_DEVICE": "GPU.7"}, "OpenVINO finds CPU"),
        ({"CPU_EXTENSION_PATH": "/l.so"}, "names a library of layers"),
    ],
)
def test_what_openvino_cannot_do_is_refused_by_name(
    tmp_path: Path, parameters: dict[str, str], words: str
) -> None:
    path = write_openvino(tmp_path / "model.xml")
    with pytest.raises(ServeError) as refused:
        completed(path, "openvino", parameters)
    assert words in refused.value.message


@alone
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("SKIP_OV_DYNAMIC_BATCHSIZE", "changes nothing: batches of any size"),
        ("ENABLE_BATCH_PADDING", "changes nothing: batches of any size"),
        ("COMPILATION_NUM_THREADS", "changes nothing"),
        ("CPU_THREADS_NUM", "write INFERENCE_NUM_THREADS"),
        ("CPU_THROUGHPUT_STREAMS", "write NUM_STREAMS"),
        ("NUM_STREAM", "Did you mean 'NUM_STREAMS'?"),
    ],
)
def test_what_openvino_needs_not_is_reported_by_name(tmp_path: Path, name: str, words: str) -> None:
    path = write_openvino(tmp_path / "model.xml")
    spec = completed(path, "openvino", {name: "YES"})
    (note,) = CATALOGUE.engines["openvino"].facts(replace(spec, inputs=(), outputs=())).notes
    assert name in note
    assert words in note


@alone
def test_a_first_dimension_of_one_size_is_opened_where_the_model_batches(tmp_path: Path) -> None:
    path = write_openvino(tmp_path / "model.xml", 1)
    alone = Batching()
    engine = CATALOGUE.engines["openvino"]
    spec = completed(path, "openvino", {}, ROWS)
    assert engine.facts(replace(spec, batching=alone)).inputs[0].dims == (1, 64)
    assert engine.facts(spec).inputs[0].dims == (-1, 64)
    (found,) = answers(spec, pictures())
    np.testing.assert_allclose(found["another"], chances(), atol=1e-4)


@alone
def test_a_first_dimension_that_cannot_be_opened_stays(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    ops = openvino.opset13
    x = ops.parameter([1, 64], openvino.Type.f32, name="x")
    flat = ops.reshape(x, ops.constant(np.array([1, 8, 8])), False)
    openvino.save_model(openvino.Model([flat], [x], "m"), tmp_path / "model.xml")
    spec = replace(completed(tmp_path / "model.xml", "openvino", {}), inputs=(), outputs=())
    facts = CATALOGUE.engines["openvino"].facts(spec)
    assert (facts.inputs[0].dims, facts.batchable) == ((1, 64), False)


@alone
def test_dims_that_are_configured_reshape_the_model_where_it_is_asked_for(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    ops = openvino.opset13
    x = ops.parameter([1, 64], openvino.Type.f32, name="x")
    doubled = ops.add(x, x)
    x.output(0).set_names({"x"})
    doubled.output(0).set_names({"y"})
    openvino.save_model(openvino.Model([doubled], [x], "m"), tmp_path / "model.xml")
    spec = completed(tmp_path / "model.xml", "openvino", {"RESHAPE_IO_LAYERS": "yes"}, Batching())
    engine = CATALOGUE.engines["openvino"]
    wider = replace(spec, inputs=(TensorSpec("x", DataType.FP32, (-1, 7)),), outputs=())
    assert engine.facts(wider).outputs[0].dims == (-1, 7)
    network_of_64 = completed(write_openvino(tmp_path / "fixed" / "model.xml"), "openvino", {}, Batching())
    wrong = replace(network_of_64, inputs=(TensorSpec("x", DataType.FP32, (3, 5)),), outputs=())
    with pytest.raises(ServeError, match="remove RESHAPE_IO_LAYERS"):
        engine.facts(replace(wrong, parameters={"RESHAPE_IO_LAYERS": "YES"}))


@alone
def test_a_tensor_may_be_called_by_any_of_its_names(tmp_path: Path) -> None:
    path = write_openvino(tmp_path / "model.xml")
    spec = replace(completed(path, "openvino", {}), outputs=(replace(SCORES, name="scores"),))
    (found,) = answers(spec, pictures())
    np.testing.assert_allclose(found["scores"], chances(), atol=1e-4)
    with pytest.raises(ServeError, match="there is no output 'points'"):
        answers(replace(spec, outputs=(replace(SCORES, name="points"),)), pictures())


@alone
def test_strings_of_openvino_are_refused_by_name(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    given = openvino.opset13.parameter([-1], openvino.Type.string, name="said")
    openvino.save_model(openvino.Model([given], [given], "echo"), tmp_path / "model.xml")
    with pytest.raises(ServeError, match="is a tensor string; expected one of"):
        completed(tmp_path / "model.xml", "openvino", {})


@alone
def test_shapes_that_do_not_fit_together_are_the_client_s_fault(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    ops = openvino.opset13
    x = ops.parameter([-1, -1], openvino.Type.f32, name="x")
    y = ops.matmul(x, ops.constant(np.ones((64, 3), np.float32)), False, False)
    openvino.save_model(openvino.Model([y], [x], "m"), tmp_path / "model.xml")
    spec = completed(tmp_path / "model.xml", "openvino", {})
    (wrong,), (right,) = (answers(spec, np.ones((2, width), np.float32)) for width in (5, 64))
    assert isinstance(wrong, ServeError)
    assert wrong.code is Code.INVALID
    assert ".cpp" not in wrong.message
    assert right[spec.outputs[0].name].tolist() == [[64.0] * 3] * 2


@alone
def test_a_run_of_openvino_ends_when_it_is_interrupted(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    ops = openvino.opset13
    last = x = ops.parameter([-1, 512], openvino.Type.f32, name="x")
    for _ in range(400):
        last = ops.matmul(last, ops.constant(np.ones((512, 512), np.float32)), False, False)
        last = ops.relu(last)
    openvino.save_model(openvino.Model([last], [x], "m"), tmp_path / "model.xml")
    spec = completed(tmp_path / "model.xml", "openvino", {})
    runner = CATALOGUE.engines["openvino"].open(spec, HERE)  # type: ignore[attr-defined]
    rows = np.zeros((8000, 512), np.float32)
    batch = Batch([0], [Infer(model="m", payload=Tensors.of({"x": rows}))], [len(rows)])
    is_done = threading.Event()

    def interrupt() -> None:
        while not is_done.wait(0.01):
            runner.interrupt()

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    (outcome,) = execute(runner, batch).outcomes
    is_done.set()
    interrupting.join()
    assert isinstance(outcome, ServeError)
    assert "cancel" in outcome.message.lower()
    small = Batch([0], [Infer(model="m", payload=Tensors.of({"x": rows[:1]}))], [1])
    assert not isinstance(execute(runner, small).outcomes[0], ServeError)
    runner.close()


@alone
def test_weights_that_are_not_there_are_named(tmp_path: Path) -> None:
    path = write_openvino(tmp_path / "model.xml")
    path.with_suffix(".bin").unlink()
    with pytest.raises(ServeError) as refused:
        completed(path, "openvino", {})
    assert f"Its weights are in {tmp_path / 'model.bin'}, which is not there" in refused.value.message
    assert ".cpp" not in refused.value.message


@pytest.mark.parametrize("form", [NEWER, OLDER])
def test_paddle_answers_as_the_library_does(paddle: dict[str, Path], form: str) -> None:
    path = paddle[form]
    found = ask("paddle", path)
    (name, *taken), (given, *told) = found["tensors"]
    assert (name, taken) == ("x", ["FP32", [64]])
    assert (given == "fetch_name_0") is (form == NEWER)
    assert told == ["FP32", [10]]
    scores = np.concatenate(found["outcomes"])
    bare = json.loads(run("bare", path, path.with_suffix(".pdiparams")).stdout.splitlines()[-1])
    np.testing.assert_allclose(scores, bare, atol=1e-5)
    np.testing.assert_allclose(scores, chances(), atol=1e-4)


@pytest.mark.parametrize(
    "parameters",
    [
        ("threads=2", "onednn=true", "ir_optim=true"),
        ("onednn=false", "ir_optim=false", "delete_pass=fc_fuse_pass, none_of_them"),
    ],
)
def test_options_of_paddle_change_no_answer(paddle: dict[str, Path], parameters: tuple[str, ...]) -> None:
    for path in paddle.values():
        found = ask("paddle", path, *parameters)
        np.testing.assert_allclose(np.concatenate(found["outcomes"]), chances(), atol=1e-4)


def test_a_wrong_option_of_paddle_is_refused(paddle: dict[str, Path]) -> None:
    assert (
        "'onednn' is 'maybe'; expected true or false"
        in ask("paddle", paddle[NEWER], "onednn=maybe")["refused"]
    )


def test_the_names_of_paddle_1_are_read(paddle: dict[str, Path], tmp_path: Path) -> None:
    shutil.copy(paddle[OLDER], tmp_path / "__model__")
    parameters = paddle[OLDER].with_suffix(".pdiparams")
    shutil.copy(parameters, tmp_path / "__params__")
    found = ask("paddle", tmp_path / "__model__")
    np.testing.assert_allclose(np.concatenate(found["outcomes"]), chances(), atol=1e-4)


@pytest.mark.parametrize("form", [NEWER, OLDER])
def test_parameters_that_are_not_there_are_named(paddle: dict[str, Path], form: str, tmp_path: Path) -> None:
    shutil.copy(paddle[form], tmp_path)
    refused = ask("paddle", tmp_path / form)["refused"]
    assert f"there is no file {tmp_path / 'inference.pdiparams'}" in refused


def damages(chance: random.Random, whole: bytes) -> dict[str, Callable[[Path], object]]:
    """Return ten ways to damage a file: each writes it anew."""
    flipped = bytearray(whole)
    for _ in range(9):
        flipped[chance.randrange(len(flipped))] = chance.randrange(256)
    start = bytearray(whole)
    start[chance.randrange(min(len(start), 64))] ^= 0xFF
    cut = sorted(chance.randrange(1, len(whole)) for _ in range(3))
    return {
        **{f"cut at {size}": (lambda path, size=size: path.write_bytes(whole[:size])) for size in cut},
        "flipped": lambda path: path.write_bytes(flipped),
        "flipped at its start": lambda path: path.write_bytes(start),
        "zeros": lambda path: path.write_bytes(bytes(len(whole))),
        "another engine's": lambda path: path.write_bytes(b"tree\nversion=v4\n" * 20),
        "empty": lambda path: path.write_bytes(b""),
        "a folder": lambda path: path.mkdir(),
        "nothing": lambda path: None,
    }


def test_damaged_files_of_openvino_are_refused_or_served(tmp_path: Path) -> None:
    """Its instances run in threads: a file that ended the process would end the server."""
    pytest.importorskip("openvino")
    path = write_openvino(tmp_path / "model.xml")
    ends = {}
    chance = random.Random(38)
    for file in (path, path.with_suffix(".bin")):
        whole = file.read_bytes()
        some = damages(chance, whole)
        if file != path:
            some = {name: some[name] for name in ("flipped", "empty", "a folder")}
        for name, damage in some.items():
            _replace(file, damage)
            found = ask("openvino", path)
            ends[file.suffix, name] = found.get("refused", "")
            assert "refused" not in found or str(path) in found["refused"]
        _replace(file, lambda file, whole=whole: file.write_bytes(whole))
    for name in ("zeros", "another engine's", "empty", "a folder", "nothing"):
        assert ends[".xml", name], name


def test_damaged_files_of_paddle_are_refused_served_or_end_their_process_alone(
    paddle: dict[str, Path], tmp_path: Path
) -> None:
    ends = {}
    chance = random.Random(38)
    for turn, (name, damage) in enumerate(damages(chance, paddle[NEWER].read_bytes()).items()):
        folder = tmp_path / str(turn)
        shutil.copytree(paddle[NEWER].parent, folder)
        _replace(folder / NEWER, damage)
        try:
            found = ask("paddle", folder / NEWER)
        except AssertionError as error:
            ends[name] = f"ended: {error}"
            continue
        ends[name] = found.get("refused", "")
        assert "refused" not in found or f"{folder / NEWER}" in found["refused"]
    for name in ("zeros", "another engine's", "empty", "a folder", "nothing"):
        assert ends[name].startswith("Model 'm': "), (name, ends[name])


def _replace(path: Path, damage: Callable[[Path], object]) -> None:
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    damage(path)


def test_where_each_runs_follows_from_what_it_does() -> None:
    assert CATALOGUE.engines["openvino"].isolation == (Isolation.PROCESS,)
    assert CATALOGUE.engines["paddle"].isolation == (Isolation.PROCESS,)


@pytest.mark.skipif(is_alone, reason="this is that process")
def test_openvino_in_a_process_of_its_own() -> None:
    pytest.importorskip("openvino")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, ALONE: "1"},
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout or "." in done.stdout
