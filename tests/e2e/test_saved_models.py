"""Models of TensorFlow in the real server: digits and words, by every format and protocol, held beside the library."""

import io
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from tests.harness.digit_networks import network
from tests.harness.mlflow_folders import mlmodel, save
from tests.harness.saved_models import own_answers, process, save_digits, save_graph, save_other, save_words
from tests.harness.server_process import ServerProcess, serve
from tests.harness.table_models import digits
from tests.harness.v2_clients import infer

from trivium import ndlist

pytest.importorskip("tensorflow.version")

ROWS = 20
SAVED = """platform: "tensorflow_savedmodel"
max_batch_size: 64
input [{ name: "pixels" data_type: TYPE_FP32 dims: [ 64 ] }]
output [
  { name: "scores" data_type: TYPE_FP32 dims: [ 10 ] },
  { name: "digit" data_type: TYPE_INT64 dims: [ 1 ] reshape { shape: [ ] } }
]
instance_group [{ count: 2 kind: KIND_CPU }]
dynamic_batching { preferred_batch_size: [ 8 ] }
parameters [
  { key: "TF_NUM_INTRA_THREADS" value: { string_value: "2" } },
  { key: "TF_NUM_INTER_THREADS" value: { string_value: "0" } },
  { key: "TF_USE_PER_SESSION_THREADS" value: { string_value: "1" } },
  { key: "TF_GRAPH_TAG" value: { string_value: "serve" } },
  { key: "TF_SIGNATURE_DEF" value: { string_value: "serving_default" } }
]
"""
GRAPH = """platform: "tensorflow_graphdef"
max_batch_size: 32
input [{ name: "pixels" data_type: TYPE_FP32 dims: [ 64 ] }]
output [{ name: "scores" data_type: TYPE_FP32 dims: [ 10 ] }]
"""
MODELS = (
    "bare",
    "bare_graph",
    "bare_pb",
    "triton_saved",
    "triton_untold",
    "triton_graph",
    "djl",
    "djl_inner",
    "mlflow",
)


def wanted() -> list[int]:
    """Return what the network itself says of these pictures: it takes one five for a nine."""
    return [int(one) for one in network().predict(digits()[0][:ROWS] / np.float32(16))]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    """The models, and what TensorFlow itself answers to the first pictures."""
    root = tmp_path_factory.mktemp("models")
    with process() as ask:
        ask(save_digits, root / "bare")
        ask(save_graph, root / "bare_graph.graphdef")
        ask(save_words, root / "words")
        ask(save_other, root / "writer", "write", str(root / "marker"))
        own = ask(own_answers, root / "bare", pixels=digits()[0][:ROWS])
    shutil.copy(root / "bare_graph.graphdef", root / "bare_pb.pb")
    repository = root / "repository"
    for name, config in (("triton_saved", SAVED), ("triton_untold", ""), ("triton_graph", GRAPH)):
        version = repository / name / "1"
        version.mkdir(parents=True)
        if config is GRAPH:
            shutil.copy(root / "bare_graph.graphdef", version / "model.graphdef")
        else:
            shutil.copytree(root / "bare", version / "model.savedmodel")
        if config:
            (repository / name / "config.pbtxt").write_text(config)
    shutil.copytree(root / "bare", root / "djl")
    (root / "djl" / "serving.properties").write_text(
        "engine=tensorflow\noption.Tags=serve\noption.SignatureDefKey=serving_default\n"
    )
    shutil.copytree(root / "bare", root / "djl_inner" / "djl_inner")
    (root / "djl_inner" / "serving.properties").write_text("engine=TensorFlow\n")
    keys = {
        "saved_model_dir": "tfmodel",
        "meta_graph_tags": ["serve"],
        "signature_def_key": "serving_default",
    }
    tensor = {"type": "tensor", "name": "pixels", "tensor-spec": {"dtype": "float32", "shape": [-1, 64]}}
    save(root / "mlflow", mlmodel("tensorflow", keys, signature=[tensor]))
    shutil.copytree(root / "bare", root / "mlflow" / "tfmodel")
    return root, own


