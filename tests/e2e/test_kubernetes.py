"""The chart, rendered by Helm itself; and a pod that ends, left by a proxy without a lost request."""

import json
import signal
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from tests.harness import table_models
from tests.harness.following_proxy import following
from tests.harness.kserve_pod import objects, pod
from tests.harness.raw_http import ask
from tests.harness.server_process import SECONDS, until

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
    for values, rendered in zip(SIX, found, strict=False):
        (pod,) = (each["spec"]["template"]["spec"] for each in rendered if each["kind"] == "Deployment")
        drain, pre_stop = values.get("drainTimeout", 25), values.get("preStopSeconds", 5)
        assert pod["terminationGracePeriodSeconds"] == drain + pre_stop + 5
        assert f"--drain-timeout={drain}" in pod["containers"][0]["args"]


def test_the_charts_probes_are_those_of_the_runtimes() -> None:
    """So what is tried of the ones holds for the others."""
    template = (ROOT / "deploy" / "helm" / "trivium" / "templates" / "deployment.yaml").read_text()
    (container,) = objects("runtimes.yaml")["trivium"]["spec"]["containers"]
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        block = template.split(f"{name}:", 1)[1].split("httpGet: ", 1)[1]
        told = yaml.safe_load(block.split("\n", 1)[0])
        assert told == {"path": container[name]["httpGet"]["path"], "port": "http"}
        for key in ("periodSeconds", "timeoutSeconds"):
            assert f"{key}: {container[name][key]}\n" in block


def test_no_request_is_lost_when_a_pod_ends_and_another_follows(tmp_path: Path) -> None:
    replaced(tmp_path, 400)


@pytest.mark.soak
def test_no_request_of_five_thousand_is_lost(tmp_path: Path) -> None:
    replaced(tmp_path, 5000)


def replaced(tmp_path: Path, count: int) -> None:
    """Send requests through a proxy, while the one pod ends as the manifest says and a successor has become ready: the
    proxy hears of the end a while after it has begun, the pod serves on through preStop, and is told to stop then.
    """
    mount = tmp_path / "models"
    table_models.write(mount / "digits.ubj", "xgboost")
    told = objects("samples.yaml")["xgboost-sample"]["spec"]["predictor"]
    pre_stop = told["model"]["lifecycle"]["preStop"]["exec"]["command"]
    statuses: Counter[int] = Counter()
    with (
        pod("trivium-xgboost", mount, tmp_path / "one") as first,
        pod("trivium-xgboost", mount, tmp_path / "two") as second,
        following([first, second]) as proxy,
    ):
        until(lambda: proxy.has(first), first.said)
        done = threading.Event()

        def send(number: int) -> None:
            statuses[ask(proxy.port, PREDICT % len(ROW) + ROW).status] += 1

        def end() -> None:
            until(lambda: proxy.has(second), second.said)
            began = time.monotonic()
            with subprocess.Popen(pre_stop) as ending:
                threading.Event().wait(PROPAGATION)
                proxy.hear_of_end(first)
                assert ending.wait(SECONDS) == 0
            first.signal(signal.SIGTERM)
            assert first.wait() == 0, first.said()
            assert time.monotonic() - began < told["terminationGracePeriodSeconds"]
            done.set()

        with ThreadPoolExecutor(17) as threads:
            life, number = threads.submit(end), 0
            while number < count or not done.is_set():
                assert not life.done() or life.exception() is None, life.exception()
                list(threads.map(send, range(number, number + 16)))
                number += 16
            life.result(SECONDS)
    assert set(statuses) == {200}, statuses
    assert statuses[200] >= count
    assert set(proxy.by_pod) == {first.http, second.http}
