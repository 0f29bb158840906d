"""TorchServe's management over the real server: models come, go and are scaled while clients ask; nothing is lost, and
nothing that failed stays behind.
"""

import json
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
import tritonclient.grpc as tritonclient
from tests.harness.server_process import running, until
from tests.harness.torchserve_management import (
    ECHO,
    FAILS,
    OPTIONS,
    STREAMS,
    Managed,
    archive,
    managed,
    managed_by,
)
from tests.harness.web import body, status, web
from tritonclient.grpc import service_pb2

SLOW_START = "import time\ntime.sleep(0.5)\n"
LONG = """
import time
from ts.handler_utils.utils import send_intermediate_predict_response
def handle(data, context):
    if data is None:
        return None
    for number in range(19):
        time.sleep(0.02)
        send_intermediate_predict_response(["%d " % number] * len(data), context.request_ids, "ok", 200, context)
    return ["19 "] * len(data)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("store")
    archive(root, "echo")
    archive(root, "echo", "2.0", file="echo2.mar")
    archive(root, "other")
    archive(root, "bad", code=FAILS)
    archive(root, "streams", code=STREAMS)
    archive(root, "memory", code=FAILS.replace("RuntimeError('no weights')", "MemoryError()"))
    archive(root, "yam", config="minWorkers: 1\nmaxWorkers: 1\nbatchSize: 2\n")
    (root / "notes.txt").write_text("no model")
    (root / "broken.mar").write_bytes(b"PK\x03\x04 and no more")
    with zipfile.ZipFile(root / "upwards.mar", "w") as packed:
        packed.writestr("../../escaped.py", "")
        packed.writestr("MAR-INF/MANIFEST.json", "{}")
    return root


@pytest.fixture(scope="module")
def server(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Managed]:
    log = tmp_path_factory.mktemp("log") / "log"
    with managed(log, store, store / "echo.mar", store / "bad.mar", store / "streams.mar") as serving:
        until(lambda: serving.predict("echo")[0] == 200, serving.process.said)
        yield serving


# -- over HTTP ---------------------------------------------------------------------------------------------


def test_the_life_of_a_model(server: Managed) -> None:
    text = 'Model "life" Version: 1.0 registered with 0 initial workers. Use scale workers API to add workers for the '
    assert server.status("POST", "/models?url=other.mar&model_name=life") == (200, f"{text}model.")
    assert server.names() == ["echo", "life", "streams"]
    assert server.predict("life")[0] == 503
    (described,) = server.describe("life")
    assert (described["modelUrl"], described["workers"], described["minWorkers"]) == ("other.mar", [], 0)
    query = "min_worker=2&synchronous=true"
    assert server.status("PUT", f"/models/life?{query}") == (200, "Workers scaled to 2 for model: life")
    assert server.predict("life", "x") == (200, "1.0:x")
    (described,) = server.describe("life")
    assert [each["status"] for each in described["workers"]] == ["READY", "READY"]
    assert len({each["pid"] for each in described["workers"]}) == 2
    assert described["loadedAtStartup"] is False
    assert server.status("DELETE", "/models/life") == (200, 'Model "life" unregistered')
    assert server.predict("life")[0] == 404
    assert server.status("GET", "/models/life") == (404, "Model not found: life")
    assert server.status("DELETE", "/models/life") == (404, "Model not found: life")


def test_a_later_version_does_not_become_the_default_one(server: Managed) -> None:
    query = "url=echo2.mar&initial_workers=1"
    text = 'Model "echo" Version: 2.0 registered with 1 initial workers'
    assert server.status("POST", f"/models?{query}") == (200, text)
    try:
        assert server.predict("echo") == (200, "1.0:x")
        assert server.predict("echo/2.0") == (200, "2.0:x")
        assert [each["modelVersion"] for each in server.describe("echo")] == ["1.0"]
        assert [each["modelVersion"] for each in server.describe("echo/all")] == ["1.0", "2.0"]
        text = 'Default version successfully updated for model "echo" to "2.0"'
        assert server.status("PUT", "/models/echo/2.0/set-default") == (200, text)
        assert server.predict("echo") == (200, "2.0:x")
        for path in ("echo", "echo/2.0"):
            answer = server.manage("DELETE", f"/models/{path}")
            assert (answer.status_code, answer.json()["type"]) == (403, "InvalidModelVersionException")
        assert server.status("PUT", "/models/echo/1.0/set-default")[0] == 200
    finally:
        assert server.status("DELETE", "/models/echo/2.0") == (200, 'Model "echo" unregistered')
    assert server.predict("echo") == (200, "1.0:x")


def test_members_of_a_body_and_the_file_that_goes_before_them(server: Managed) -> None:
    asked = {"url": "yam.mar", "initial_workers": "3", "response_timeout": 7, "synchronous": "true"}
    assert server.manage("POST", "/models", json=asked).json() == {
        "status": 'Model "yam" Version: 1.0 registered with 1 initial workers'
    }
    (described,) = server.describe("yam")
    assert server.status("DELETE", "/models/yam")[0] == 200
    assert [described[key] for key in ("maxWorkers", "batchSize", "responseTimeout")] == [1, 2, 120]


def test_a_registration_that_nobody_waits_for(server: Managed) -> None:
    query = "url=other.mar&model_name=later&initial_workers=1&synchronous=false"
    assert server.status("POST", f"/models?{query}") == (202, "Processing worker updates...")
    until(lambda: server.predict("later") == (200, "1.0:x"), lambda: str(server.describe("later")))
    assert server.status("DELETE", "/models/later")[0] == 200


@pytest.mark.parametrize(
    ("url", "code", "kind"),
    [
        ("bad.mar", 500, "InternalServerException"),
        ("memory.mar", 507, "InternalServerException"),
        ("broken.mar", 400, "InvalidModelException"),
        ("upwards.mar", 400, "InvalidModelException"),
        ("notes.txt", 404, "ModelNotFoundException"),
    ],
)
def test_a_registration_that_fails_leaves_nothing_behind(
    server: Managed, url: str, code: int, kind: str
) -> None:
    before = server.names()
    workers = sum(len(each["workers"]) for name in before for each in server.describe(f"{name}/all"))
    for _ in range(2):
        answer = server.manage("POST", f"/models?url={url}&model_name=failing&initial_workers=2")
        assert (answer.status_code, answer.json()["type"]) == (code, kind), answer.text
        assert server.names() == before
        assert server.status("GET", "/models/failing") == (404, "Model not found: failing")
        assert server.predict("failing")[0] == 404
    if code >= 500:
        assert answer.json()["message"] == "Failed to start workers for model failing version: 1.0"
    until(lambda: len(server.process.workers()) == workers, server.process.said)
    assert server.infer("GET", "/ping").json() == {"status": "Healthy"}
    assert server.predict("echo") == (200, "1.0:x")


def test_of_a_hundred_registrations_of_one_name_one_is_taken(server: Managed) -> None:
    start = threading.Barrier(100)
    workers = len(server.process.workers())

    def register(_: int) -> tuple[int, str]:
        start.wait()
        return server.status("POST", "/models?url=other.mar&model_name=once&initial_workers=1")

    with ThreadPoolExecutor(100) as threads:
        answers = Counter(threads.map(register, range(100)))
    assert answers == {
        (200, 'Model "once" Version: 1.0 registered with 1 initial workers'): 1,
        (409, "Model version 1.0 is already registered for model once"): 99,
    }
    assert server.predict("once") == (200, "1.0:x")
    assert server.predict("echo") == (200, "1.0:x")
    assert [len(server.describe("once/all")), server.names().count("once")] == [1, 1]
    told = "register 'other.mar' is answered with 409: Model 'once' version 1.0 is registered already. Unregister it"
    until(lambda: server.process.said().count(told) == 99, server.process.said)
    assert server.status("DELETE", "/models/once")[0] == 200
    until(lambda: len(server.process.workers()) == workers, server.process.said)
    assert server.infer("GET", "/ping").json() == {"status": "Healthy"}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("min_worker=-1", 400),
        ("min_worker=1000000000", 400),
        ("min_worker=0&max_worker=1000000000", 400),
        ("min_worker=3&max_worker=1", 400),
        ("min_worker=text", 200),
        ("min_worker=99999999999999999999", 200),
        ("min_worker=1&max_worker=1&number_gpu=7&timeout=-1", 200),
    ],
)
def test_bounds_that_cannot_be_change_nothing(server: Managed, query: str, code: int) -> None:
    answer = server.manage("PUT", f"/models/echo?{query}&synchronous=true")
    assert answer.status_code == code, answer.text
    (described,) = server.describe("echo")
    assert [described["minWorkers"], described["maxWorkers"], len(described["workers"])] == [1, 1, 1]
    assert server.predict("echo") == (200, "1.0:x")


@pytest.mark.parametrize("name", ["%252e%252e", "...", "a%2fb", "%00", "%ff", "a b", "x" * 5000, "{}", "%s"])
def test_hostile_names_are_not_found(server: Managed, name: str) -> None:
    for method, path in (
        ("GET", f"/models/{name}"),
        ("PUT", f"/models/{name}"),
        ("DELETE", f"/models/{name}"),
        ("PUT", f"/models/{name}/1.0/set-default"),
        ("GET", f"/models/echo/{name}"),
    ):
        answer = server.manage(method, path)
        assert answer.status_code in (400, 404, 405), answer.text
    assert server.predict("echo") == (200, "1.0:x")


@pytest.mark.parametrize(
    "url",
    [
        "../echo.mar",
        "%2e%2e/echo.mar",
        "%252e%252e%252fecho.mar",
        "/etc/passwd",
        "/etc",
        "/proc/self/root/etc",
        "file:///etc/passwd",
        "file://localhost/etc/passwd",
        "http://127.0.0.1:1/m.mar",
        "http://169.254.169.254/latest/m.mar",
        "ftp://h/m.mar",
        "s3://bucket/m.mar",
        "notes.txt",
        "m%00.mar",
        "",
        "/",
        ".",
        "x" * 9000,
    ],
)
def test_nothing_outside_the_store_can_be_registered(server: Managed, url: str) -> None:
    before = server.names()
    for asked in (f"/models?url={url}", f"/models?url={url}&handler=handler.py&initial_workers=1"):
        answer = server.manage("POST", asked)
        assert answer.status_code in (400, 404, 414), answer.text
        kinds = ("ModelNotFoundException", "DownloadArchiveException")
        assert answer.status_code == 414 or answer.json()["type"] in kinds
    assert server.names() == before


def test_a_handler_outside_its_archive_cannot_be_named(server: Managed) -> None:
    for handler in ("../../../etc/passwd", "/etc/passwd", "nope.py"):
        answer = server.manage(
            "POST", f"/models?url=other.mar&model_name=h&initial_workers=1&handler={handler}"
        )
        assert answer.status_code == 400, answer.text
    assert "h" not in server.names()


def test_what_lies_elsewhere_is_fetched_where_both_lists_have_it(store: Path, tmp_path: Path) -> None:
    data = (store / "other.mar").read_bytes()
    answers = {
        "/m.mar": body(data),
        "/cut.mar": body(data[:100], len(data)),
        "/loop.mar": status(302, Location="http://localhost:1/m.mar"),
        "/link.mar": status(302, Location="http://169.254.169.254/m.mar"),
    }
    with web(answers) as site:
        host = site.url.replace(".", r"\.")
        words = ("--torchserve-allowed-urls", f"{host}/.*,file://{store}/.*", "--fetch-from", site.url)
        with managed(tmp_path / "log", store, store / "echo.mar", *words) as server:
            query = "initial_workers=1&model_name"
            assert server.status("POST", f"/models?url={site.url}/m.mar&{query}=a")[0] == 200
            assert server.status("POST", f"/models?url=file://{store}/other.mar&{query}=b")[0] == 200
            assert [server.predict(name) for name in ("a", "b")] == [(200, "1.0:x")] * 2
            assert server.describe("a")[0]["modelUrl"] == f"{site.url}/m.mar"
            for path in ("cut.mar", "gone.mar"):
                text = f"Failed to download archive from: {site.url}/{path}"
                assert server.status("POST", f"/models?url={site.url}/{path}&{query}=c") == (400, text)
            for path in ("loop.mar", "link.mar"):
                assert server.status("POST", f"/models?url={site.url}/{path}&{query}=c")[0] in (400, 404)
            url = f"http://localhost:{site.port}/m.mar"
            text = f"Given URL {url} does not match any allowed URL(s)"
            assert server.status("POST", f"/models?url={url}&{query}=c") == (404, text)
            assert server.names() == ["a", "b", "echo"]
            assert (store / "other.mar").is_file()
            for name in ("a", "b"):
                assert server.status("DELETE", f"/models/{name}")[0] == 200
            assert (store / "other.mar").read_bytes() == data


# -- under load --------------------------------------------------------------------------------------------


def test_unregistering_during_a_load_leaves_nothing(server: Managed, store: Path) -> None:
    archive(
        store, "gone", code=SLOW_START + "def handle(data, context):\n    return ['x'] * len(data or [])\n"
    )
    with ThreadPoolExecutor(1) as thread:
        loading = thread.submit(server.status, "POST", "/models?url=gone.mar&initial_workers=1")
        until(lambda: "gone" in server.names() or loading.done(), server.process.said)
        ended = server.status("DELETE", "/models/gone")
        registered = loading.result(60)
    assert registered[0] == 200, registered
    assert ended[0] == 200, ended
    assert "gone" not in server.names()
    assert server.predict("gone")[0] == 404


@pytest.mark.parametrize(
    ("path", "answer", "workers"),
    [
        ("late?min_worker=2&synchronous=true", (200, "Workers scaled to 2 for model: late"), 2),
        ("late?min_worker=0&synchronous=true", (200, "Workers scaled to 0 for model: late"), 0),
        ("late/1.0?min_worker=2", (202, "Processing worker updates..."), 2),
        (
            "late/1.0/set-default",
            (200, 'Default version successfully updated for model "late" to "1.0"'),
            1,
        ),
    ],
)
def test_a_change_during_a_load_is_made_once_it_is_through(
    server: Managed, store: Path, path: str, answer: tuple[int, str], workers: int
) -> None:
    archive(store, "late", code=SLOW_START + ECHO)
    with ThreadPoolExecutor(1) as thread:
        loading = thread.submit(server.status, "POST", "/models?url=late.mar&initial_workers=1")
        until(lambda: "late" in server.names() or loading.done(), server.process.said)
        assert server.predict("echo") == (200, "1.0:x")
        assert server.status("PUT", f"/models/{path}") == answer
        assert loading.result(60) == (200, 'Model "late" Version: 1.0 registered with 1 initial workers')
    until(lambda: len(server.describe("late")[0]["workers"]) == workers, server.process.said)
    assert server.predict("late")[0] == (200 if workers else 503)
    assert server.infer("GET", "/ping").json() == {"status": "Healthy"}
    assert server.status("DELETE", "/models/late")[0] == 200
    assert "late" not in server.names()


def test_scaling_to_0_and_back_loses_no_request_that_was_let_in(server: Managed) -> None:
    assert server.status("POST", "/models?url=other.mar&model_name=tide&initial_workers=1")[0] == 200
    ends = threading.Event()

    def ask(_: int) -> Counter[tuple[int, str]]:
        found: Counter[tuple[int, str]] = Counter()
        while not ends.is_set():
            code, text = server.predict("tide", "slow")
            found[(code, text if code == 200 else json.loads(text)["type"])] += 1
        return found

    with ThreadPoolExecutor(6) as threads:
        asking = [threads.submit(ask, number) for number in range(6)]
        for _ in range(6):
            until(lambda: server.predict("tide") == (200, "1.0:x"), server.process.said)
            for count in (0, 1, 2):
                text = f"Workers scaled to {count} for model: tide"
                query = f"min_worker={count}&synchronous=true"
                assert server.status("PUT", f"/models/tide?{query}") == (200, text)
        ends.set()
        found = sum((each.result(60) for each in asking), Counter())
    assert server.status("DELETE", "/models/tide")[0] == 200
    assert set(found) <= {(200, "1.0:slow"), (503, "ServiceUnavailableException")}, found
    assert found[(200, "1.0:slow")] > 0


def test_a_stream_is_finished_though_its_model_is_changed_meanwhile(server: Managed, store: Path) -> None:
    archive(store, "long", code=LONG)
    for method, path in (
        ("DELETE", "/models/long"),
        ("PUT", "/models/long?min_worker=0&synchronous=false"),
        ("PUT", "/models/long/1.0/set-default"),
    ):
        assert server.status("POST", "/models?url=long.mar&initial_workers=1")[0] == 200
        answer = server.infer("POST", "/predictions/long", data=b"x", stream=True)
        parts = answer.iter_content(None)
        first = next(parts)
        assert server.status(method, path)[0] in (200, 202)
        assert first + b"".join(parts) == b"".join(b"%d " % number for number in range(20))
        server.manage("DELETE", "/models/long")
        assert "long" not in server.names()


def test_a_model_that_dies_again_and_again_can_still_be_managed(
    server: Managed, store: Path, tmp_path: Path
) -> None:
    flag = tmp_path / "dies"
    dies = f"import os\nif os.path.exists({str(flag)!r}):\n    os._exit(7)\n"
    archive(store, "loop", code=dies + ECHO)
    assert server.status("POST", "/models?url=loop.mar&initial_workers=1")[0] == 200
    flag.touch()
    assert server.predict("loop", "exit")[0] == 500
    text = "Failed to start workers for model loop version: 1.0"
    until(
        lambda: server.status("PUT", "/models/loop/1.0?min_worker=1&synchronous=true") == (500, text),
        server.process.said,
    )
    assert server.describe("loop")[0]["modelName"] == "loop"
    assert "loop" in server.names()
    assert server.status("PUT", "/models/loop/1.0/set-default")[0] == 200
    assert server.status("DELETE", "/models/loop") == (200, 'Model "loop" unregistered')
    assert "loop" not in server.names()
    flag.unlink()
    assert server.status("POST", "/models?url=loop.mar&initial_workers=1")[0] == 200
    assert server.predict("loop") == (200, "1.0:x")
    assert server.status("DELETE", "/models/loop")[0] == 200


def test_a_server_that_ends_gives_up_what_is_being_registered(store: Path, tmp_path: Path) -> None:
    archive(store, "hangs", code="import time\ntime.sleep(600)\n" + ECHO)
    words = (*OPTIONS, "--torchserve-model-store", store, store / "echo.mar")
    with running(tmp_path / "log", "serve", *words) as process, ThreadPoolExecutor(1) as thread:
        server = managed_by(process)
        asked = thread.submit(server.manage, "POST", "/models?url=hangs.mar&initial_workers=1")
        until(lambda: len(process.workers()) == 2, process.said)
        family = process.process.children(recursive=True)
        process.terminate()
        assert process.wait() == 0
        assert asked.result(60).status_code == 503
        assert "going down and changes no models any more" in asked.result().text
        until(lambda: not any(each.is_running() for each in family), process.said)


# -- what a model that fails is ----------------------------------------------------------------------------


def test_a_model_that_did_not_load_with_the_server_is_not_there(server: Managed) -> None:
    assert server.infer("GET", "/ping").json() == {"status": "Healthy"}
    assert "bad" not in server.names()
    answer = server.infer("POST", "/predictions/bad", data=b"x")
    assert (answer.status_code, answer.json()["message"]) == (404, "Model not found: bad")
    assert server.status("GET", "/models/bad") == (404, "Model not found: bad")
    assert "no weights" in server.process.said()


def test_a_model_that_did_not_load_with_the_server_may_be_registered(tmp_path: Path) -> None:
    path = archive(tmp_path, "late", code=FAILS)
    (tmp_path / "broken.mar").write_bytes(b"PK\x03\x04 and no more")
    files = (archive(tmp_path, "echo"), path, tmp_path / "broken.mar")
    with managed(tmp_path / "log", tmp_path, *files) as server:
        until(lambda: "no weights" in server.process.said(), server.process.said)
        code, text = server.status("POST", "/models?url=late.mar&initial_workers=1")
        assert (code, "already registered" in text) == (500, False)
        archive(tmp_path, "late")
        archive(tmp_path, "broken")
        for name in ("late", "broken"):
            assert server.status("POST", f"/models?url={name}.mar&initial_workers=1")[0] == 200
            assert server.predict(name)[0] == 200
        assert server.names() == ["broken", "echo", "late"]
        assert server.status("POST", "/models?url=late.mar")[0] == 409


def test_a_killed_worker_is_507_and_one_that_ends_500(server: Managed) -> None:
    for text, code in (("kill", 507), ("exit", 500)):
        answer = server.infer("POST", "/predictions/echo", data=text.encode())
        assert (answer.status_code, answer.json()["message"]) == (code, "Worker died.")
        until(lambda: server.predict("echo") == (200, "1.0:x"), server.process.said)


def test_a_status_without_a_phrase_has_the_originals(server: Managed) -> None:
    answer = server.infer("POST", "/predictions/echo", data=b"513")
    assert (answer.status_code, answer.reason) == (513, "Server Error (513)")
    assert answer.json()["message"] == "theirs"


def test_a_handler_sees_headers_as_they_were_spelt(server: Managed) -> None:
    sent = {"X-Own": "1", "x-other": "2", "X-THIRD": "3", "Content-Type": "text/plain"}
    for _ in range(2):  # a head that is repeated is remembered
        answer = server.infer("POST", "/predictions/echo", data=b"headers", headers=sent)
        found = answer.json()
        assert {name: found.get(name) for name in sent} == sent


def test_a_handler_describes_itself(server: Managed) -> None:
    answer = server.manage("GET", "/models/echo?customized=true")
    assert (answer.status_code, answer.reason) == (200, "")
    assert answer.json()[0]["customizedMetadata"] == {"about": "1.0"}
    assert "customizedMetadata" not in server.describe("echo")[0]


# -- over gRPC ---------------------------------------------------------------------------------------------


def test_the_life_of_a_model_over_grpc(server: Managed) -> None:
    with server.rpcs() as rpcs:
        asked = {"url": "other.mar", "model_name": "rpc", "initial_workers": 1, "synchronous": True}
        text = 'Model "rpc" Version: 1.0 registered with 1 initial workers'
        assert rpcs.manage("RegisterModel", **asked) == text
        assert rpcs.manage("RegisterModel", **asked) == ("UNKNOWN", "")
        assert rpcs.predict(model_name="rpc", input={"data": b"x"}) == b"1.0:x"
        assert rpcs.predict(model_name="rpc", model_version="1.0", input={"body": b"x"}) == b"1.0:x"
        assert json.loads(rpcs.manage("ListModels")) == {"nextPageToken": "0", "models": []}
        listed = json.loads(rpcs.manage("ListModels", limit=10))
        assert listed == server.manage("GET", "/models").json()
        for version in ("", "1.0", "all"):
            described = json.loads(rpcs.manage("DescribeModel", model_name="rpc", model_version=version))
            assert [each["modelName"] for each in described] == ["rpc"]
        described = json.loads(rpcs.manage("DescribeModel", model_name="rpc", customized=True))
        assert described[0]["customizedMetadata"] == {"about": "1.0"}
        scaled = rpcs.manage("ScaleWorker", model_name="rpc", min_worker=2, synchronous=True)
        assert scaled == "Workers scaled to 2 for model: rpc"
        text = 'Default version successfully updated for model "rpc" to "1.0"'
        assert rpcs.manage("SetDefault", model_name="rpc", model_version="1.0") == text
        assert rpcs.manage("UnregisterModel", model_name="rpc") == 'Model "rpc" unregistered'
        code, text = rpcs.manage("UnregisterModel", model_name="rpc")
        assert (code, text) == (
            "NOT_FOUND",
            "Model not found: rpc\norg.pytorch.serve.archive.model.ModelNotFoundException",
        )
        assert rpcs.ping() == '{\n  "status": "Healthy"\n}'


def test_streams_over_grpc(server: Managed) -> None:
    with server.rpcs() as rpcs:
        assert rpcs.stream(model_name="streams", input={"data": b"x"}) == [b"a", b"b", b"c"]
        assert rpcs.predict(model_name="streams", input={"data": b"x"}) == b"a"
        assert rpcs.stream(model_name="echo", input={"data": b"x"}) == [b"1.0:x"]
        alone = {"model_name": "echo", "sequence_id": "s", "input": {"data": b"x"}}
        assert [each.prediction for each in rpcs.sequence(alone)] == [b"1.0:x"]  # it has no sequences


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"model_name": "nope"},
            ("INTERNAL", "Model not found: nope\norg.pytorch.serve.archive.model.ModelNotFoundException"),
        ),
        (
            {"model_name": "echo", "model_version": "9"},
            (
                "INTERNAL",
                "Model version: 9 does not exist for model: echo\n"
                "org.pytorch.serve.archive.model.ModelVersionNotFoundException",
            ),
        ),
        (
            {"model_name": "bad"},
            ("INTERNAL", "Model not found: bad\norg.pytorch.serve.archive.model.ModelNotFoundException"),
        ),
        ({}, ("INTERNAL", "Parameter model_name is required.\nBadRequestException.()")),
        (
            {"model_name": "echo", "input": {"data": b"fail"}},
            ("UNAVAILABLE", "Prediction failed\norg.pytorch.serve.http.InternalServerException"),
        ),
        (
            {"model_name": "echo", "input": {"data": b"exit"}},
            ("INTERNAL", "Worker died.\norg.pytorch.serve.http.InternalServerException"),
        ),
        (
            {"model_name": "echo", "input": {"data": b"513"}},
            ("INTERNAL", "theirs\norg.pytorch.serve.http.InternalServerException"),
        ),
    ],
)
def test_a_prediction_over_grpc_fails_in_the_originals_words(
    server: Managed, fields: dict[str, object], expected: tuple[str, str]
) -> None:
    with server.rpcs() as rpcs:
        assert rpcs.predict(**fields) == expected
        until(lambda: server.predict("echo") == (200, "1.0:x"), server.process.said)
        assert rpcs.stream(**fields) == expected
        until(lambda: server.predict("echo") == (200, "1.0:x"), server.process.said)


def test_the_open_inference_service_has_both_names(server: Managed) -> None:
    with grpc.insecure_channel(server.process.grpc_address) as channel:
        for package in ("inference", "org.pytorch.serve.grpc.openinference"):
            call = channel.unary_unary(
                f"/{package}.GRPCInferenceService/ModelReady",
                service_pb2.ModelReadyRequest.SerializeToString,
                service_pb2.ModelReadyResponse.FromString,
            )
            assert call(service_pb2.ModelReadyRequest(name="echo"), timeout=60).ready
    with tritonclient.InferenceServerClient(server.process.grpc_address) as client:
        assert client.is_server_live()


# -- who may ------------------------------------------------------------------------------------------------


def test_without_the_model_api_nothing_is_registered(store: Path, tmp_path: Path) -> None:
    with managed(tmp_path / "log", store, store / "echo.mar", "--torchserve-no-model-api") as server:
        for method, path in (("POST", "/models?url=other.mar"), ("DELETE", "/models/echo")):
            answer = server.manage(method, path)
            assert (answer.status_code, answer.json()["type"]) == (405, "MethodNotAllowedException")
        assert server.status("PUT", "/models/echo?min_worker=2&synchronous=true")[0] == 200
        with server.rpcs() as rpcs:
            text = "Model API disabled\norg.pytorch.serve.archive.model.ModelException"
            disabled = ("PERMISSION_DENIED", text)
            assert rpcs.manage("RegisterModel", url="other.mar") == disabled
            assert rpcs.manage("UnregisterModel", model_name="echo") == disabled
        assert server.names() == ["echo"]
        assert server.manage("GET", "/ping").status_code == 404
        assert server.infer("GET", "/models").status_code == 404
