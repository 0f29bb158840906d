"""The command `djl-serving` from outside: its flags, its files, its life, and how models are managed meanwhile."""

import os
import re
import shutil
import signal
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.harness.certificates import pair
from tests.harness.commands import trivium
from tests.harness.djl_serving import DjlServing, djl_serving, said
from tests.harness.raw_http import connect, read_answer
from tests.harness.server_process import SECONDS, until

from trivium.codecs.protobuf_schema import classes_of

ECHO = """
from djl_python import Output
def handle(inputs):
    if inputs.is_empty():
        handle.told = inputs.get_properties()
        return None
    return Output().add(inputs.get_as_bytes()).add_property("x-told", handle.told.get("{}", "nothing"))
"""
STAMP = """
from djl_python import Output
def handle(inputs):
    return None if inputs.is_empty() else Output().add("{}")
"""
FAILS = """
def handle(inputs):
    raise RuntimeError("no weights here")
"""


def folder(root: Path, name: str, code: str = ECHO, *lines: str) -> Path:
    place = root / name
    place.mkdir(parents=True)
    (place / "model.py").write_text(code)
    if lines:
        (place / "serving.properties").write_text("\n".join(lines) + "\n")
    return place


def zipped(place: Path) -> Path:
    archive = place.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w") as opened:
        for file in place.iterdir():
            opened.write(file, file.name)
    return archive


def rows(server: DjlServing) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.manage("GET", "/models").document["models"]
    return found


# -- the guide's Python mode -------------------------------------------------------------------------------


def test_the_guides_commands_from_a_folder_and_from_an_archive(tmp_path: Path) -> None:
    """`djl-serving -m resnet::Python=file://$PWD/resnet18.zip`, then `curl -X POST ... -T kitten.jpg`."""
    assert trivium("link", tmp_path / "bin").returncode == 0
    found = shutil.which("djl-serving", path=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert found
    place = folder(tmp_path, "resnet18")
    zipped(place)
    (tmp_path / "kitten.jpg").write_bytes(b"\xff\xd8 a kitten")
    (tmp_path / "dog.jpg").write_bytes(b"\xff\xd8 a dog")
    for what in ("resnet18.zip", "resnet18"):
        url = f"resnet::Python=file://{tmp_path}/{what}"
        with djl_serving(tmp_path / f"log-{what}", "-m", url, command=[found]) as server:
            for picture in ("kitten.jpg", "dog.jpg"):
                done = subprocess.run(
                    [
                        "curl",
                        "-s",
                        "-X",
                        "POST",
                        f"http://127.0.0.1:{server.port}/predictions/resnet",
                        "-T",
                        picture,
                    ],
                    cwd=tmp_path,
                    capture_output=True,
                    timeout=SECONDS,
                    check=True,
                )
                assert done.stdout == (tmp_path / picture).read_bytes()
            assert server.status_of("resnet") == "Healthy"


# -- where configuration comes from ------------------------------------------------------------------------


def test_a_file_a_store_and_the_environment(tmp_path: Path) -> None:
    folder(tmp_path / "models", "a", ECHO.format("x"), "batch_size=2")
    folder(tmp_path / "models", "b-1", ECHO.replace("{}", "colour"))
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.properties").write_text(
        "model_store=models\njob_queue_size=7\nbatch_size=5\n"
    )
    variables = {"ARGS_COLOUR": "blue", "SERVING_JOB_QUEUE_SIZE": "9"}
    with djl_serving(tmp_path / "log", home=tmp_path, variables=variables) as server:
        assert [row["modelName"] for row in rows(server)] == ["a", "b_1"]
        (first,) = server.manage("GET", "/models/a").document
        (second,) = server.manage("GET", "/models/b_1").document
        sizes = [(each["models"][0]["batchSize"], each["models"][0]["queueSize"]) for each in (first, second)]
        assert sizes == [(2, 9), (5, 9)]
        assert server.infer("POST", "/predictions/b_1", b"x").fields["x-told"] == "blue"
        log = server.said()
    assert f"Config file: {tmp_path / 'conf' / 'config.properties'}" in log
    assert "Default job_queue_size: 9" in log


