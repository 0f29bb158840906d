"""The console of a real server: deaths and restarts as they happen, totals that add up, and no change by strangers."""

import contextlib
import http.client
import itertools
import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures import models
from tests.harness.event_stream import EventStream
from tests.harness.keys import KEYS, key_file
from tests.harness.python_models import HEAD, place
from tests.harness.raw_http import Answer, ask, get, infer_request, tensor
from tests.harness.server_process import SECONDS, ServerProcess, serve, until

MARKUP = "<img src=x onerror=alert(1)>"
ENDS = (
    'input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }'
)
WORK = f"""
    def initialize(self, args):
        print("{MARKUP} opened", flush=True)
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            if x.flat[0] == 13:
                answers.append(pb_utils.InferenceResponse(error=pb_utils.TritonError("{MARKUP} no 13")))
            elif x.flat[0] == 14:
                import sys
                print("about to die", file=sys.stderr, flush=True)
                os.kill(os.getpid(), 11)
            else:
                answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", x + 1)]))
        return answers
"""
MARK = {"Trivium-Console": "1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    place(root, "work", WORK, "dynamic_batching { }", ENDS)
    models.identity(root, "echo", rows=16)
    return root


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serve(tmp_path_factory.mktemp("log") / "log", folder, models_raise=True) as running:
        yield running


def asked(port: int, method: str, path: str, fields: Mapping[str, str] = MARK, body: str = "") -> Answer:
    """One request; a Host among the fields goes in place of the real one."""
    given = {"Host": "localhost", **fields}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    length = f"Content-Length: {len(body.encode())}\r\n" if body or method == "POST" else ""
    return ask(port, f"{method} {path} HTTP/1.1\r\n{lines}{length}\r\n{body}".encode())


def shown(port: int, path: str, fields: Mapping[str, str] = MARK) -> Any:
    answer = asked(port, "GET", f"/api/v1/{path}", fields)
    assert answer.status == 200, answer
    assert answer.fields["content-type"] == "application/json"
    assert answer.fields["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in answer.fields["content-security-policy"]
    return answer.document


def work(number: int) -> bytes:
    return infer_request("work", tensor("IN", [number], [1, 1], "INT32"), id=f"r{number}")


def the_instance(port: int) -> Any:
    (instance,) = shown(port, "models/work/instances")["instances"]
    return instance


@pytest.mark.parametrize("how", ["from outside", "by itself"])
def test_a_death_is_told_within_seconds_with_its_signal_and_last_lines_and_so_is_the_restart(
    server: ServerProcess, how: str
) -> None:
    until(lambda: the_instance(server.port)["state"] == "ready", server.said)
    with EventStream(server.port) as stream:
        until(lambda: bool(stream.of("snapshot")), server.said)
        assert stream.status == 200
        before = the_instance(server.port)
        began = time.monotonic()
        if how == "from outside":
            os.kill(before["pid"], signal.SIGKILL)
        else:
            assert server.ask(work(14)).status >= 500
        until(lambda: bool(stream.of("death")), server.said)
        (death,) = stream.of("death")
        until(lambda: any(event.document["instance"] for event in stream.of("state")), server.said)
        opened = [event for event in stream.of("state") if event.document["instance"]]
        assert began <= death.at <= opened[0].at
        assert ("SIGKILL" if how == "from outside" else "SIGSEGV") in death.document["cause"]
        assert death.document["instance"] == opened[0].document["instance"] == before["name"]
        if how == "by itself":
            assert "about to die" in death.document["last_lines"]
            assert "about to die" in [event.document["text"] for event in stream.of("log")]

        def is_shown_again() -> bool:
            row = next(one for one in stream.of("snapshot")[-1].document["models"] if one["name"] == "work")
            return bool(row["instances"]["ready"] == 1 and stream.of("snapshot")[-1].at > opened[0].at)

        until(is_shown_again, server.said)
    after = the_instance(server.port)
    assert after["pid"] != before["pid"]
    assert after["deaths"][-1]["cause"] == death.document["cause"]


def test_under_many_senders_the_totals_are_at_rest_what_the_statistics_say(server: ServerProcess) -> None:
    begin = counted(server)
    sent = itertools.count()
    stop = threading.Event()
    answered: list[int] = []

    def send() -> None:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port)) as connection:
            while not stop.is_set():
                number = next(sent)
                value = 13 if number % 17 == 0 else 1
                document = {"inputs": [tensor("IN", [value], [1, 1], "INT32")], "id": f"r{number}"}
                connection.request("POST", "/v2/models/work/infer", json.dumps(document))
                response = connection.getresponse()
                response.read()
                answered.append(response.status)

    threads = [threading.Thread(target=send, daemon=True) for _ in range(16)]
    with EventStream(server.port) as stream, EventStream(server.port) as other:
        for thread in threads:
            thread.start()
        until(lambda: len(stream.of("snapshot")) >= 5, server.said)
        stop.set()
        for thread in threads:
            thread.join(SECONDS)
        end = counted(server)
        assert end[0] - begin[0] == len(answered)
        assert end[1] - begin[1] == sum(status != 200 for status in answered)

        def are_equal() -> bool:
            return all(
                (totals["requests"], totals["failures"], totals["waiting"]) == (*end, 0)
                for totals in (each.of("snapshot")[-1].document["totals"] for each in (stream, other))
            )

        until(are_equal, lambda: f"{end} {stream.of('snapshot')[-1]}")
        assert end == tuple(
            shown(server.port, "overview")["totals"][name] for name in ("requests", "failures")
        )
        assert stream.of("snapshot")[-2].document["models"][1]["requests_per_s"] > 0
        requests = shown(server.port, "requests")
        assert requests["since"]
        assert requests["slowest"][0]["total_s"] >= requests["slowest"][-1]["total_s"]
        assert any(each["batch_size"] > 1 for each in requests["slowest"])
        failed = requests["failed"][0]
        assert failed["error"].startswith(MARKUP)
        assert failed["status"] != "ok"
        parts = failed["queue_s"] + failed["input_s"] + failed["compute_s"] + failed["output_s"]
        assert 0 < parts <= failed["total_s"] + 0.001
        assert stream.of("request")


