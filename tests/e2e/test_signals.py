"""What operators see from outside: a dashboard and alert rules whose families are in a real scrape, and a log in which
each line is one object, and the lines of one request are found by its id.
"""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families
from tests.fixtures import models
from tests.harness.raw_http import Answer, ask, get, post
from tests.harness.server_process import COMMAND, environment, started, until

from trivium.wires.prometheus import signals

ALERTS_TEST = Path(__file__).parents[1] / "fixtures" / "signals" / "alerts_test.yml"
SIGNALS = Path(__file__).parents[2] / "docs" / "signals"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"traceparent: 00-{TRACE}-b7ad6b7169203331-01\r\n".encode()

CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU } ]
"""

HANDLER = """
import os, sys, warnings
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()[0, 0]
            print("printed", x)
            os.write(2, b"native\\n")
            pb_utils.Logger.log_info("logged")
            warnings.warn("warned")
            print("without an end", end="")
            if x == 3:
                os._exit(3)
            if x == 11:
                os.kill(os.getpid(), 11)
            if x < 0:
                try:
                    {}["inner"]
                except KeyError as error:
                    raise ValueError("outer") from error
            y = pb_utils.Tensor("y", pb_utils.get_input_tensor_by_name(request, "x").as_numpy())
            answers.append(pb_utils.InferenceResponse([y]))
        return answers
"""


BATCHED = CONFIG.replace("8", "3") + (
    "dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 60000000 }"
)
BATCH_HANDLER = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        print("batch of", len(requests))
        xs = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]) for x in xs]
"""