def test_two_listeners_refuse_each_others_paths(tmp_path: Path) -> None:
    with djl_serving(tmp_path / "log", "-m", folder(tmp_path, "m"), split=True) as server:
        assert server.port != server.management
        assert server.infer("POST", "/predictions/m", b"x").body == b"x"
        assert server.infer("GET", "/models").status == 404
        assert server.manage("POST", "/predictions/m", b"x").status == 404
        assert server.manage("GET", "/models").status == 200


def test_a_unix_socket_and_header_lines_for_pages(tmp_path: Path) -> None:
    socket = tmp_path / "s"
    variables = {
        "SERVING_MANAGEMENT_ADDRESS": f"unix:{socket}",
        "SERVING_CORS_ALLOWED_ORIGIN": "https://a.example",
    }
    with djl_serving(tmp_path / "log", "-m", folder(tmp_path, "m"), variables=variables) as server:
        assert server.infer("GET", "/ping").fields["access-control-allow-origin"] == "https://a.example"
        done = subprocess.run(
            ["curl", "-s", "--unix-socket", str(socket), "http://localhost/models"],
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
        assert b'"modelName": "m"' in done.stdout
    assert not socket.exists()


def test_errors_have_the_originals_words(tmp_path: Path) -> None:
    with djl_serving(tmp_path / "log", "-m", folder(tmp_path, "m")) as server:
        answer = server.infer("POST", "/predictions/nobody", b"x")
        assert (answer.status, answer.document) == (
            404,
            {"code": 404, "type": "ModelNotFoundException", "message": "Model or workflow not found: nobody"},
        )
        assert server.manage("PUT", "/models/m?min_worker=x").status == 400


# -- life --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "variables", "status", "text"),
    [
        (("-f", "/nowhere/c.properties"), {}, 1, "Configuration file not found: /nowhere/c.properties"),
        (("--port", "8080"), {}, 1, "usage: djl-serving [OPTIONS]"),
        (("-h",), {}, 0, "usage: djl-serving [OPTIONS]"),
        (("-s", "/nowhere"), {}, 1, "The model store /nowhere cannot be read"),
        ((), {"SERVING_JOB_QUEUE_SIZE": "x"}, 1, "a whole number from 1"),
        ((), {"MODEL_SERVER_HOME": "/nowhere"}, 1, "Model server home not found: /nowhere"),
        (("-m", "djl://a/b"), {}, 1, "not fetched from djl://"),
        (("-i", "x:y:1"), {}, 1, "installs Java packages"),
    ],
)
def test_what_keeps_it_from_starting_is_said_with_the_originals_status(
    tmp_path: Path, words: tuple[str, ...], variables: dict[str, str], status: int, text: str
) -> None:
    got, output = said(*words, variables=variables, cwd=tmp_path)
    assert (got, text in output, "Traceback" in output) == (status, True, False), output


def test_an_address_that_is_taken_is_status_2(tmp_path: Path) -> None:
    place = folder(tmp_path, "m")
    with djl_serving(tmp_path / "log", "-m", place) as server:
        taken = {"SERVING_INFERENCE_ADDRESS": f"http://127.0.0.1:{server.port}"}
        status, output = said(
            "-m", place, variables={**taken, "SERVING_MANAGEMENT_ADDRESS": "http://127.0.0.1:0"}
        )
        assert status == 2, output


def test_a_model_that_fails_ends_it_before_it_listens(tmp_path: Path) -> None:
    bad = folder(tmp_path, "bad", FAILS)
    status, output = said(
        "-m", folder(tmp_path, "good"), bad, variables={"SERVING_INFERENCE_ADDRESS": "http://127.0.0.1:0"}
    )
    assert status == 1
    assert "no weights here" in output
    assert "API bind to" not in output


def test_without_waiting_it_listens_first_and_says_how_its_models_are(tmp_path: Path) -> None:
    slow = folder(tmp_path, "slow", "import time\ntime.sleep(2)\n" + STAMP.format("ready"))
    variables = {"SERVING_WAIT_MODEL_LOADING": "false", "SERVING_ALLOW_MULTI_STATUS": "true"}
    with djl_serving(tmp_path / "log", "-m", slow, variables=variables) as server:
        answer = server.infer("GET", "/ping")
        assert (answer.status, answer.document) == (207, {"slow": {"status": "PENDING"}})
        until(lambda: server.status_of("slow") == "Healthy", server.said)
        assert server.infer("GET", "/ping").status == 200


