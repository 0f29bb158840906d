"""Metrics and log files of the command `torchserve`: every mode, metrics.yaml, line forms, bad files."""

import re
import signal
import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import grpc
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from tests.harness.commands import trivium
from tests.harness.raw_http import Answer, ask
from tests.harness.server_process import SECONDS, serve_handlers, until
from tests.harness.torchserve_command import TorchServeFolder, TorchServeProcess, said, torchserve

from trivium.servers.torchserve.words.metrics_config import DEFAULTS

HANDLER = """
import os, signal, sys
class Handler:
    def initialize(self, context):
        print("here I am", flush=True)
        print("and here", file=sys.stderr, flush=True)
        context.metrics.add_counter("Loads", 1)
    def handle(self, data, context):
        text = data[0].get("body") or data[0].get("data") or ""
        if text == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if text == "fail":
            raise ValueError("as it was to")
        context.metrics.add_counter("Mine", 2, 0)
        context.metrics.add_size("Sizes", 3, None, "kB")
        return ["ok"] * len(data)
"""
STREAM = """
import os, time
from ts.handler_utils.utils import send_intermediate_predict_response
def handle(data, context):
    if data is None:
        return None
    while not os.path.exists("MARK"):
        send_intermediate_predict_response(["a part"], context.request_ids, "ok", 200, context)
        LAST
    return ["the end"]
"""
METRICS = """
dimensions:
  - &level "Level"
ts_metrics:
  counter:
    - {name: Requests2XX, unit: Count, dimensions: [*level, "Hostname"]}
model_metrics:
  counter:
    - {name: Mine, unit: things, dimensions: ["ModelName", *level]}
  histogram:
    - {name: Sizes, unit: kB, dimensions: ["ModelName", *level]}
"""
OPEN = "disable_token_authorization=true\n"
TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3}"


@pytest.fixture
def folder(tmp_path: Path) -> TorchServeFolder:
    folder = TorchServeFolder(tmp_path)
    folder.model("one", HANDLER)
    return folder


