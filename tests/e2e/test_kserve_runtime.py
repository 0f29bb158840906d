"""KServe's runtime for TorchServe: its configuration, its folders, which nobody may write to, and its two protocols.

The configuration has the keys and values of KServe's samples. What KServe mounts is read-only; where the tests run as
root, that is not enforced.
"""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.torchserve_command import TorchServeFolder, TorchServeProcess, torchserve

HANDLER = """
from ts.torch_handler.base_handler import BaseHandler
import torch

class Sums(BaseHandler):
    def initialize(self, context):
        self.context, self.initialized, self.device = context, True, torch.device("cpu")
        self.model = lambda rows: rows.sum(dim=1)

    def preprocess(self, data):
        rows = [row["data"] if isinstance(row, dict) and "datatype" in row else row for row in data]
        return torch.tensor(rows, dtype=torch.float32).reshape(len(rows), -1)

    def get_insights(self, tensor, raw, target=0):
        return tensor.tolist()
"""
CONFIG = """
enable_metrics_api=true
metrics_format=prometheus
number_of_netty_threads=4
job_queue_size=10
enable_envvars_config=true
install_py_dep_per_model=true
disable_token_authorization=true
model_snapshot={"name":"startup.cfg","modelCount":1,"models":{"sums":{"1.0":{"defaultVersion":true,"marName":"sums",\
"minWorkers":1,"maxWorkers":5,"batchSize":1,"maxBatchDelay":10,"responseTimeout":120}}}}
"""
V1 = json.dumps({"instances": [[1, 2, 3], [4, 5, 6]]}).encode()
V2 = json.dumps({"inputs": [{"name": "x", "shape": [3], "datatype": "FP32", "data": [1, 2, 3]}]}).encode()
AS_JSON = "Content-Type: application/json\r\n"


def locked(folder: Path, allows: bool = False) -> None:
    """Let nobody write to what lies there, or its owner again."""
    for path in (folder, *folder.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | stat.S_IWUSR if allows else mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))


@pytest.fixture(scope="module", params=["kserve", "kservev2"])
def mounted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TorchServeProcess]:
    folder = TorchServeFolder(tmp_path_factory.mktemp("kserve"))
    folder.model("sums", HANDLER)
    locked(folder.store)
    variables = {"TS_SERVICE_ENVELOPE": request.param}
    try:
        with torchserve(folder, text=CONFIG, variables=variables) as server:
            server.envelope = request.param  # type: ignore[attr-defined]
            yield server
    finally:
        locked(folder.store, allows=True)


def test_it_answers_both_protocols(mounted: TorchServeProcess) -> None:
    assert mounted.ask("Inference", "GET", "/ping").document == {"status": "Healthy"}
    if mounted.envelope == "kserve":  # type: ignore[attr-defined]
        answer = mounted.ask("Inference", "POST", "/v1/models/sums:predict", V1, AS_JSON)
        assert (answer.status, answer.document) == (200, {"predictions": [6.0, 15.0]})
        answer = mounted.ask("Inference", "POST", "/v1/models/sums:explain", V1, AS_JSON)
        assert (answer.status, answer.document) == (200, {"explanations": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]})
    else:
        answer = mounted.ask("Inference", "POST", "/v2/models/sums/infer", V2, AS_JSON)
        assert answer.status == 200
        (output,) = answer.document["outputs"]
        assert (output["name"], output["data"], answer.document["model_name"]) == ("x", [6.0], "sums")


def test_nothing_is_written_into_what_is_mounted(mounted: TorchServeProcess) -> None:
    store = Path(mounted.log).parent / "store"
    names = {path.name for path in store.rglob("*") if "__pycache__" not in path.parts}
    assert names == {"sums", "MAR-INF", "MANIFEST.json", "handler.py"}
    if os.geteuid():
        assert not list(store.rglob("__pycache__"))