def test_without_waiting_a_model_that_fails_ends_it_a_little_later(tmp_path: Path) -> None:
    bad = folder(tmp_path, "bad", FAILS)
    variables = {"SERVING_WAIT_MODEL_LOADING": "false"}
    with djl_serving(tmp_path / "log", "-m", bad, variables=variables, status=1) as server:
        until(lambda: "Failed to load model bad" in server.said(), server.said)
        assert server.infer("GET", "/ping").status == 500
        server.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_with_0(tmp_path: Path, number: signal.Signals) -> None:
    with djl_serving(tmp_path / "log", "-m", folder(tmp_path, "m")) as server:
        server.signal(number)
        assert server.wait() == 0


# -- management --------------------------------------------------------------------------------------------


def test_models_are_registered_scaled_described_and_unregistered(tmp_path: Path) -> None:
    place = folder(tmp_path, "two", STAMP.format("two"))
    with djl_serving(tmp_path / "log", "-m", folder(tmp_path, "one"), split=True) as server:
        done = server.manage("POST", f"/models?url=file://{place}&batch_size=3&min_worker=1&max_worker=2")
        assert done.document == {"status": 'Model "two" registered.'}
        assert server.infer("POST", "/predictions/two", b"x").body == b"two"
        again = server.manage("POST", f"/models?url=file://{place}")
        assert (again.status, again.document["message"]) == (409, "Workflow two is already registered.")
        (about,) = server.manage("GET", "/models/two").document
        (model,) = about["models"]
        assert (model["batchSize"], model["loadedAtStartup"], model["status"]) == (3, False, "Healthy")
        (group,) = model["workerGroups"]
        assert (group["minWorkers"], group["maxWorkers"], len(group["workers"])) == (1, 2, 1)
        assert server.manage("PUT", "/models/two?min_worker=2").status == 200
        until(lambda: workers(server, "two") == 2, server.said)
        assert server.manage("PUT", "/models/two?min_worker=0&max_worker=0").status == 200
        refused = server.infer("POST", "/predictions/two", b"x")
        assert (refused.status, refused.document["type"]) == (503, "WlmShutdownException")
        assert server.manage("PUT", "/models/two?max_worker=1").status == 200
        assert server.infer("POST", "/predictions/two", b"x").body == b"two"
        assert server.manage("DELETE", "/models/two").document == {
            "status": 'Model or workflow "two" unregistered'
        }
        assert server.infer("POST", "/predictions/two", b"x").status == 404
        assert [row["modelName"] for row in rows(server)] == ["one"]


def workers(server: DjlServing, model: str) -> int:
    (about,) = server.manage("GET", f"/models/{model}").document
    return sum(len(group["workers"]) for group in about["models"][0]["workerGroups"])


def test_versions_take_turns_and_are_asked_for_by_name(tmp_path: Path) -> None:
    for name in ("v1", "v2"):
        folder(tmp_path, name, STAMP.format(name))
    with djl_serving(tmp_path / "log", "-m", f"m:v1=file://{tmp_path}/v1") as server:
        done = server.manage("POST", f"/models?url=file://{tmp_path}/v2&model_name=m&model_version=v2")
        assert done.status == 200, done
        answers = [server.infer("POST", "/predictions/m", b"x").body for _ in range(4)]
        assert sorted(answers) == [b"v1", b"v1", b"v2", b"v2"]
        assert server.infer("POST", "/predictions/m/v2", b"x").body == b"v2"
        assert [(row["modelName"], row["version"]) for row in rows(server)] == [("m", "v1"), ("m", "v2")]
        assert server.manage("DELETE", "/models/m/v1").status == 200
        assert {server.infer("POST", "/predictions/m", b"x").body for _ in range(3)} == {b"v2"}
        unversioned = server.manage("POST", f"/models?url=file://{tmp_path}/v1&model_name=m")
        assert unversioned.status == 409