def scraped(server: TorchServeProcess, query: str = "") -> Mapping[str, Metric]:
    """The metrics, by name, as prometheus-client's parser reads them."""
    answer = server.ask("Metrics", "GET", f"/metrics{query}")
    assert answer.status == 200
    assert answer.fields["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {family.name: family for family in text_string_to_metric_families(answer.body.decode())}


def values(server: TorchServeProcess, name: str) -> dict[tuple[str, ...], float]:
    """The samples of a metric: values of labels but for the host's -> value."""
    found = scraped(server).get(name)
    return {
        tuple(value for label, value in sample.labels.items() if label.lower() != "hostname"): sample.value
        for sample in ([] if found is None else found.samples)
    }


def lines(folder: TorchServeFolder, name: str) -> list[str]:
    return (folder.path / "logs" / name).read_text().splitlines()


def has_line(folder: TorchServeFolder, name: str, pattern: str) -> bool:
    return any(re.search(pattern, line) for line in lines(folder, name))


def test_prometheus_has_all_of_the_originals_metrics(folder: TorchServeFolder) -> None:
    with torchserve(folder, "--models", "one", text=f"{OPEN}metrics_mode=prometheus\n") as server:
        server.serves("one")
        before = values(server, "ts_inference_requests")["one", "default"]
        twos, fours = (values(server, f"Requests{digit}XX").get(("Host",), 0) for digit in (2, 4))
        assert server.ask("Inference", "POST", "/predictions/one/1.0", b"x").status == 200
        assert server.predict("one", b"fail").status == 503
        assert server.ask("Inference", "GET", "/predictions/nobody").status == 404
        found = scraped(server)
        for metric in (*DEFAULTS.server.values(), *DEFAULTS.models.values()):
            family = found[metric.name.removesuffix("_total")]
            assert family.type == metric.kind
            assert all(tuple(sample.labels) == metric.dimensions for sample in family.samples)
            if metric.name not in ("HandlerTime",) and "GPU" not in metric.name:
                assert family.samples, metric.name
        requests = values(server, "ts_inference_requests")
        assert requests == {("one", "default"): before + 1, ("one", "1.0"): 1}
        # Beside the prediction the two scrapes that came before this one.
        assert values(server, "Requests2XX")[("Host",)] >= twos + 3
        assert values(server, "Requests5XX")[("Host",)] >= 1
        assert values(server, "Requests4XX")[("Host",)] == fours + 1
        assert values(server, "PredictionTime")["one", "Model"] >= 0
        assert values(server, "ts_inference_latency_microseconds")["one", "1.0"] > 0
        ((worker, level),) = values(server, "WorkerLoadTime")
        assert (worker, level) == ("W-9001-one_1.0", "Host")
        chosen = scraped(server, "?name[]=Requests4XX&name[]=QueueTime")
        assert chosen.keys() == {"Requests4XX", "QueueTime"}
        assert server.ask("Inference", "GET", "/metrics").status == 404
        assert server.ask("Metrics", "GET", "/predictions/one").status == 404
    assert not lines(folder, "ts_metrics.log") + lines(folder, "model_metrics.log")


def test_the_log_mode_writes_lines_and_the_metrics_address_is_empty(folder: TorchServeFolder) -> None:
    with torchserve(folder, "--models", "one") as server:
        server.serves("one")
        assert server.ask("Metrics", "GET", "/metrics").body == b""
        assert server.ask("Inference", "POST", "/predictions/one/1.0?a=%22b%0A", b"x").status == 200
        with grpc.insecure_channel(f"127.0.0.1:{server.port('gRPC inference')}") as channel:
            method = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/Ping"
            channel.unary_unary(method, None, None)(b"", timeout=SECONDS)
        assert server.predict("one", b"kill").status == 507
        server.serves("one")
    host = r"\|#hostname:[^,|]+"
    for pattern in (
        rf"{TIME} - Requests2XX\.Count:1\.0\|#Level:Host{host},timestamp:\d+$",
        rf"{TIME} - Requests5XX\.Count:1\.0\|#Level:Host{host},timestamp:\d+$",
        rf"{TIME} - ts_inference_requests_total\.Count:1\.0\|#model_name:one,model_version:1\.0{host},timestamp:\d+$",
        rf"{TIME} - QueueTime\.Milliseconds:\d+\.0\|#Level:Host{host},timestamp:\d+$",
        rf"{TIME} - WorkerLoadTime\.Milliseconds:\d+\.0\|#WorkerName:W-9002-one_1\.0,Level:Host{host},timestamp:\d+$",
        rf"{TIME} - MemoryUsed\.Megabytes:[\d.]+\|#Level:Host{host},timestamp:\d+$",
    ):
        assert has_line(folder, "ts_metrics.log", pattern), (pattern, lines(folder, "ts_metrics.log"))
    uuid = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    assert has_line(
        folder,
        "model_metrics.log",
        rf"{TIME} - PredictionTime\.ms:[\d.]+\|#ModelName:one,Level:Model{host},requestID:{uuid},timestamp:\d+$",
    )
    assert not has_line(folder, "model_metrics.log", "Mine|Loads|Sizes")  # none of them is declared
    for pattern in (
        rf'{TIME} - /127\.0\.0\.1:\d+ "POST /predictions/one/1\.0\?a=%22b%0A HTTP/1\.1" 200 \d+$',
        rf'{TIME} - /127\.0\.0\.1:\d+ "POST /predictions/one HTTP/1\.1" 507 \d+$',
        rf'{TIME} - /127\.0\.0\.1:\d+ "GET /metrics HTTP/1\.1" 200 \d+$',
        rf'{TIME} - /127\.0\.0\.1:\d+ "gRPC org\.pytorch\.serve\S+/Ping HTTP/2\.0" 0 \d+$',
    ):
        assert has_line(folder, "access_log.log", pattern), (pattern, lines(folder, "access_log.log"))


def test_over_grpc_a_prediction_is_counted_without_its_latencies(folder: TorchServeFolder) -> None:
    with torchserve(folder, "--models", "one", text=f"{OPEN}metrics_mode=prometheus\n") as server:
        server.serves("one")
        method = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions"
        message = b"\n\x03one\x12\x031.0\x1a\x09\n\x04data\x12\x01x"
        with grpc.insecure_channel(f"127.0.0.1:{server.port('gRPC inference')}") as channel:
            assert b"ok" in channel.unary_unary(method, None, None)(message, timeout=SECONDS)
        assert values(server, "ts_inference_requests")["one", "1.0"] == 1
        for name in ("ts_inference_latency_microseconds", "ts_queue_latency_microseconds"):
            assert values(server, name).keys() == {("one", "default")}


@pytest.mark.parametrize("ends", ["the client leaves", "the worker dies"])
def test_a_stream_that_breaks_off_is_in_the_access_log_and_counts(
    folder: TorchServeFolder, ends: str
) -> None:
    last = "os._exit(3)" if ends == "the worker dies" else "time.sleep(0.05)"
    mark = folder.path / "mark"
    folder.model("streams", STREAM.replace("LAST", last).replace("MARK", str(mark)))
    with torchserve(folder, "--models", "streams", text=f"{OPEN}metrics_mode=prometheus\n") as server:
        until(lambda: "Model streams loaded." in server.said(), server.said)
        with socket.create_connection(("127.0.0.1", server.port("Inference")), SECONDS) as client:
            client.sendall(b"POST /predictions/streams HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
            seen = b""
            while b"a part" not in seen:
                seen += client.recv(4096)
        line = rf'{TIME} - /127\.0\.0\.1:\d+ "POST /predictions/streams HTTP/1\.1" 200 \d+$'
        until(partial(has_line, folder, "access_log.log", line), server.said)
        mark.touch()
        # Nobody has asked for anything else, but for scrapes; the first of them does not count itself.
        assert values(server, "Requests2XX") == {("Host",): 1}
        assert values(server, "Requests5XX") == {}


def test_workers_have_the_originals_lines_and_sentences(folder: TorchServeFolder) -> None:
    with torchserve(folder, "--models", "one") as server:
        server.serves("one")
        assert server.predict("one", b"fail").status == 503
        assert server.predict("one", b"kill").status == 507
        server.serves("one")
    for pattern in (
        rf"{TIME} \[INFO \] W-9001-one_1\.0-stdout MODEL_LOG - Torch worker started\.$",
        rf"{TIME} \[INFO \] W-9001-one_1\.0-stdout MODEL_LOG - Python runtime: 3\.\S+$",
        rf"{TIME} \[INFO \] W-9001-one_1\.0-stdout MODEL_LOG - model_name: one, batchSize: 1$",
        rf"{TIME} \[INFO \] W-9001-one_1\.0-stdout MODEL_LOG - here I am$",
        rf"{TIME} \[WARN \] W-9001-one_1\.0-stderr MODEL_LOG - and here$",
        rf"{TIME} \[WARN \] W-9001-one_1\.0-stderr MODEL_LOG - ValueError: as it was to$",
        rf"{TIME} \[INFO \] W-9002-one_1\.0-stdout MODEL_LOG - here I am$",
    ):
        assert has_line(folder, "model_log.log", pattern), (pattern, lines(folder, "model_log.log"))
    worker = r"W-900{}-one_1\.0 org\.pytorch\.serve\.wlm\.WorkerThread - "
    first, second = worker.format(1), worker.format(2)
    for pattern in (
        r"\[INFO \] main org\.pytorch\.serve\.wlm\.ModelManager - Model one loaded\.$",
        rf"\[DEBUG\] {first}W-9001-one_1\.0 State change null -> WORKER_STARTED$",
        rf"\[DEBUG\] {first}W-9001-one_1\.0 State change WORKER_STARTED -> WORKER_MODEL_LOADED$",
        rf"\[INFO \] {first}9001 Worker disconnected\. WORKER_MODEL_LOADED$",
        rf"\[DEBUG\] {first}W-9001-one_1\.0 State change WORKER_MODEL_LOADED -> WORKER_STOPPED$",
        rf"\[INFO \] {first}Auto recovery start timestamp: \d+$",
        rf"\[INFO \] {first}Retry worker: 9001 in 0 seconds\.$",
        rf"\[INFO \] {second}Auto recovery succeeded, reset recoveryStartTS$",
        rf"\[DEBUG\] {second}W-9002-one_1\.0 State change WORKER_MODEL_LOADED -> WORKER_SCALED_DOWN$",
    ):
        assert has_line(folder, "ts_log.log", TIME + " " + pattern), (pattern, lines(folder, "ts_log.log"))


def test_a_late_answer_and_a_failed_recovery_have_their_sentences(folder: TorchServeFolder) -> None:
    code = """
import os, time
if os.path.exists("%s"):
    os._exit(3)
def handle(data, context):
    if data is None:
        return None
    if data[0].get("body") == "die":
        open("%s", "w").close()
        os._exit(3)
    if data[0].get("body") == "late":
        time.sleep(600)
    return ["ok"] * len(data)
"""
    mark = folder.path / "mark"
    folder.model("two", code % (mark, mark), "responseTimeout: 1\nminWorkers: 1\n")
    with torchserve(folder, "--models", "two") as server:
        server.serves("two")
        assert server.predict("two", b"late").status == 500
        for pattern in (
            "Number or consecutive unsuccessful inference 1$",
            "Backend worker did not respond in given time$",
            r"Retry worker: 9001 in 0 seconds\.$",
        ):
            until(partial(has_line, folder, "ts_log.log", pattern), server.said)
        server.serves("two")
        assert server.predict("two", b"die").status == 500
        for pattern in (
            r"\[WARN \].* Auto recovery failed again$",
            r"Retry worker: 9003 in 1 seconds\.$",
        ):
            until(partial(has_line, folder, "ts_log.log", pattern), server.said)
        mark.unlink()
        server.serves("two")


def test_the_legacy_mode_keeps_three_and_writes_the_others(folder: TorchServeFolder) -> None:
    with torchserve(folder, "--models", "one", text=f"{OPEN}metrics_mode=legacy\n") as server:
        server.serves("one")
        assert scraped(server).keys() == {
            "ts_inference_requests",
            "ts_inference_latency_microseconds",
            "ts_queue_latency_microseconds",
        }
        assert values(server, "ts_inference_requests")["one", "default"] >= 1
    assert has_line(folder, "ts_metrics.log", "Requests2XX")
    assert not has_line(folder, "ts_metrics.log", "ts_inference_requests_total")


def test_a_file_says_which_metrics_there_are(folder: TorchServeFolder) -> None:
    file = folder.path / "my metrics.yaml"
    file.write_text(METRICS)
    text = f"{OPEN}metrics_mode=prometheus\nmetrics_config={file}\n"
    with torchserve(folder, "--models", "one", text=text) as server:
        server.serves("one")
        assert scraped(server).keys() == {"Requests2XX", "Mine", "Sizes"}
        mine = values(server, "Mine")["one", "Model"]
        assert mine >= 2
        assert mine % 2 == 0
        sizes = {sample.name: sample.value for sample in scraped(server)["Sizes"].samples}
        assert sizes["Sizes_sum"] == 3 * sizes["Sizes_count"]
        assert scraped(server)["Mine"].documentation.endswith("with unit: things")
    with torchserve(folder, "--models", "one", text=f"{OPEN}metrics_config={file}\n") as server:
        server.serves("one")
    line = r" - Mine\.things:2\.0\|#ModelName:one,Level:Model\|#hostname:[^,]+,requestID:\S+,timestamp:\d+$"
    assert has_line(folder, "model_metrics.log", line)


def test_metrics_that_need_no_declaration(folder: TorchServeFolder) -> None:
    text = f"{OPEN}metrics_mode=prometheus\nmodel_metrics_auto_detect=true\n"
    with torchserve(folder, "--models", "one", text=text) as server:
        server.serves("one")
        assert values(server, "Mine")["one", "Model"] >= 2
        assert values(server, "Loads") == {("one", "Model"): 1}
        assert scraped(server)["Sizes"].documentation.endswith("with unit: Kilobytes")


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        (
            "model_metrics:\n  counters: []\n",
            ":2: ",
            "unknown type; expected one of counter, gauge, histogram",
        ),
        ("ts_metrics: [\n", ":2: ", "expected"),
        (None, "", "No such file or directory"),
    ],
)
def test_a_bad_file_keeps_it_from_starting_and_is_found_by_check(
    folder: TorchServeFolder, text: str | None, where: str, words: str
) -> None:
    file = folder.path / "metrics.yaml"
    if text is not None:
        file.write_text(text)
    given = folder.configured(f"{OPEN}metrics_config={file}\n")
    status, output = said(folder, "--foreground", "--ts-config", given, "--model-store", folder.store)
    assert status == 1
    assert f"{file}{where}" in output
    assert words in output
    assert "leave metrics_config out" in output or "leave it out" in output
    checked = trivium("check", "--ts-config", given, "--model-store", folder.store)
    assert checked.returncode == 1
    assert words.split(";")[0] in re.sub(r"\s+", " ", checked.stdout)