def counted(server: ServerProcess) -> tuple[int, int]:
    """Requests and failures of all models, by the v2 protocol's statistics."""
    document = ask(server.port, get("/v2/models/stats")).document
    stats = [each["inference_stats"] for each in document["model_stats"]]
    failures = sum(each["fail"]["count"] for each in stats)
    return sum(each["success"]["count"] for each in stats) + failures, failures


def test_nobody_listens_and_nothing_is_kept(server: ServerProcess) -> None:
    def is_alone() -> bool:
        return bool(shown(server.port, "overview")["totals"]["connections"] == 1)

    until(is_alone, server.said)
    with EventStream(server.port) as stream:
        until(lambda: bool(stream.events), server.said)
    time_of = shown(server.port, "requests")["since"]
    until(is_alone, server.said)
    assert server.ask(work(1)).status == 200
    requests = shown(server.port, "requests")
    assert requests == {"slowest": [], "failed": [], "sample": [], "since": time_of}


def test_a_model_is_shown_with_what_is_set_where_and_a_request_that_works(server: ServerProcess) -> None:
    model = shown(server.port, "models/work")
    assert [each["name"] for each in model["inputs"]] == ["IN"]
    assert any(re.search(r"config\.pbtxt:\d+$", row["where"] or "") for row in model["configuration"])
    example = model["try_it"]
    tried = asked(server.port, example["method"], example["path"], {}, json.dumps(example["example"]))
    assert tried.status == 200
    assert f"{MARKUP} opened" in [line["text"] for line in shown(server.port, "models/work/logs")["lines"]]
    settings = shown(server.port, "settings")
    assert {row["name"]: row["where"] for row in settings["settings"]}[
        "http_port"
    ] == "command line, --http-port"
    assert settings["memory"]["worker_bytes"] > 0
    missing = asked(server.port, "GET", "/api/v1/models/nothing")
    assert (missing.status, "work" in missing.document["error"]) == (404, True)


STRANGERS: dict[str, Mapping[str, str]] = {
    "a page of another server": {**MARK, "Origin": "http://evil.example"},
    "a sandboxed page": {**MARK, "Origin": "null"},
    "another server of this machine": {**MARK, "Origin": "http://localhost:1"},
    "a name that leads here": {**MARK, "Host": "evil.example"},
    "a name within a name": {**MARK, "Host": "localhost.evil.example"},
    "a browser on behalf of another page": {**MARK, "Sec-Fetch-Site": "cross-site"},
    "without the header": {},
    "with another header": {"Trivium-Console": "yes"},
    "a form": {"Content-Type": "application/x-www-form-urlencoded"},
    "a form of another page": {"Content-Type": "text/plain", "Origin": "http://evil.example"},
}
ATTEMPTS = (
    ("POST", "/api/v1/models/work/unload", ""),
    ("POST", "/api/v1/models/work/load", ""),
    ("POST", "/api/v1/models/work/scale", '{"instances":3}'),
    ("POST", "/api/v1/settings/log-level", '{"level":"DEBUG"}'),
    ("POST", f"/api/v1/models/{MARKUP.replace(' ', '%20')}/load", ""),
)
VERBS = ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS")