def test_a_registration_that_fails_leaves_nothing_and_one_behind_stays_listed(tmp_path: Path) -> None:
    bad = folder(tmp_path, "bad", FAILS)
    with djl_serving(tmp_path / "log", "-m", folder(tmp_path, "one")) as server:
        assert server.manage("POST", f"/models?url=file://{bad}").status == 500
        assert [row["modelName"] for row in rows(server)] == ["one"]
        assert server.manage("POST", f"/models?url=file://{bad}&synchronous=false").status == 202
        until(lambda: [row["status"] for row in rows(server)] == ["FAILED", "READY"], server.said)
        assert server.infer("GET", "/ping").status == 500
        assert server.manage("DELETE", "/models/bad").status == 200
        assert server.infer("GET", "/ping").status == 200


def test_the_startup_model_answers_invocations_whatever_is_registered_later(tmp_path: Path) -> None:
    folder(tmp_path, "two", STAMP.format("two"))
    with djl_serving(tmp_path / "log", "-m", folder(tmp_path, "one")) as server:
        assert server.manage("POST", f"/models?url=file://{tmp_path}/two").status == 200
        assert server.infer("POST", "/invocations", b"x").body == b"x"
        assert server.infer("POST", "/invocations?model_name=two", b"x").body == b"two"


# -- answers that are fetched later ------------------------------------------------------------------------

STREAM = """
from djl_python import Output
def parts(count):
    for number in range(count):
        yield "%d," % number
def handle(inputs):
    if inputs.is_empty():
        return None
    return Output().add_stream_content(parts(int(inputs.get_as_string())), output_formatter=None)
"""


def fetched(server: DjlServing, token: str, most: int) -> bytes:
    joined = b""
    while token:
        fields = f"x-starting-token: {token}\r\n" + (f"x-max-items: {most}\r\n" if most else "")
        answer = server.infer("POST", "/predictions/m", b"", fields)
        assert answer.status in (200, 202), answer
        joined += answer.body
        token = answer.fields.get("x-next-token", "")
    return joined


def test_a_stream_is_fetched_in_pages_and_joined_is_the_stream(tmp_path: Path) -> None:
    with djl_serving(tmp_path / "log", "-m", folder(tmp_path, "m", STREAM)) as server:
        whole = "".join(f"{number}," for number in range(9)).encode()
        for most in (1, 2, 0):
            begun = server.infer("POST", "/predictions/m", b"9", "x-synchronous: false\r\n")
            assert (begun.status, begun.body) == (200, b"")
            token = begun.fields["x-next-token"]
            assert begun.fields["x-amzn-sagemaker-custom-attributes"] == f"x-next-token={token}"
            assert fetched(server, token, most) == whole
        invented = server.infer("POST", "/invocations", b"", f"x-starting-token: {'0' * 36}\r\n")
        assert invented.status == 400
        assert invented.document["message"] == f"Invalid x-starting-token: {'0' * 36}"


def test_ten_thousand_that_nobody_fetches_leave_memory_flat(tmp_path: Path) -> None:
    place = folder(tmp_path, "m", ECHO)
    variables = {"TRIVIUM_DEFERRED_ANSWERS": "100", "TRIVIUM_DEFERRED_BYTES": str(8 * 2**20)}
    with djl_serving(tmp_path / "log", "-m", place, variables=variables) as server:
        body, fields = b"x" * 2**15, "x-synchronous: false\r\n"
        request = (
            f"POST /predictions/m HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{fields}\r\n"
        )
        with connect(server.port) as plug:
            for number in range(10_000):
                plug.sendall(request.encode() + body)
                assert read_answer(plug).status in (200, 503)
                if number == 1000:
                    before = server.process.memory_info().rss
        assert server.process.memory_info().rss < before + 32 * 2**20


# -- gRPC --------------------------------------------------------------------------------------------------