def test_files_are_opened_anew_at_a_hangup(folder: TorchServeFolder) -> None:
    logs = folder.path / "logs"
    names = ("ts_log.log", "model_log.log", "access_log.log", "ts_metrics.log", "model_metrics.log")
    with torchserve(folder, "--models", "one") as server:
        server.serves("one")
        until(lambda: all((logs / name).stat().st_size for name in names), server.said)
        for name in names:
            (logs / name).rename(logs / f"{name}.1")
        server.signal(signal.SIGHUP)
        until(lambda: all((logs / name).exists() for name in names), server.said)
        assert server.predict("one", b"fail").status == 503
        assert server.predict("one", b"kill").status == 507
        server.serves("one")
        until(lambda: all((logs / name).stat().st_size for name in names), server.said)


def test_the_machine_may_be_measured_by_a_command(folder: TorchServeFolder) -> None:
    script = folder.path / "measure.py"
    script.write_text(
        "print('CPUUtilization.Percent:41.5|#Level:Host|#hostname:other,1700000000')\n"
        "print('Unknown.Percent:1|#Level:Host|#hostname:other,1700000000')\n"
        "print('GPUUtilization.Percent:7|#Level:Host,device_id:3|#hostname:other,1700000000')\n"
        "print('')\nprint('17:1024')\n"
    )
    text = f"{OPEN}metrics_mode=prometheus\nsystem_metrics_cmd={script} --gpu 0\nmetric_time_interval=1\n"
    with torchserve(folder, text=text) as server:
        until(lambda: values(server, "GPUUtilization") != {}, server.said)
        assert values(server, "CPUUtilization") == {("Host",): 41.5}
        assert values(server, "GPUUtilization") == {("Host", "3"): 7}
        assert values(server, "MemoryUsed") == {}
        script.write_text("print('nonsense')\n")
        until(lambda: "Parse metrics failed: nonsense" in server.said(), server.said)
        script.write_text("raise SystemExit(3)\n")
        until(lambda: "ended with status 3" in server.said(), server.said)
    assert server.said().count("Parse metrics failed") == 1