def state(server: ServerProcess, fields: Mapping[str, str] = MARK) -> Any:
    """Whatever strangers could have changed."""
    instances = [shown(server.port, f"models/{name}/instances", fields) for name in ("work", "echo")]
    return (
        [
            (row["name"], row["state"], row["reason"])
            for row in shown(server.port, "overview", fields)["models"]
        ],
        [[one["name"] for one in each["instances"]] for each in instances],
        [[one["pid"] for one in each["instances"]] for each in instances],
        shown(server.port, "settings", fields)["log_level"],
    )


def test_strangers_change_nothing(server: ServerProcess) -> None:
    until(lambda: the_instance(server.port)["pid"], server.said)
    before, count = state(server), 0
    for (name, fields), (method, path, body) in itertools.product(STRANGERS.items(), ATTEMPTS):
        answer = asked(server.port, method, path, fields, body)
        assert answer.status == 403, (name, path, answer)
        assert answer.fields["content-type"] == "application/json"
        count += 1
    for verb, (_, path, _) in itertools.product(VERBS, ATTEMPTS[:4]):
        answer = (
            ask(server.port, get(path, b"Trivium-Console: 1\r\n", verb.encode())) if verb != "HEAD" else None
        )
        assert answer is None or answer.status in (404, 405), (verb, path)
        count += 1
    assert count >= 60
    assert state(server) == before
    for fields in (STRANGERS["a name that leads here"], STRANGERS["a page of another server"]):
        for path in ("overview", "models/work", "models/work/logs", "settings", "requests", "events"):
            assert asked(server.port, "GET", f"/api/v1/{path}", fields).status == 403, path


def test_the_page_itself_may(server: ServerProcess) -> None:
    own = {**MARK, "Host": f"127.0.0.1:{server.port}", "Origin": f"http://127.0.0.1:{server.port}"}
    answer = asked(server.port, "POST", "/api/v1/models/work/scale", own, '{"instances":2}')
    assert (answer.status, answer.document["state"]) == (200, "ready")
    until(lambda: open_instances(server) == 2, server.said)
    assert asked(server.port, "POST", "/api/v1/models/work/scale", own, '{"instances":1}').status == 200
    until(lambda: open_instances(server) == 1, server.said)
    assert asked(server.port, "POST", "/api/v1/models/echo/unload", own).status == 200
    until(lambda: row_of(server, "echo")["state"] == "unloaded", server.said)
    loaded = asked(server.port, "POST", "/api/v1/models/echo/load", own)
    assert (loaded.status, loaded.document) == (200, {"state": "ready", "reason": None})
    level = asked(server.port, "POST", "/api/v1/settings/log-level", own, '{"level":"ERROR"}')
    assert level.document == {"log_level": "ERROR"}
    assert shown(server.port, "settings")["log_level"] == "ERROR"
    asked(server.port, "POST", "/api/v1/settings/log-level", own, '{"level":"WARNING"}')


def open_instances(server: ServerProcess) -> int:
    return sum(each["pid"] is not None for each in shown(server.port, "models/work/instances")["instances"])


def row_of(server: ServerProcess, name: str) -> Any:
    return next(row for row in shown(server.port, "overview")["models"] if row["name"] == name)


def test_a_broken_model_is_told_with_its_mend_and_loads_once_it_is_mended(tmp_path: Path) -> None:
    root = tmp_path / "models"
    models.identity(root, "echo", rows=16)
    place(root, "ill", "    import no_such_library\n", "", ENDS)
    with serve(tmp_path / "log", root, models_raise=True) as server:
        overview = shown(server.port, "overview")["server"]
        assert not overview["ready"]
        assert "no_such_library" in overview["sentence"]
        assert "load 'ill' again" in overview["mend"]
        assert shown(server.port, "models/ill")["findings"][0]["severity"] == "error"
        assert "no_such_library" in str(shown(server.port, "models/ill/logs"))
        again = asked(server.port, "POST", "/api/v1/models/ill/load")
        assert (again.status, "no_such_library" in again.document["error"]) == (422, True)
        mended = HEAD + "    def execute(self, requests):\n        return []\n"
        (root / "ill" / "1" / "model.py").write_text(mended)
        with EventStream(server.port) as stream:
            assert asked(server.port, "POST", "/api/v1/models/ill/load").document["state"] == "ready"
            until(lambda: "ready" in [each.document["state"] for each in stream.of("state")], server.said)
        assert shown(server.port, "overview")["server"]["ready"]


def test_listeners_are_told_that_the_server_goes_down(folder: Path, tmp_path: Path) -> None:
    with serve(tmp_path / "log", folder) as server:
        with EventStream(server.port) as stream:
            until(lambda: bool(stream.events), server.said)
            server.terminate()
            until(lambda: stream.is_over, server.said)
            assert stream.events[-1].name == "end"
            assert server.wait() == 0


