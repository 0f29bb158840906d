"""Adapters of a DJL model over the real server, in the order of the checks; functions that requests name; metrics."""

import json
from pathlib import Path

from tests.harness.djl_serving import djl_serving
from tests.harness.server_process import until

HANDLER = """
import json
from djl_python import Output
known, calls = {}, 0

def handle(inputs):
    global calls
    print("[METRICS]Handled.Count:2|#Model:m,Host:h")
    print("[METRICS]Level.Percent:0.5|#Model:m")
    print("[METRICS]nonsense")
    if inputs.is_empty():
        return None
    calls += 1
    return Output().add(json.dumps({"known": known, "calls": calls, "keys": inputs.content.get_keys()}))

def other(inputs):
    return Output().add("other " + inputs.get_property("handler"))

def register_adapter(inputs):
    if inputs.get_property("src") == "/broken":
        raise ValueError("no such weights")
    if inputs.get_property("src") == "/large":
        raise MemoryError("out of memory")
    known[inputs.get_property("name")] = inputs.get_property("src")
    return Output(message="Adapter %s is in" % inputs.get_property("name"))

def update_adapter(inputs):
    known[inputs.get_property("name")] = inputs.get_property("src")
    return Output()

def unregister_adapter(inputs):
    del known[inputs.get_property("name")]
    return None
"""


def write(root: Path, name: str, *lines: str) -> Path:
    model = root / name
    (model / "adapters" / "first").mkdir(parents=True)
    (model / "model.py").write_text(HANDLER)
    (model / "serving.properties").write_text("\n".join(("engine=Python", "maxWorkers=1", *lines)))
    return model


def test_adapters_come_go_and_are_chosen(tmp_path: Path) -> None:
    model = write(tmp_path, "m", "option.enable_lora=true")
    first = str(model / "adapters" / "first")
    with djl_serving(tmp_path / "log", "-m", f"m={model}") as djl:

        def manage(method: str, path: str) -> tuple[int, object]:
            answer = djl.manage(method, path)
            return answer.status, answer.document

        row = {"name": "first", "src": first, "preload": True, "pin": False}
        for where in ("/models/m/adapters", "/adapters"):
            assert manage("GET", where) == (200, {"adapters": [row]})
            assert manage("GET", f"{where}/first") == (200, row)
        assert manage("POST", "/models/m/adapters?name=a&src=file:///x&pin=true") == (
            200,
            {"status": "Adapter a is in"},
        )
        assert manage("POST", "/adapters/a/update?src=/y&rank=8") == (200, {"status": "Adapter a updated"})
        assert manage("GET", "/adapters?limit=1&next_page_token=1") == (
            200,
            {"adapters": [{"name": "a", "src": "/y", "preload": True, "pin": True}]},
        )
        assert manage("GET", "/adapters?limit=1")[1] == {"nextPageToken": "1", "adapters": [row]}
        for method, path, status, words in (
            ("POST", "/models/none/adapters", 404, "Model or workflow not found: none"),
            ("POST", "/models/m/adapters", 400, "The parameter name is required"),
            ("POST", "/models/m/adapters?name=b", 400, "The parameter src is required"),
            ("POST", "/models/m/adapters?name=b&src=s3://b/x", 409, "no folder of this machine"),
            ("POST", "/models/m/adapters?name=a&src=/z", 409, "already"),
            ("POST", "/models/m/adapters?name=b&src=/broken", 424, "no such weights"),
            ("POST", "/models/m/adapters/none/update", 404, "The adapter none has not been registered"),
            ("DELETE", "/models/m/adapters/none", 404, "The adapter none has not been registered"),
            ("GET", "/models/m/adapters/b", 404, "The adapter b has not been registered"),
            ("PUT", "/models/m/adapters/a", 405, "not allowed"),
            ("GET", "/models/m/adapters/a/x", 404, "not found"),
        ):
            found = djl.manage(method, path)
            assert (found.status, words in found.body.decode()) == (status, True), (path, found)
        assert djl.manage("POST", "/models/m/adapters?name=b&src=/large").status == 507

        seen = djl.infer("POST", "/predictions/m?adapter=a&x=1", b"body").document
        assert seen == {"known": {"first": first, "a": "/y"}, "calls": 1, "keys": ["adapter", "x", "data"]}
        json_type = "Content-Type: application/json\r\n"
        for query, body, fields in (
            ("?adapter=none", b"", ""),
            ("", b"", "X-Amzn-SageMaker-Adapter-Identifier: none\r\n"),
            ("", b'{"inputs": "x", "adapters": "none"}', json_type),
        ):
            answer = djl.infer("POST", f"/predictions/m{query}", body, fields)
            assert (answer.status, "The adapter none has not been registered" in answer.body.decode()) == (
                424,
                True,
            )
        assert djl.infer("POST", "/invocations", b'{"adapters": "a"}', json_type).document["calls"] == 2
        assert manage("DELETE", "/models/m/adapters/a") == (200, {"status": "Adapter a unregistered"})
        assert djl.infer("POST", "/v1/chat/completions", b"{}", json_type).document["known"] == {
            "first": first
        }


def test_a_model_without_adapters_and_requests_that_name_a_function(tmp_path: Path) -> None:
    model = write(tmp_path, "m")
    for allowed in ("true", "false"):
        variables = {"ALLOW_REQUEST_HANDLER_OVERRIDE": allowed, "SERVING_PROMETHEUS": allowed}
        with djl_serving(tmp_path / allowed, "-m", f"m={model}", variables=variables) as djl:
            for method, path in (("POST", "?name=a&src=/x"), ("POST", ""), ("GET", ""), ("DELETE", "/a")):
                answer = djl.manage(method, f"/models/m/adapters{path}")
                assert (answer.status, answer.document["message"]) == (400, "LoRA is not enabled."), path
            seen = json.loads(djl.infer("POST", "/predictions/m?adapter=x").body)
            until(
                lambda: b'Handled_total{Model="m"} 4' in djl.infer("GET", "/metrics").body,
                lambda: "no metrics",
            )
            assert b'Level{Model="m"} 0.5' in djl.infer("GET", "/metrics").body
            assert (seen["known"], seen["keys"]) == ({}, ["adapter", "data"])
            counted = djl.manage("GET", "/server/metrics?name[]=Handled")
            assert counted.status == (200 if allowed == "true" else 400)
            if allowed == "true":
                assert b'Handled_total{Model="m"} 4' in counted.body
                assert b"Level" not in counted.body
                assert b"Level" in djl.manage("GET", "/server/metrics").body
            assert djl.manage("POST", "/server/metrics").status == 405
            named = djl.infer("POST", "/predictions/m", fields="handler: other\r\n")
            absent = djl.infer("POST", "/predictions/m", fields="handler: absent\r\n")
            if allowed == "true":
                assert (named.body, absent.status) == (b"other other", 424)
            else:
                message = "The handler can't be overridden in a request"
                assert (named.status, named.document["message"], absent.status) == (400, message, 400)
