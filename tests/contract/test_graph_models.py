"""Graphs of OpenVINO and Paddle, held against the network that they were made from: facts, answers, options, and files
that are none.
"""

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.harness.graph_models import onnx_model, probabilities, spec_of, write_openvino, write_paddle
from tests.harness.table_models import ROWS, answers, digits

from trivium.catalogue import CATALOGUE
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.running import Placement
from trivium.types.spec import Isolation, ModelSpec, TensorSpec

WRITES = {
    "openvino": lambda folder: write_openvino(folder / "m.xml"),
    "paddle": lambda folder: write_paddle(folder / "inference"),
    "paddle before 3": lambda folder: write_paddle(folder / "inference", is_old=True),
}
HERE = Placement("m_0", Isolation.THREAD)


@pytest.mark.parametrize("kind", WRITES)
def test_answers_are_the_network_s(tmp_path: Path, kind: str) -> None:
    engine = kind.partition(" ")[0]
    spec = spec_of(WRITES[kind](tmp_path), engine)
    assert spec.inputs == (TensorSpec("x", DataType.FP32, (64,)),)
    (output,) = spec.outputs
    assert output.dims == (10,)
    rows = digits()[0][:24]
    outcomes = answers(spec, rows[:1], rows[1:20], rows[20:])
    found = np.concatenate([one[output.name] for one in outcomes])
    np.testing.assert_allclose(found, probabilities(rows), atol=1e-5)


@pytest.mark.parametrize(("engine", "where"), [("openvino", Isolation.THREAD), ("paddle", Isolation.PROCESS)])
def test_where_each_runs_follows_from_what_it_does(engine: str, where: Isolation) -> None:
    assert CATALOGUE.engines[engine].isolation[0] is where


@pytest.mark.parametrize(
    ("engine", "parameters"),
    [
        ("openvino", {"threads": "2", "streams": "2", "performance_hint": "throughput"}),
        ("openvino", {"precision": "f32", "target_device": "cpu"}),
        ("paddle", {"threads": "2", "onednn": "false"}),
        ("paddle", {"ir_optim": "false"}),
        ("paddle", {"remove_passes": "fc_fuse_pass, conv_bn_fuse_pass"}),
    ],
)
def test_what_an_engine_may_be_told_changes_no_answer(tmp_path: Path, engine: str, parameters) -> None:
    spec = spec_of(WRITES[engine](tmp_path), engine, **parameters)
    rows = digits()[0][:5]
    (outcome,) = answers(spec, rows)
    np.testing.assert_allclose(outcome[spec.outputs[0].name], probabilities(rows), atol=1e-5)


@pytest.mark.parametrize(
    ("engine", "parameters", "words"),
    [
        ("openvino", {"precision": "f8"}, "precision"),
        ("openvino", {"threads": "0"}, "threads"),
        ("openvino", {"target_device": "NPU9"}, "OpenVINO's device NPU9"),
        ("paddle", {"onednn": "maybe"}, "onednn"),
    ],
)
def test_a_parameter_that_cannot_be_honoured_is_refused(
    tmp_path: Path, engine: str, parameters, words
) -> None:
    spec = spec_of(WRITES[engine](tmp_path), engine)
    with pytest.raises(ServeError, match=words):
        CATALOGUE.engines[engine].open(replace(spec, parameters=parameters), HERE)  # type: ignore[attr-defined]


def test_an_unknown_parameter_is_reported(tmp_path: Path) -> None:
    path = write_openvino(tmp_path / "m.xml")
    facts = CATALOGUE.engines["openvino"].facts(
        ModelSpec("m", "1", tmp_path, "openvino", path.name, parameters={"thread": "1"})
    )
    assert "thread" in facts.notes[0]


def test_openvino_opens_a_file_of_onnx_too(tmp_path: Path) -> None:
    onnx.save(onnx_model(), tmp_path / "m.onnx")
    spec = spec_of(tmp_path / "m.onnx", "openvino")
    rows = digits()[0][:5]
    np.testing.assert_allclose(answers(spec, rows)[0]["y"], probabilities(rows), atol=1e-4)


