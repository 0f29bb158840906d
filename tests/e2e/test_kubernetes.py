"""What we give to Kubernetes: the chart by Helm itself, KServe's objects by its SDK, and a process as they start it,
asked by KServe's clients and left by a proxy at its end.
"""

import json
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from tests.harness import table_models
from tests.harness.raw_http import ask, get
from tests.harness.server_process import SECONDS, ServerProcess, running

ROOT = Path(__file__).parents[2]
HELM = ROOT / ".venv-helm" / "bin" / "python"
HERE = Path(__file__).parent
SIX = [
    {},
    {"keysSecret": "keys", "models": {"claim": "models"}},
    {"autoscaling": {"enabled": True}, "serviceMonitor": {"enabled": True}},
    {"drainTimeout": 120, "preStopSeconds": 15},
    {
        "models": {"places": ["iris=/models"]},
        "args": ["--log-level=info"],
        "env": [{"name": "A", "value": "b"}],
    },
    {
        "resources": {"limits": {"memory": "8Gi", "nvidia.com/gpu": "1"}},
        "podDisruptionBudget": {"enabled": False},
    },
]
WRONG = {
    "/drainTimeout": {"drainTimeout": "25s"},
    "/replicaCount": {"replicaCount": -1},
    "/models/places": {"models": {"places": []}},
    "/image": {"image": {"pulPolicy": "Always"}},
    "/service/type": {"service": {"type": "Cluster"}},
    "/resources/limits/memory": {"resources": {"limits": {"memory": "lots"}}},
}
ROW = json.dumps({"instances": [[0.0] * 64]}).encode()
PREDICT = (
    b"POST /v1/models/digits:predict HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
)
PROPAGATION = 0.5


@pytest.mark.skipif(not HELM.exists(), reason="make e2e installs Helm")
def test_helm_renders_the_chart_and_refuses_what_cannot_be() -> None:
    done = subprocess.run(
        [HELM, HERE / "helm" / "render.py", ROOT / "deploy" / "helm" / "trivium"],
        input=json.dumps([*SIX, *WRONG.values()]),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    for place, said in zip(WRONG, found[len(SIX) :], strict=True):
        assert isinstance(said, str)
        assert f"at '{place}'" in said
    kinds = [{each["kind"] for each in objects} for objects in found[: len(SIX)]]
    assert kinds[2] == {
        *("Deployment", "Service", "PodDisruptionBudget"),
        *("HorizontalPodAutoscaler", "ServiceMonitor"),
    }
    assert kinds[5] == {"Deployment", "Service"}
    for values, objects in zip(SIX, found, strict=False):
        (pod,) = (each["spec"]["template"]["spec"] for each in objects if each["kind"] == "Deployment")
        drain, pre_stop = values.get("drainTimeout", 25), values.get("preStopSeconds", 5)
        assert pod["terminationGracePeriodSeconds"] == drain + pre_stop + 5
        assert f"--drain-timeout={drain}" in pod["containers"][0]["args"]


def words_of(runtime: str, name: str, mount: Path) -> list[str]:
    """The words of a runtime's command behind `trivium serve`, as KServe fills them in, on any ports."""
    objects = yaml.safe_load_all((ROOT / "deploy" / "kserve" / "runtimes.yaml").read_text())
    (found,) = (each for each in objects if each["metadata"]["name"] == runtime)
    (container,) = found["spec"]["containers"]
    assert container["args"][:2] == ["trivium", "serve"]
    words = [
        word.replace("{{.Name}}", name).replace("/mnt/models", str(mount)) for word in container["args"][2:]
    ]
    return [word for word in words if not word.startswith(("--http-port", "--grpc-port"))]


@pytest.mark.parametrize(
    ("library", "file"), [("xgboost", "any.ubj"), ("lightgbm", "model.bst"), ("sklearn", "model.joblib")]
)
def test_a_single_file_answers_under_the_name_that_kserve_gives(
    library: str, file: str, tmp_path: Path
) -> None:
    table_models.write(tmp_path / "models" / file, library)
    words = words_of(f"trivium-{library}", "digits", tmp_path / "models")
    trust = {"TRIVIUM_ENGINE_PARAMETERS": "sklearn.trust_insecure_model_files=true"}
    with running(tmp_path / "log", "serve", *words, variables=trust) as server:
        wait_ready(server)
        answer = ask(server.port, PREDICT % len(ROW) + ROW)
        assert answer.status == 200, answer.body
        assert len(answer.document["predictions"]) == 1


def wait_ready(server: ServerProcess) -> None:
    deadline = time.monotonic() + SECONDS
    while not server.is_ready():
        assert time.monotonic() < deadline, server.said()
        time.sleep(0.05)


def test_no_request_is_lost_when_a_pod_ends_and_another_follows(tmp_path: Path) -> None:
    replaced(tmp_path, 400)


@pytest.mark.soak
def test_no_request_of_five_thousand_is_lost(tmp_path: Path) -> None:
    replaced(tmp_path, 5000)


def replaced(tmp_path: Path, count: int) -> None:
    """Send requests to whoever is an endpoint, while the one pod ends as the manifest says: it is an endpoint for a
    while after its end has begun, serves on through preStop, and is told to stop then.
    """
    table_models.write(tmp_path / "models" / "digits.ubj", "xgboost")
    words = words_of("trivium-xgboost", "digits", tmp_path / "models")
    (service,) = (
        each
        for each in yaml.safe_load_all((ROOT / "deploy" / "kserve" / "samples.yaml").read_text())
        if each["metadata"]["name"] == "xgboost-sample"
    )
    pre_stop = service["spec"]["predictor"]["model"]["lifecycle"]["preStop"]["exec"]["command"]
    statuses: Counter[int] = Counter()
    by_pod: Counter[int] = Counter()
    with (
        running(tmp_path / "one", "serve", *words) as first,
        running(tmp_path / "two", "serve", *words) as second,
    ):
        wait_ready(first)
        endpoints, done = [first.port], threading.Event()

        def send(number: int) -> None:
            port = endpoints[number % len(endpoints)]
            statuses[ask(port, PREDICT % len(ROW) + ROW).status] += 1
            by_pod[port] += 1

        def end() -> None:
            wait_ready(second)
            endpoints[:] = [first.port, second.port]
            ending = subprocess.Popen(pre_stop)
            threading.Event().wait(PROPAGATION)
            endpoints[:] = [second.port]
            assert ending.wait(SECONDS) == 0
            first.terminate()
            assert first.wait() == 0, first.said()
            done.set()

        with ThreadPoolExecutor(17) as threads:
            life, number = threads.submit(end), 0
            while number < count or not done.is_set():
                assert not life.done() or life.exception() is None, life.exception()
                list(threads.map(send, range(number, number + 16)))
                number += 16
            life.result(SECONDS)
        assert ask(second.port, get("/v2/health/ready")).status == 200
    assert set(statuses) == {200}, statuses
    assert len(by_pod) == 2