@pytest.fixture(scope="module")
def server(made: tuple[Path, dict[str, np.ndarray]]) -> Iterator[ServerProcess]:
    root, _ = made
    names = ("bare", "bare_graph.graphdef", "bare_pb.pb", "words", "repository", "djl", "djl_inner", "mlflow")
    with serve(root / "log", *(root / name for name in names)) as served:
        yield served


def test_a_scoring_body_of_mlflow_names_the_digits(server: ServerProcess, made) -> None:
    body = {"inputs": {"pixels": digits()[0][:ROWS].tolist()}}
    answer = httpx.post(f"{server.url}/invocations?model_name=mlflow", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    check(np.asarray(answer.json()["predictions"]["scores"]), made[1])


def check(found: np.ndarray, own: dict[str, np.ndarray]) -> None:
    """The right digits, and the library's own probabilities."""
    np.testing.assert_allclose(found, own["scores"], atol=1e-5)
    assert found.argmax(axis=1).tolist() == wanted()


@pytest.mark.parametrize("route", ["json", "binary", "grpc"])
@pytest.mark.parametrize("model", MODELS)
def test_every_folder_names_the_digit(server: ServerProcess, made, model: str, route: str) -> None:
    step = 4 if model == "triton_untold" else ROWS  # what Triton fills in for max_batch_size
    parts = [
        infer(server, model, "pixels", digits()[0][at : at + step], route) for at in range(0, ROWS, step)
    ]
    found = {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
    check(found["scores"], made[1])
    if "digit" in found:
        assert found["digit"].ravel().tolist() == wanted()


@pytest.mark.parametrize("model", ["djl", "djl_inner", "bare"])
def test_a_djl_folder_answers_arrays(server: ServerProcess, made, model: str) -> None:
    body = io.BytesIO()
    np.savez(body, digits()[0][:ROWS])
    headers = {"Content-Type": "tensor/npz", "Accept": "tensor/npz"}
    url = f"{server.url}/predictions/{model}"
    answer = httpx.post(url, content=body.getvalue(), headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    with np.load(io.BytesIO(answer.content)) as arrays:
        found = [arrays[name] for name in arrays.files]
    assert found[0].tolist() == wanted()
    check(found[1], made[1])


def test_a_djl_folder_answers_ndlists_and_json(server: ServerProcess, made) -> None:
    rows, url = digits()[0][:ROWS], f"{server.url}/predictions/djl"
    headers = {"Content-Type": "tensor/ndlist", "Accept": "tensor/ndlist"}
    answer = httpx.post(url, content=ndlist.encode([rows]), headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    _, scores = ndlist.decode(answer.content)
    check(np.asarray(scores), made[1])
    answer = httpx.post(url, json=rows.tolist(), timeout=60)
    assert answer.status_code == 200, answer.text
    found = {one["name"]: np.reshape(one["data"], one["shape"]) for one in answer.json()["outputs"]}
    check(found["scores"], made[1])


@pytest.mark.parametrize("route", ["json", "binary", "grpc"])
def test_words_are_strings_both_ways(server: ServerProcess, route: str) -> None:
    found = infer(server, "words", "words", np.array([b"cat", b"dog"], object), route)
    loud = [one.decode() if isinstance(one, bytes) else str(one) for one in found["loud"]]
    assert (found["place"].tolist(), loud) == ([2, -1], ["CAT", "DOG"])


def test_rows_of_another_width_are_the_client_s_fault(server: ServerProcess) -> None:
    tensor = {"name": "pixels", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}
    answer = httpx.post(f"{server.url}/v2/models/bare/infer", json={"inputs": [tensor]}, timeout=60)
    assert (answer.status_code, "64" in answer.text) == (400, True)


def test_the_log_has_no_lines_of_the_library(server: ServerProcess, made) -> None:
    httpx.get(f"{server.url}/v2/models/bare")
    log = (made[0] / "log").read_text()
    assert "absl" not in log
    assert "oneDNN" not in log


def test_a_model_that_writes_a_file_is_refused_and_writes_nothing(made) -> None:
    root, _ = made
    command = [sys.executable, "-m", "trivium.cli.main", "check", str(root / "writer")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "trust_file_operations=true" in " ".join((done.stdout + done.stderr).split())
    assert not (root / "marker").exists()
