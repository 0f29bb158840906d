"""KServe's runtime for TorchServe: its configuration, its folders, which nobody may write to, its two protocols, and
its own client.

The configuration has the keys and values of KServe's samples. What KServe mounts is read-only; where the tests run as
root, that is enforced for our own runtime alone, which another user runs.
"""

import base64
import json
import os
import stat
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.fixtures import boxes
from tests.harness.commands import trivium
from tests.harness.kserve_pod import objects
from tests.harness.ports import free_port
from tests.harness.raw_http import Answer
from tests.harness.server_process import environment, until
from tests.harness.torchserve_command import READY, TorchServeFolder, TorchServeProcess, torchserve

ROOT = Path(__file__).parents[2]
KSERVE = ROOT / ".venv-kserve" / "bin" / "python"
CLIENT = Path(__file__).parent / "kserve_client" / "calls.py"
SECONDS = 120
HANDLER = """
import base64
from ts.torch_handler.base_handler import BaseHandler
import torch

class Sums(BaseHandler):
    def initialize(self, context):
        self.context, self.initialized, self.device = context, True, torch.device("cpu")
        self.model = lambda rows: rows.sum(dim=1)

    def preprocess(self, data):
        rows = [self.numbers(row) if isinstance(row, dict) else row for row in data]
        return torch.tensor(rows, dtype=torch.float32).reshape(len(rows), -1)

    def numbers(self, row):
        return [len(base64.b64decode(row["data"]))] if row["datatype"] == "BYTES" else row["data"]

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
    address = f"http://127.0.0.1:{free_port()}"  # one for both, as in KServe's samples
    variables = {
        "TS_SERVICE_ENVELOPE": request.param,
        "TS_INFERENCE_ADDRESS": address,
        "TS_MANAGEMENT_ADDRESS": address,
    }
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


@pytest.mark.skipif(not KSERVE.exists(), reason="make e2e installs KServe's client")
def test_its_own_client_gets_what_it_asks_for(mounted: TorchServeProcess) -> None:
    addresses = [
        f"http://127.0.0.1:{mounted.port('Inference')}",
        f"127.0.0.1:{mounted.port('gRPC inference')}",
    ]
    envelope = mounted.envelope  # type: ignore[attr-defined]
    done = subprocess.run(
        [KSERVE, CLIENT, envelope, *addresses], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert "404 Not Found" in found.pop("unknown")
    if envelope == "kserve":
        assert found == {
            "predicted": {"predictions": [6.0, 15.0]},
            "explained": {"explanations": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]},
            "ready": True,
            "live": True,
        }
        return
    six = ["mine", "sums", ["x", "FP64", [1], [6.0]]]
    four_bytes = ["mine", "sums", ["x", "FP64", [1], [4.0]]]
    assert found == {
        "plain": six,
        "binary": six,
        "rpc": six,
        "whole": ["mine", "sums", ["x", "FP64", [1], [3.0]]],
        "text": four_bytes,
        "rpc text": four_bytes,
        "ready": True,
        "nobody ready": False,
        "live": True,
        "server ready": True,
        "rpc ready": True,
        "rpc live": True,
    }


def binary(mounted: TorchServeProcess, document: str, data: bytes, length: object = None) -> Answer:
    """What comes of a request of v2 with this JSON, and these bytes behind it."""
    fields = f"Inference-Header-Content-Length: {len(document) if length is None else length}\r\n"
    return mounted.ask("Inference", "POST", "/v2/models/sums/infer", document.encode() + data, fields)


def test_binary_data_that_do_not_fit_are_refused_with_what_was_found(mounted: TorchServeProcess) -> None:
    if mounted.envelope == "kserve":  # type: ignore[attr-defined]
        pytest.skip("v1 has no binary data")
    text = '{"inputs": [{"name": "x", "shape": [3], "datatype": "FP32", "parameters": {"binary_data_size": %s}}]}'
    assert binary(mounted, text % 12, bytes(12)).document["outputs"][0]["data"] == [0.0]
    for answer in (
        binary(mounted, text % 12, bytes(8)),
        binary(mounted, text % 12, bytes(16)),
        binary(mounted, text % 10, bytes(10)),
        binary(mounted, text % -1, bytes(12)),
        binary(mounted, text % '"12"', bytes(12)),
        binary(mounted, text % 12, bytes(12), 10_000),
        binary(mounted, text % 12, bytes(12), "many"),
    ):
        assert answer.status == 400, answer.body
        assert "The request's binary data cannot be read: " in answer.document["message"]
    assert binary(mounted, text % 12, bytes(12)).status == 200


SAMPLE = """
inference_address=http://0.0.0.0:8085
management_address=http://0.0.0.0:8085
metrics_address=http://127.0.0.1:0
grpc_inference_port=0
grpc_management_port=0
enable_envvars_config=true
install_py_dep_per_model=true
enable_metrics_api=true
metrics_mode=prometheus
NUM_WORKERS=1
number_of_netty_threads=4
job_queue_size=10
model_store=/mnt/models/model-store
model_snapshot={"name":"startup.cfg","modelCount":1,"models":{"densenet161":{"1.0":{"defaultVersion":true,\
"marName":"densenet161.mar","minWorkers":1,"maxWorkers":5,"batchSize":1,"maxBatchDelay":5000,"responseTimeout":120}}}}
"""
NOBODY = "65534"
AS_NOBODY = [
    *("setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"),
    *(
        "--inh-caps=+dac_read_search",
        "--ambient-caps=+dac_read_search",
    ),  # reads this interpreter, wherever it lies
]


def another_user() -> list[str]:
    """What runs a command as a user who may write to nothing of ours, where this one may say so."""
    done = (
        subprocess.run([*AS_NOBODY, "true"], capture_output=True, check=False) if not os.geteuid() else None
    )
    return AS_NOBODY if done is not None and done.returncode == 0 else []


@pytest.mark.parametrize("envelope", ["kserve", "kservev2"])
def test_our_runtime_serves_a_sample_as_another_user(tmp_path: Path, envelope: str) -> None:
    """Among others what pytorch/serve#2968 and #3301 report: the sample by v2, and readiness without a key."""
    mount, work = tmp_path / "models", tmp_path / "work"
    boxes.torchserve(tmp_path)
    (mount / "config").mkdir(parents=True)
    (mount / "config" / "config.properties").write_text(SAMPLE.replace("/mnt/models", str(mount)))
    (tmp_path / "model_store").rename(mount / "model-store")
    work.mkdir()
    work.chmod(0o777)
    assert trivium("link", tmp_path / "bin").returncode == 0
    (container,) = objects("cluster-runtimes.yaml")["trivium-torchserve"]["spec"]["containers"]
    ports = {":8080": f":{free_port()}", ":8081": f":{free_port()}"}
    variables = {
        one["name"]: one["value"].replace("{{.Labels.serviceEnvelope}}", envelope) for one in container["env"]
    }
    for said, free in ports.items():
        variables = {name: value.replace(said, free) for name, value in variables.items()}
    command = [word.replace("/mnt/models", str(mount)) for word in container["args"]]
    before = {path: path.stat().st_mtime_ns for path in mount.rglob("*")}
    locked(mount)
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*another_user(), tmp_path / "bin" / command[0], *command[1:]],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**environment(), **variables, "TMPDIR": str(work), "TEMP": str(work)},
            cwd=work,
        )
    try:
        server = TorchServeProcess(process, log)
        server.await_line(READY)
        model = partial(server.ask, "Inference", "GET", "/v1/models/densenet161")
        until(lambda: model().document.get("ready") is True, server.said)  # before any request: kserve#1915
        picture = base64.b64encode((tmp_path / "kitten_small.jpg").read_bytes()).decode()
        if envelope == "kserve":
            path, asked = "/v1/models/densenet161:predict", {"instances": [{"data": picture, "target": 0}]}
        else:
            tensor = {"name": "312a", "shape": [-1], "datatype": "BYTES", "data": [picture]}
            path, asked = "/v2/models/densenet161/infer", {"inputs": [tensor]}
        answer = server.ask("Inference", "POST", path, json.dumps(asked).encode(), AS_JSON)
        assert answer.status == 200, answer.body
        (found,) = (
            answer.document["predictions"] if envelope == "kserve" else answer.document["outputs"][0]["data"]
        )
        assert list(found) == ["lynx", "plastic_bag", "tabby", "tiger_cat", "Egyptian_cat"]
        assert server.port("Inference") == int(ports[":8080"][1:])
        assert b"ts_inference_requests_total{" in server.ask("Metrics", "GET", "/metrics").body
        process.terminate()
        assert server.wait() == 0, server.said()
        assert {path: path.stat().st_mtime_ns for path in mount.rglob("*")} == before
    finally:
        process.kill()
        process.wait()
        locked(mount, allows=True)