def test_nothing_is_measured_where_that_is_switched_off(folder: TorchServeFolder) -> None:
    text = f"{OPEN}metrics_mode=prometheus\ndisable_system_metrics=true\n"
    with torchserve(folder, "--models", "one", text=text) as server:
        server.serves("one")
        assert values(server, "CPUUtilization") == {}
        assert "CPUUtilization" in scraped(server)


def test_under_the_profile_they_stand_with_ours(folder: TorchServeFolder, tmp_path: Path) -> None:
    with serve_handlers(tmp_path / "serve", folder.store, "--profile", "torchserve") as server:
        until(server.is_ready, server.said)

        def asked(line: bytes, body: bytes = b"x") -> Answer:
            head = b"%b HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n" % line
            return ask(server.port, head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

        assert asked(b"POST /predictions/one").status == 200
        assert asked(b"POST /predictions/one", b"fail").status == 503
        assert asked(b"GET /predictions/nobody").status == 404
        text = asked(b"GET /metrics").body.decode()
        found = {family.name: family for family in text_string_to_metric_families(text)}
        (requests,) = found["ts_inference_requests"].samples
        assert (requests.labels["model_name"], requests.value) == ("one", 2)
        assert found["Requests5XX"].samples[0].value == 1
        assert found["Requests4XX"].samples[0].value == 1
        assert found["CPUUtilization"].samples[0].labels["Level"] == "Host"
        assert found["Mine"].samples[0].value == 2
        assert found["nv_inference_count"].samples