class Logging:
    """A server that logs as JSON, both streams into one file, as a container's are."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.port = 0
        self.open_scrape: Answer | None = None

    def lines(self) -> list[dict[str, Any]]:
        """All whole lines so far, each of which must be one object."""
        *lines, _ = self.log.read_text().split("\n")
        found = [json.loads(line) for line in lines]
        assert all(isinstance(line, dict) for line in found)
        return found

    def saying(self, pattern: str, **facts: str) -> list[dict[str, Any]]:
        """The lines whose message has this in it, with these facts."""
        return [
            line
            for line in self.lines()
            if re.search(pattern, line["message"]) and facts.items() <= line.items()
        ]

    def ask(self, name: str, value: float, fields: bytes = b"", model: str = "m") -> Answer:
        x = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [value]}
        body = json.dumps({"id": name, "inputs": [x]}).encode()
        return ask(self.port, post(f"/v2/models/{model}/infer", body, fields))

    def is_ready(self) -> bool:
        """Do the two handlers serve?"""
        return all(ask(self.port, get(f"/v2/models/{name}/ready")).status == 200 for name in "mb")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Logging, str]]:
    """The log of a whole life with good and bad requests, and a scrape of it."""
    root = tmp_path_factory.mktemp("models")
    (root / "m" / "1").mkdir(parents=True)
    (root / "m" / "1" / "model.py").write_text(HANDLER)
    (root / "m" / "config.pbtxt").write_text(CONFIG)
    (root / "b" / "1").mkdir(parents=True)
    (root / "b" / "1" / "model.py").write_text(BATCH_HANDLER)
    (root / "b" / "config.pbtxt").write_text(BATCHED)
    models.identity(root, "echo", rows=16)
    (root / "broken" / "1").mkdir(parents=True)
    (root / "broken" / "config.pbtxt").write_text(CONFIG)
    (root / "broken" / "1" / "model.py").write_text("raise RuntimeError('at import')\n")
    log = tmp_path_factory.mktemp("log") / "log"
    words = ("--log-format", "json", "--access-log", "-", "--http-port", "0", "--grpc-port", "0")
    with started(log, *COMMAND, "serve", *words, root, variables=environment()) as process:
        server = Logging(log)
        said = lambda: log.read_text()  # noqa: E731
        until(lambda: bool(server.saying("^HTTP on .*:[0-9]+")), said)
        server.port = int(re.findall(r":(\d+)", server.saying("^HTTP on ")[0]["message"])[0])
        until(server.is_ready, said)
        assert server.ask("good", 1.0, PARENT).status == 200
        assert server.ask("bad", -1.0).status == 500
        for name, value in (("exits", 3.0), ("crashes", 11.0)):
            assert server.ask(name, value).status == 500
            until(server.is_ready, said)
        with ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(lambda name: server.ask(name, 1.0, model="b"), ("b1", "b2", "b3")))
        assert [answer.status for answer in answers] == [200] * 3
        grpc_port = re.findall(r":(\d+)", server.saying("^gRPC on ")[0]["message"])[0]
        with grpcclient.InferenceServerClient(f"127.0.0.1:{grpc_port}") as client:
            x = grpcclient.InferInput("x", [1, 1], "FP32")
            x.set_data_from_numpy(np.ones((1, 1), np.float32))
            client.infer("m", [x], request_id="by-grpc")
        scrape = ask(server.port, get("/metrics")).body.decode()
        accept = (
            b"Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n"
        )
        server.open_scrape = ask(server.port, get("/metrics", accept))
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        yield server, scrape


def test_every_line_is_an_object_with_time_level_and_message(mixed: tuple[Logging, str]):
    server, _ = mixed
    assert server.log.read_text().endswith("\n")
    for line in server.lines():
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
        assert line["level"] in ("debug", "info", "warning", "error", "critical")
        assert line["logger"]
        assert line["message"]


@pytest.mark.parametrize(
    ("name", "value", "status", "is_dead"),
    [
        ("good", "1.0", 200, False),
        ("bad", "-1.0", 500, False),
        ("exits", "3.0", 500, True),
        ("crashes", "11.0", 500, True),
    ],
)
def test_the_lines_of_a_request_are_found_by_its_id(
    mixed: tuple[Logging, str], name: str, value: str, status: int, is_dead: bool
):
    server, _ = mixed
    mine = [line for line in server.lines() if line.get("request_id") == name]
    messages = [line["message"] for line in mine if line["logger"] == "trivium.worker.m"]
    assert [text for text in messages if text.startswith("printed")] == [f"printed {value}"]
    expected = ["native", "logged", "without an end"]
    if name != "bad":  # Python warns once in a process, and of a place
        expected.append("warned")
    for text in expected:
        assert any(text in message for message in messages), text
    assert {line["model"] for line in mine} == {"m"}
    (access,) = [line for line in mine if line["logger"] == "trivium.access"]
    assert (access["status"], access["path"]) == (status, "/v2/models/m/infer")
    if is_dead:
        assert access["error"] == "worker died"
        assert [
            line for line in mine if line["level"] == "error" and line["message"].startswith("Worker m_0")
        ]
    else:
        assert access["requests_together"] == 1
        assert 0 <= access["compute_seconds"] <= access["seconds"]
        assert 0 <= access["queue_seconds"] <= access["seconds"]


def test_a_line_of_a_batch_names_all_its_requests(mixed: tuple[Logging, str]):
    server, _ = mixed
    (line,) = server.saying("^batch of 3$", model="b")
    assert sorted(line["request_ids"]) == ["b1", "b2", "b3"]
    access = [line for line in server.lines() if line.get("model") == "b" and "method" in line]
    assert sorted(line["request_id"] for line in access) == ["b1", "b2", "b3"]
    assert [line["requests_together"] for line in access] == [3, 3, 3]


def test_a_traceback_is_one_object_also_with_its_cause(mixed: tuple[Logging, str]):
    server, _ = mixed
    (trace,) = server.saying("ValueError: outer", stream="stderr")
    assert trace["request_id"] == "bad"
    assert trace["message"].startswith("Traceback (most recent call last):\n")
    assert "KeyError: 'inner'" in trace["message"]


def test_a_trace_a_call_over_grpc_and_what_did_not_load(mixed: tuple[Logging, str]):
    server, _ = mixed
    good = [line for line in server.lines() if line.get("trace_id") == TRACE]
    assert {line["request_id"] for line in good} == {"good"}
    assert {line["logger"] for line in good} == {"trivium.worker.m", "trivium.access"}
    (call,) = [line for line in server.lines() if line.get("request_id") == "by-grpc" and "method" in line]
    assert (call["method"], call["status"], call["model"]) == ("gRPC", 0, "m")
    assert server.saying("^broken version 1: failed", model="broken", state="failed", level="error")
    assert server.saying("^Stopped: ")


def test_a_command_that_ends_by_itself_says_all_it_has_to_say(tmp_path: Path):
    log = tmp_path / "log"
    command = (
        *COMMAND,
        "serve",
        "--log-format",
        "json",
        "--http-port",
        "0",
        "--no-grpc",
        tmp_path / "absent",
    )
    with started(log, *command, variables=environment()) as process:
        assert process.wait(60) == 1
    found = [json.loads(line) for line in log.read_text().splitlines()]
    assert any("absent" in line["message"] and "Error" in line["message"] for line in found)


def samples(scrape: str) -> dict[str, float]:
    """Every sample by its name and labels as they are written, counters under the names that they have there."""
    lines = [line for line in scrape.splitlines() if not line.startswith("#")]
    assert list(text_string_to_metric_families(scrape))
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_all_that_dashboard_and_rules_ask_for_is_in_a_real_scrape(mixed: tuple[Logging, str]):
    _, scrape = mixed
    there = {name.partition("{")[0] for name in samples(scrape)}
    assert signals.asked_for() <= there


def test_a_scrape_of_openmetrics_has_the_same_samples_and_without_traces_no_exemplars(
    mixed: tuple[Logging, str],
):
    server, scrape = mixed
    answer = server.open_scrape
    assert answer is not None
    assert answer.fields["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    text = answer.body.decode()
    found = list(openmetrics_families(text))
    assert text.endswith("# EOF\n")
    assert " # {" not in text
    names = {name.partition("{")[0] for name in samples(scrape)}
    assert {line.partition(" ")[0].partition("{")[0] for line in text.splitlines() if line[0] != "#"} == names
    assert {family.type for family in found} >= {"counter", "gauge", "histogram", "unknown"}


def test_deaths_states_and_memory_are_those_of_this_run(mixed: tuple[Logging, str]):
    _, scrape = mixed
    found = samples(scrape)
    named = 'model="m",version="1"'
    causes = ("exit", "signal", "run_deadline")
    deaths = {cause: found[f'trivium_worker_deaths_total{{cause="{cause}",{named}}}'] for cause in causes}
    assert deaths == {"exit": 1, "signal": 1, "run_deadline": 0}
    assert found['trivium_model_state{model="broken",state="failed",version="1"}'] == 1
    assert found['trivium_instances{model="m",state="idle",version="1"}'] == 1
    assert found['trivium_resident_bytes{process="server"}'] > 2**20
    assert found['trivium_resident_bytes{model="m",process="worker",version="1",worker="m_0_0"}'] > 2**20
    assert found['trivium_saturation{model="m",version="1"}'] == 0
    assert found["trivium_loop_delay_seconds_count"] > 0
    (build,) = [name for name in found if name.startswith("trivium_build_info")]
    assert 'python="3.' in build


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed: Debian has it in the package prometheus")
    return found


def asked(promtool: str, *words: str, folder: Path) -> None:
    """Run it, and show what it says if it fails."""
    done = subprocess.run([promtool, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_rules_and_they_fire_as_they_should(promtool: str, tmp_path: Path):
    shutil.copy(SIGNALS / "alerts.yml", tmp_path)
    shutil.copy(ALERTS_TEST, tmp_path)
    for words in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        asked(promtool, *words, folder=tmp_path)


def test_each_alert_is_tested_both_ways():
    text = ALERTS_TEST.read_text()
    for alert in signals.alerts():
        assert text.count(f"alertname: {alert.name}") == 2, alert.name


def test_promtool_accepts_the_queries_of_the_dashboard(promtool: str, tmp_path: Path):
    dashboard = json.loads((SIGNALS / "dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len(queries) > 15
    rules = [
        {"record": f"trivium:query_{number}", "expr": query.replace("$__rate_interval", "1m")}
        for number, query in enumerate(queries)
    ]
    file = tmp_path / "queries.yml"
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    asked(promtool, "check", "rules", str(file), folder=tmp_path)


def test_a_scrape_is_as_promtool_wants_it_but_for_tritons_names(promtool: str, mixed: tuple[Logging, str]):
    _, scrape = mixed
    done = subprocess.run(
        [promtool, "check", "metrics"], input=scrape, capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if line.startswith("trivium_")] == []


TRITONS_RULE = (
    "avg(delta(nv_inference_queue_duration_us[30s]) / (1 + delta(nv_inference_request_success[30s]))) "
    "by (pod)"
)
"""As Triton's example for Kubernetes has it for its HPA (deploy/k8s-onprem)."""

