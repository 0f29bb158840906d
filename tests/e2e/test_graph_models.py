"""Models of OpenVINO and Paddle in the real server: digits, by every format and protocol, held against the network."""

import io
import shutil
import threading
import time
from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from tests.harness.graph_models import probabilities, write_openvino, write_paddle
from tests.harness.server_process import ServerProcess, serve
from tests.harness.table_models import digits
from tests.harness.v2_clients import infer

from trivium import ndlist

ROWS = 20
POSTED = """name: "posted"
backend: "openvino"
max_batch_size: 32
input [{ name: "x" data_type: TYPE_FP32 dims: [ 64 ] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [ 10 ] }]
instance_group [{ count: 1 kind: KIND_CPU }]
parameters: [
  { key: "NUM_STREAMS" value: { string_value: "1" } },
  { key: "RESHAPE_IO_LAYERS" value: { string_value: "yes" } },
  { key: "SKIP_OV_DYNAMIC_BATCHSIZE" value: { string_value: "yes" } },
  { key: "PERFORMANCE_HINT" value: { string_value: "LATENCY" } }
]
"""
"""As in openvino_backend#84, for another network."""
MODELS = ("bare", "bare_pd", "old_pd", "folder_pd", "djl_pd", "posted", "untold")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("models")
    paths = [
        write_openvino(root / "bare.xml"),
        write_paddle(root / "bare_pd"),
        write_paddle(root / "old_pd", is_old=True),
    ]
    for name, lines in (("folder_pd", ""), ("djl_pd", "engine=paddlepaddle\noption.CMLNumThreads=2\n")):
        shutil.copytree(write_paddle(root / "made" / "inference").parent, root / name)
        if lines:
            (root / name / "serving.properties").write_text(lines)
        paths.append(root / name)
    for name, config in (("posted", POSTED), ("untold", "")):
        write_openvino(root / "repository" / name / "1" / "model.xml")
        if config:
            (root / "repository" / name / "config.pbtxt").write_text(config)
    with serve(root / "log", *paths, root / "repository") as served:
        yield served


def check(found: np.ndarray, at: int = 0) -> None:
    """Probabilities of the pictures from `at` on are the network's, and so are the digits."""
    wanted = probabilities(digits()[0][at : at + len(found)])
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    assert found.argmax(axis=1).tolist() == wanted.argmax(axis=1).tolist()


@pytest.mark.parametrize("route", ["json", "binary", "grpc"])
@pytest.mark.parametrize("model", MODELS)
def test_every_file_names_the_digit(server: ServerProcess, model: str, route: str) -> None:
    step = 4 if model == "untold" else ROWS  # what Triton fills in for max_batch_size
    for at in range(0, ROWS, step):
        (found,) = infer(server, model, "x", digits()[0][at : at + step], route).values()
        check(found, at)


@pytest.mark.parametrize("model", ["djl_pd", "folder_pd", "bare"])
def test_djl_s_clients_are_answered(server: ServerProcess, model: str) -> None:
    rows = digits()[0][:ROWS]
    body = io.BytesIO()
    np.savez(body, rows)
    url = f"{server.url}/predictions/{model}"
    npz = httpx.post(
        url, content=body.getvalue(), headers={"Content-Type": "tensor/npz", "Accept": "tensor/npz"}
    )
    assert npz.status_code == 200, npz.text
    with np.load(io.BytesIO(npz.content)) as arrays:
        check(arrays[arrays.files[0]])
    listed = httpx.post(
        url,
        content=ndlist.encode([rows]),
        headers={"Content-Type": "tensor/ndlist", "Accept": "tensor/ndlist"},
    )
    assert listed.status_code == 200, listed.text
    check(np.asarray(ndlist.decode(listed.content)[0]))
    body_of = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [ROWS, 64], "data": rows.tolist()}]}
    plain = httpx.post(url, json=body_of)
    assert plain.status_code == 200, plain.text
    check(np.reshape(plain.json()["outputs"][0]["data"], (ROWS, 10)))


def test_what_changes_nothing_is_reported_with_its_line(server: ServerProcess) -> None:
    said = server.said()
    assert "SKIP_OV_DYNAMIC_BATCHSIZE changes nothing here" in said
    assert "config.pbtxt:10" in said


def test_a_library_s_own_lines_stay_out_of_the_log(server: ServerProcess) -> None:
    said = server.said()
    assert "ccache" not in said
    assert "UserWarning" not in said


def test_runs_of_paddle_hold_no_other_model(server: ServerProcess) -> None:
    """It holds its own interpreter: what runs in the server's process waits for none of it (acceptance J)."""
    stop = threading.Event()

    def load() -> None:
        with httpx.Client(timeout=60) as client:
            rows = digits()[0][:ROWS]
            tensor = {"name": "x", "datatype": "FP32", "shape": list(rows.shape), "data": rows.tolist()}
            while not stop.is_set():
                client.post(
                    f"{server.url}/v2/models/djl_pd/infer", json={"inputs": [tensor]}
                ).raise_for_status()

    senders = [threading.Thread(target=load) for _ in range(2)]
    for sender in senders:
        sender.start()
    try:
        began = time.monotonic()
        for _ in range(20):
            (found,) = infer(server, "bare", "x", digits()[0][:2], "json").values()
            check(found)
        assert time.monotonic() - began < 60
    finally:
        stop.set()
        for sender in senders:
            sender.join()