def test_with_keys_a_browser_signs_in_and_is_bound_to_its_page(folder: Path, tmp_path: Path) -> None:
    keys = key_file(tmp_path / "keys.toml")
    with serve(tmp_path / "log", "--keys", keys, folder) as server:
        port = server.port
        assert asked(port, "GET", "/api/v1/overview").status == 401
        assert asked(port, "GET", "/console").status not in (401, 403)
        for key, status in ((KEYS["infer"].text, 403), ("none", 401)):
            answer = asked(port, "POST", "/api/v1/session", MARK, json.dumps({"key": key}))
            assert (answer.status, "set-cookie" in answer.fields) == (status, False)
        body = json.dumps({"key": KEYS["manage"].text})
        strange = {**MARK, "Origin": "http://evil.example"}
        assert asked(port, "POST", "/api/v1/session", strange, body).status == 403
        answer = asked(port, "POST", "/api/v1/session", MARK, body)
        assert answer.status == 204
        cookie, *marks = answer.fields["set-cookie"].split("; ")
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(marks)
        signed_in = {**MARK, "Cookie": cookie}
        before = state(server, signed_in)
        assert shown(port, "overview", signed_in)["server"]["signed_in"]
        assert asked(port, "GET", "/api/v1/overview", {"Cookie": cookie}).status == 200
        with EventStream(port, {"Cookie": cookie}) as stream:
            until(lambda: bool(stream.of("snapshot")), server.said)
        example = {**signed_in, "Content-Type": "application/json"}
        infer = infer_request("work", tensor("IN", [1], [1, 1], "INT32")).partition(b"\r\n\r\n")[2].decode()
        assert asked(port, "POST", "/v2/models/work/infer", example, infer).status == 200
        strangers = [
            {"Cookie": cookie},
            {"Cookie": "trivium_console=guessed", **MARK},
            {**signed_in, "Origin": "http://evil.example"},
            {**signed_in, "Host": "evil.example"},
            {**signed_in, "Sec-Fetch-Site": "cross-site"},
            {"Authorization": f"Bearer {KEYS['observe'].text}", **MARK},
        ]
        for fields, (method, path, body) in itertools.product(strangers, ATTEMPTS):
            assert asked(port, method, path, fields, body).status in (401, 403), (fields, path)
        routes = ("/v2/repository/models/work/unload", "/v2/logging")
        for path in routes:  # the cookie is no key to what the page does not ask
            assert asked(port, "POST", path, {"Cookie": cookie}, "{}").status == 401
        assert state(server, signed_in) == before
        bearer = {"Authorization": f"Bearer {KEYS['manage'].text}"}
        assert asked(port, "POST", "/api/v1/models/work/scale", bearer, '{"instances":1}').status == 200
        assert asked(port, "DELETE", "/api/v1/session", signed_in).status == 204
        assert asked(port, "GET", "/api/v1/overview", signed_in).status == 401  # though the browser kept it


def test_other_profiles_have_none_unless_they_are_asked(folder: Path, tmp_path: Path) -> None:
    with serve(tmp_path / "one", "--profile", "triton", folder) as server:
        for path in ("/api/v1/overview", "/console", "/"):
            assert server.ask(get(path)).status == 404
    with serve(tmp_path / "two", "--profile", "triton", "--console", folder) as server:
        assert shown(server.port, "overview")["server"]["profile"] == "triton"
        assert server.ask(get("/v2/health/ready")).status == 200


def test_a_port_of_its_own_has_the_console_and_inference(folder: Path, tmp_path: Path) -> None:
    with serve(tmp_path / "log", "--console-port", "0", folder) as server:
        own = int(server.await_line(re.compile(r"^console on http://127\.0\.0\.1:(\d+)", re.MULTILINE))[1])
        names = {each["name"] for each in shown(own, "settings")["listeners"]}
        assert {"HTTP", "console"} <= names
        assert ask(own, work(1)).status == 200
        assert server.ask(get("/api/v1/overview")).status == 404


def test_beyond_loopback_without_keys_it_shows_nothing(folder: Path, tmp_path: Path) -> None:
    with serve(tmp_path / "log", "--host", "0.0.0.0", "--open", folder) as server:
        for path in ("overview", "models/work/logs", "settings", "events"):
            answer = asked(server.port, "GET", f"/api/v1/{path}")
            assert (answer.status, "--keys" in answer.document["error"]) == (403, True)
        for method, path, body in ATTEMPTS:
            assert asked(server.port, method, path, MARK, body).status == 403
        assert server.ask(work(1)).status == 200
