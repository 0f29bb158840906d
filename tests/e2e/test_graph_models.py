"""Models of OpenVINO and Paddle in the real server: bare, as Triton's and DJL's folders, for all clients."""

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from tests.e2e.test_table_models import ask
from tests.harness.digit_networks import (
    NEWER,
    OLDER,
    PICTURES,
    chances,
    network,
    pictures,
    write_onnx,
    write_openvino,
    write_paddle,
)
from tests.harness.server_process import ServerProcess, serve

from trivium.codecs import ndlist
from trivium.types.payload import Tensors

ROWS = 4
"""Rows of a request: what Triton's models take without a word about batches."""
BARE = ("graph", "folder", "inference")
TRITON = ("ov_bare", "ov_named", "ov_onnx")
DJL = ("djl_newer", "djl_older")
NAMED = """backend: "openvino"
max_batch_size: 32
input [{ name: "x" data_type: TYPE_FP32 dims: [ 64 ] }]
output [{ name: "scores" data_type: TYPE_FP32 dims: [ 10 ] }]
instance_group [{ count: 2 kind: KIND_CPU }]
parameters: { key: "NUM_STREAMS" value: { string_value: "1" } }
parameters: { key: "PERFORMANCE_HINT" value: { string_value: "LATENCY" } }
parameters: { key: "ENABLE_BATCH_PADDING" value: { string_value: "YES" } }
dynamic_batching {}
"""
ONNX = """backend: "openvino"
input [{ name: "x" data_type: TYPE_FP32 dims: [ -1, 64 ] }]
default_model_filename: "model.onnx"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("models")
    repository = root / "repository"
    write_openvino(repository / "ov_bare" / "1" / "model.xml")
    write_openvino(repository / "ov_named" / "1" / "model.xml", 1)
    (repository / "ov_named" / "config.pbtxt").write_text(NAMED)
    write_onnx(repository / "ov_onnx" / "1" / "model.onnx")
    (repository / "ov_onnx" / "config.pbtxt").write_text(ONNX)
    write_openvino(root / "folder" / "model.xml")
    write_paddle(root / "djl_newer", NEWER)
    write_paddle(root / "djl_older", OLDER)
    settings = "engine=paddlepaddle\noption.enableMKLDNN=true\noption.removePass=fc_fuse_pass\n"
    (root / "djl_older" / "serving.properties").write_text(settings)
    bare = shutil.copytree(root / "djl_newer", root / "bare") / NEWER
    paths = [write_openvino(root / "graph.xml"), bare, repository]
    paths += [root / name for name in ("folder", *DJL)]
    with serve(root / "log", *paths) as served:
        yield served


@pytest.mark.parametrize("route", ["json", "binary", "grpc"])
@pytest.mark.parametrize("model", [*BARE, *TRITON, *DJL])
def test_a_model_names_the_digit(server: ServerProcess, model: str, route: str) -> None:
    parts = [ask(server, model, part, route) for part in np.split(pictures(), PICTURES // ROWS)]
    found = np.concatenate([scores for part in parts for scores in part.values()])
    assert found.shape == (PICTURES, 10)
    assert found.argmax(axis=1).tolist() == network().predict(pictures()).tolist()
    np.testing.assert_allclose(found, chances(), atol=1e-4)


@pytest.mark.parametrize("model", [*BARE, *TRITON, *DJL])
@pytest.mark.parametrize("form", ["ndlist", "npz", "json"])
def test_a_model_answers_bodies_of_djl(server: ServerProcess, model: str, form: str) -> None:
    rows = pictures()[:ROWS]
    packed = io.BytesIO()
    np.savez(packed, rows)
    name = httpx.get(f"{server.url}/v2/models/{model}").json()["inputs"][0]["name"]
    tensor = {"name": name, "datatype": "FP32", "shape": list(rows.shape), "data": rows.tolist()}
    kind = "application/json" if form == "json" else f"tensor/{form}"
    content = {"npz": packed.getvalue(), "ndlist": ndlist.encode(Tensors.of({name: rows}).items)}
    answer = httpx.post(
        f"{server.url}/predictions/{model}",
        headers={"Content-Type": kind, "Accept": kind},
        timeout=60,
        **({"json": {"inputs": [tensor]}} if form == "json" else {"content": content[form]}),
    )
    assert answer.status_code == 200, answer.text
    np.testing.assert_allclose(_array(form, answer), chances()[:ROWS], atol=1e-4)


def _array(form: str, answer: httpx.Response) -> np.ndarray:
    if form == "ndlist":
        return ndlist.decode(answer.content, 1 << 20)[0].array
    if form == "npz":
        with np.load(io.BytesIO(answer.content)) as arrays:
            return next(arrays[name] for name in arrays.files)
    (output,) = answer.json()["outputs"]
    return np.reshape(output["data"], output["shape"])


def test_the_log_has_no_lines_of_the_libraries(server: ServerProcess) -> None:
    words = ("ccache", "Running analysis", "IR pass", "oneDNN")
    assert [line for line in server.said().splitlines() if any(word in line for word in words)] == []


def test_a_damaged_file_of_paddle_ends_no_other_model(tmp_path: Path) -> None:
    folder = write_paddle(tmp_path / "broken").parent
    (folder / "inference.pdiparams").write_bytes(bytes(100))
    whole = write_openvino(tmp_path / "whole.xml")
    with serve(tmp_path / "log", folder, whole) as served:
        (found,) = ask(served, "whole", pictures(), "json").values()
        np.testing.assert_allclose(found, chances(), atol=1e-4)
        states = httpx.post(f"{served.url}/v2/repository/index", timeout=60).json()
        assert {one["name"]: one["state"] for one in states}["whole"] == "READY"
        assert not served.has_ended()