OURS = "sum(rate(nv_inference_queue_duration_us[1m])) / sum(rate(nv_inference_request_success[1m]))"


def test_a_model_that_nobody_asks_does_not_hide_the_queue_of_another(promtool: str, tmp_path: Path):
    """Re-stages a public report about that example: of two models on a pod one is busy, and waits 5 ms."""
    page = (SIGNALS.parent / "metrics.md").read_text()
    assert OURS in page.replace("\n", " ")
    rules = [{"record": "theirs", "expr": TRITONS_RULE}, {"record": "ours", "expr": OURS}]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "g", "rules": rules}]}))
    series = [
        {"series": f'{name}{{pod="p",model="{model}"}}', "values": values}
        for name, busy in (
            ("nv_inference_queue_duration_us", 75000000),
            ("nv_inference_request_success", 15000),
        )
        for model, values in (("busy", f"0+{busy}x60"), ("idle", "0x60"))
    ]
    series.append({"series": 'trivium_server_saturation{pod="p"}', "values": "1.6x60"})
    saturation = "avg_over_time(trivium_server_saturation[1m])"
    tests = [
        {"expr": expr, "eval_time": "10m", "exp_samples": [{"labels": labels, "value": value}]}
        for expr, labels, value in (("ours", "ours", 5000.0), (saturation, '{pod="p"}', 1.6))
    ]
    theirs = {"labels": '{pod="p"}', "value": 1}
    tests.append({"expr": "theirs < bool 2600", "eval_time": "10m", "exp_samples": [theirs]})
    scene = {"interval": "15s", "input_series": series, "promql_expr_test": tests}
    file = {"rule_files": ["rules.yml"], "evaluation_interval": "15s", "tests": [scene]}
    (tmp_path / "test.yml").write_text(json.dumps(file))
    asked(promtool, "test", "rules", "test.yml", folder=tmp_path)


SPEAKS = """
import os, sys, threading, warnings
from trivium.commands.process import log_to_stderr
log_to_stderr("info", "json")
print("printed")
os.write(2, b"native\\n")
os.write(1, b"no end")
os.write(1, b"\\n")
warnings.warn("warned")
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
print("last", end="", flush=True)
raise ValueError("nobody caught this")
"""


def test_whatever_a_process_says_by_itself_is_an_object(tmp_path: Path):
    done = subprocess.run([sys.executable, "-c", SPEAKS], capture_output=True, text=True, check=False)
    assert done.stdout == ""
    found = [json.loads(line) for line in done.stderr.splitlines()]
    said = {(line["logger"], line["message"]) for line in found}
    assert said >= {("stdout", "printed"), ("stderr", "native"), ("stdout", "no end"), ("stdout", "last")}
    (warned,) = [line for line in found if line["logger"] == "py.warnings"]
    assert "UserWarning: warned" in warned["message"]
    caught = [line["exception"] for line in found if line["level"] == "critical"]
    assert [text.splitlines()[-1] for text in caught] == [
        "ZeroDivisionError: division by zero",
        "ValueError: nobody caught this",
    ]