def test_its_grpc_service_pings_and_streams(tmp_path: Path) -> None:
    messages = classes_of(
        "ai.djl.serving.grpc.proto",
        {
            "Request": "1 string model_name\n2 string model_version\n4 map<string,bytes> headers\n5 bytes input",
            "Response": "1 int32 code\n2 map<string,bytes> headers\n3 bytes output",
            "Ping": "1 int32 code\n2 map<string,string> model_status",
        },
    )
    request, response, pinged = messages["Request"], messages["Response"], messages["Ping"]
    folder(tmp_path / "models", "echo")
    folder(tmp_path / "models", "parts", STREAM)
    variables = {"SERVING_GRPC_PORT": "0", "SERVING_MODEL_STORE": str(tmp_path / "models")}
    with djl_serving(tmp_path / "log", variables=variables) as server:
        place = server.await_line(re.compile(r"GRPC API bind to: (\S+)"))[1]
        with grpc.insecure_channel(place) as channel:
            service = "/ai.djl.serving.grpc.proto.Inference/"
            ping = channel.unary_unary(service + "Ping", lambda _: b"", pinged.FromString)
            predict = channel.unary_stream(
                service + "Predict", request.SerializeToString, response.FromString
            )
            said = ping(None, timeout=60)
            assert (said.code, dict(said.model_status)) == (200, {"echo": "Healthy", "parts": "Healthy"})
            (only,) = predict(request(model_name="echo", input=b"hello"), timeout=60)
            assert (only.code, only.output, only.headers["x-told"]) == (200, b"hello", b"nothing")
            pieces = [
                answer.output for answer in predict(request(model_name="parts", input=b"3"), timeout=60)
            ]
            assert b"".join(pieces) == b"0,1,2,"
            with pytest.raises(grpc.RpcError) as caught:
                list(predict(request(model_name="nobody"), timeout=60))
            assert caught.value.code() is grpc.StatusCode.NOT_FOUND


# -- health ------------------------------------------------------------------------------------------------


def test_errors_that_come_too_fast_make_the_health_503_for_good(tmp_path: Path) -> None:
    """Sharp edge 6 of the sheet: 503 sticky on error rate, on both listeners."""
    code = STAMP.format("x").replace(
        "return None if", "if inputs.get_as_string() == 'fail': raise ValueError\n    return None if"
    )
    code = code.replace("if inputs.get_as_string()", "if not inputs.is_empty() and inputs.get_as_string()")
    place = folder(tmp_path, "m", code)
    variables = {"SERVING_ERROR_RATE_MODEL": "1/PT1H"}
    with djl_serving(tmp_path / "log", "-m", place, split=True, variables=variables) as server:
        assert server.infer("POST", "/predictions/m", b"fail").status == 424
        assert server.infer("GET", "/ping").status == 200
        assert server.infer("POST", "/predictions/m", b"fail").status == 424
        assert server.infer("POST", "/predictions/m", b"x").status == 200
        for answer in (server.infer("GET", "/ping"), server.manage("GET", "/ping")):
            assert answer.status == 503
            assert answer.document == {"m": {"status": "Healthy"}}


def test_a_model_that_is_given_up_ends_a_server_that_fails_fast(tmp_path: Path) -> None:
    """`SERVING_FAIL_FAST`: status 137 once a worker has used up its retries."""
    code = STAMP.format("x").replace(
        "return None if", "import os\n    inputs.is_empty() or os._exit(3)\n    return None if"
    )
    place = folder(tmp_path, "m", code, "retry_threshold=0")
    variables = {"SERVING_FAIL_FAST": "true"}
    with djl_serving(tmp_path / "log", "-m", place, status=137, variables=variables) as server:
        assert server.infer("POST", "/predictions/m", b"x").status == 503
        until(server.has_ended, server.said)
        assert "Model m failed: Model 'm' was given up" in server.said()