def test_openvino_answers_texts(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    given = openvino.opset8.parameter([-1], openvino.Type.string, name="said")
    model = openvino.Model([given], [given], "echo")
    openvino.save_model(model, tmp_path / "m.xml")
    spec = spec_of(tmp_path / "m.xml", "openvino")
    spec = replace(spec, batching=replace(ROWS, merge=False))
    assert spec.inputs[0].datatype is DataType.BYTES
    texts = np.array([b"yes", "größer".encode(), b""], object)
    assert answers(spec, texts)[0][spec.outputs[0].name].tolist() == texts.tolist()


def test_weights_that_lie_elsewhere_are_named(tmp_path: Path) -> None:
    write_openvino(tmp_path / "m.xml").with_suffix(".bin").rename(tmp_path / "other.bin")
    with pytest.raises(ServeError, match=r"names weights, and there is no .*m\.bin"):
        spec_of(tmp_path / "m.xml", "openvino")
    write_paddle(tmp_path / "inference").with_suffix(".pdiparams").unlink()
    with pytest.raises(ServeError, match=r"there is no .*inference\.pdiparams"):
        spec_of(tmp_path / "inference.json", "paddle")


@pytest.mark.parametrize("engine", ["openvino", "paddle"])
def test_rows_of_another_width_are_the_client_s_fault(tmp_path: Path, engine: str) -> None:
    spec = spec_of(WRITES[engine](tmp_path), engine)
    good, wrong = digits()[0][:2], np.zeros((1, 63), np.float32)
    (refused,) = answers(spec, wrong)
    assert isinstance(refused, ServeError)
    assert refused.code in (Code.INVALID, Code.MODEL_FAILED)
    assert f"{engine[:4]}" in refused.message.lower()
    np.testing.assert_allclose(answers(spec, good)[0][spec.outputs[0].name], probabilities(good), atol=1e-5)


def test_a_tensor_that_the_file_has_not_is_named(tmp_path: Path) -> None:
    spec = spec_of(write_openvino(tmp_path / "m.xml"), "openvino")
    other = replace(spec, outputs=(replace(spec.outputs[0], name="scores"),))
    with pytest.raises(ServeError, match=r"there is no output 'scores' in .*m\.xml, which has y"):
        CATALOGUE.engines["openvino"].open(other, HERE)  # type: ignore[attr-defined]


OPENS = """
import json, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from trivium.catalogue import CATALOGUE
from trivium.types.errors import ServeError
from trivium.types.spec import ModelSpec
engine = CATALOGUE.engines[sys.argv[1]]
for path in map(Path, sys.argv[2:]):
    try:
        engine.facts(ModelSpec("m", "1", path.parent, engine.name, path.name))
        print(json.dumps([path.parent.name, "", ""]), flush=True)
    except ServeError as error:
        print(json.dumps([path.parent.name, error.code.value, error.message]), flush=True)
"""


def damaged(engine: str, folder: Path) -> list[Path]:
    """Write ten files that are none, or not what they were, from one seed; return the paths to open."""
    chance = random.Random(7)
    good = WRITES[engine](folder / "good")
    beside = good.with_suffix(".bin" if engine == "openvino" else ".pdiparams")
    paths = []

    def put(kind: str, main: bytes, more: bytes) -> None:
        place = folder / kind
        place.mkdir()
        (place / good.name).write_bytes(main)
        (place / beside.name).write_bytes(more)
        paths.append(place / good.name)

    main, more = good.read_bytes(), beside.read_bytes()
    for share in (0.2, 0.7):
        put(f"cut{share}", main[: int(len(main) * share)], more)
    put("cut weights", main, more[: len(more) // 2])
    for number in range(3):
        bent = bytearray(main)
        for _ in range(30):
            bent[chance.randrange(len(bent))] = chance.randrange(256)
        put(f"bent{number}", bytes(bent), more)
    put("zeros", bytes(len(main)), more)
    put("empty", b"", b"")
    put("another", b"tree\nversion=v4\n", more)
    put("nothing in it", b"{}" if good.suffix == ".json" else b"<net />", more)
    return paths


def opened(engine: str, paths: list[Path]) -> dict[str, tuple[str, str]]:
    """Return what is said of each file, by its folder's name: a code and a message, or empty texts. What ends the
    process that opens it ends that of no other.
    """
    program, told = OPENS.format(root=os.getcwd()), {}
    while paths:
        command = [sys.executable, "-c", program, engine, *map(str, paths)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["')]
        told |= {name: (code, message) for name, code, message in lines}
        if len(lines) < len(paths):
            told[paths[len(lines)].parent.name] = ("", "")
        paths = paths[len(lines) + 1 :]
    return told


@pytest.mark.parametrize("engine", ["openvino", "paddle"])
def test_damaged_files_are_refused_by_name_or_served(tmp_path: Path, engine: str) -> None:
    paths = damaged(engine, tmp_path)
    told = opened(engine, paths)
    refused = {kind: said for kind, said in told.items() if said[0]}
    assert {"empty", "zeros", "another", "nothing in it", "cut0.2"} <= refused.keys(), told
    for kind, (code, message) in refused.items():
        assert code in (Code.LOAD_FAILED.value, Code.UNSUPPORTED.value), kind
        assert str(tmp_path / kind) in message
        assert ("OpenVINO" if engine == "openvino" else "Paddle") in message


@pytest.mark.parametrize("engine", ["openvino", "paddle"])
def test_a_folder_or_a_pipe_is_refused_at_once(tmp_path: Path, engine: str) -> None:
    name = "m.xml" if engine == "openvino" else "inference.json"
    os.mkfifo(tmp_path / name)
    (tmp_path / name).with_suffix(".bin" if engine == "openvino" else ".pdiparams").write_bytes(b"")
    with pytest.raises(ServeError):
        spec_of(tmp_path / name, engine)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ServeError, match="folder"):
        spec_of(tmp_path / "folder", engine)