def test_a_key_store_and_parts_that_do_not_come(tmp_path: Path) -> None:
    """PKCS12 for https, and `chunked_read_timeout`: the answer breaks off without an error."""
    pytest.importorskip("cryptography")
    certificate, key = pair(tmp_path, "own")
    command = ["openssl", "pkcs12", "-export", "-in", certificate, "-inkey", key, "-passout", "pass:changeit"]
    subprocess.run([*command, "-out", str(tmp_path / "own.p12")], check=True, capture_output=True)
    code = """
import time
from djl_python import Output
def handle(inputs):
    if inputs.is_empty():
        return None
    def parts():
        yield b"first"
        time.sleep(60)
    return Output().add_stream_content(parts(), None)
"""
    lines = "inference_address=https://127.0.0.1:0\nkeystore=own.p12\nchunked_read_timeout=1\n"
    (tmp_path / "config.properties").write_text(lines)
    variables = {"SERVING_INFERENCE_ADDRESS": "", "SERVING_MANAGEMENT_ADDRESS": ""}
    place = folder(tmp_path, "m", code)
    with djl_serving(
        tmp_path / "log", "-m", place, status=-9, variables=variables, home=tmp_path, listens=False
    ) as server:
        port = server.await_line(re.compile(r"BOTH API bind to: https://[\w.]+:(\d+)"))[1]
        url = f"https://127.0.0.1:{port}/predictions/m"
        done = subprocess.run(
            ["curl", "-s", "--cacert", certificate, "-X", "POST", "-d", "x", url],
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.stdout == b"first"
        assert done.returncode in (18, 56)  # a transfer that was cut short
        server.signal(signal.SIGKILL)  # the handler sleeps on


def test_a_prediction_registers_its_model_where_the_pattern_allows_it(tmp_path: Path) -> None:
    folder(tmp_path / "store", "late", STAMP.format("late"))
    url = f"file://{tmp_path}/store/late"
    variables = {"SERVING_MODEL_URL_PATTERN": f"file://{re.escape(str(tmp_path))}/store/[a-z]+"}
    with djl_serving(tmp_path / "log", "-m", folder(tmp_path, "m"), variables=variables) as server:
        assert server.infer("POST", "/predictions/late", b"x").document["message"] == (
            "Parameter model_url is required."
        )
        denied = server.infer("POST", "/predictions/late", b"x", f"model_url: {tmp_path}/m\r\n")
        assert (denied.status, denied.document["message"]) == (404, f"Permission denied: {tmp_path}/m")
        missing = server.infer("POST", f"/predictions/none?model_url={url}x", b"x")
        assert missing.status == 404
        assert [row["modelName"] for row in rows(server)] == ["m"]
        body = b"x" * 200_000
        for _ in range(2):
            assert server.infer("POST", f"/predictions/late?model_url={url}", body).body == b"late"
        assert server.infer("POST", "/predictions/late", b"x").body == b"late"
        assert [row["modelName"] for row in rows(server)] == ["late", "m"]


def test_metrics_have_the_originals_names(tmp_path: Path) -> None:
    variables = {"SERVING_PROMETHEUS": "true"}
    with djl_serving(
        tmp_path / "log", "-m", folder(tmp_path, "m"), split=True, variables=variables
    ) as server:
        assert server.infer("POST", "/predictions/m", b"x").status == 200
        assert server.infer("POST", "/predictions/nobody", b"x").status == 404
        shown = server.manage("GET", "/server/metrics").body.decode()
        for line in (
            r'DJLServingStart_total\{Version="[^"]+"\} 1',
            r'StartupLatency\{Host="[^"]+"\} \d+',
            r'LoadModel\{Model="m"\} \d+',
            r'Response_2XX_total\{Host="[^"]+"\} 1',
            r'Response_4XX_total\{Host="[^"]+"\} 1',
            r'QueueTime_count\{Model="m"\} 1',
            r'RequestLatency_count\{Model="m"\} 1',
            r'DynamicBatchSize\{Model="m",Version="1"\} 1',
        ):
            assert re.search(f"^{line}", shown, re.MULTILINE), (line, shown)
        assert re.search(r"\[INFO \] server_metric - DJLServingStart\.Count:1\|#Version:", server.said())
        assert re.search(r"\[INFO \] model_metric - LoadModel\.Microseconds:\d+\|#Model:m,", server.said())


def test_closed_management_is_open_to_this_machine_on_an_address_of_its_own(tmp_path: Path) -> None:
    place = folder(tmp_path, "m")
    variables = {"SERVING_INFERENCE_ADDRESS": "http://0.0.0.0:0", "SERVING_TRIVIUM_MANAGEMENT": "closed"}
    with djl_serving(tmp_path / "log", "-m", place, split=True, variables=variables) as server:
        assert server.manage("POST", f"/models?url={place}&model_name=n").status == 200
        assert server.manage("DELETE", "/models/n").status == 200
    both = {**variables, "SERVING_MANAGEMENT_ADDRESS": "http://0.0.0.0:0"}
    with djl_serving(tmp_path / "log2", "-m", place, variables=both) as server:
        assert server.manage("POST", f"/models?url={place}&model_name=n").status == 403
        assert "managed by a management_address on this machine alone" in server.said()
        status, text = said(
            "-m", place, variables={"SERVING_INFERENCE_ADDRESS": f"http://127.0.0.1:{server.port}"}
        )
        assert (status, "Choose another by inference_address" in text) == (2, True), text
