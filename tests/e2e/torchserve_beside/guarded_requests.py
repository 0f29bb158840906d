"""What is asked of the two servers that are not open to everybody: one with keys, one with envelopes."""

import json
from collections.abc import Iterator

from tests.e2e.torchserve_beside.exchange import Request
from tests.e2e.torchserve_beside.http_requests import http

_KEYS = {
    "its key": "Bearer KEY:{purpose}",
    "no key": "",
    "the other port's key": "Bearer KEY:{other}",
    "a wrong key": "Bearer wrong",
    "its key alone": "KEY:{purpose}",
    "its key by another scheme": "Basic KEY:{purpose}",
    "its key and more": "Bearer KEY:{purpose} x",
    "the API's key": "Bearer KEY:API",
}
_PATHS = {
    "inference": (
        ("GET", "/ping"),
        ("POST", "/predictions/says"),
        ("POST", "/predictions/nobody"),
        ("POST", "/invocations"),
        ("GET", "/nope"),
        ("GET", "/"),
    ),
    "management": (
        ("GET", "/models"),
        ("GET", "/models/says"),
        ("GET", "/models/nobody"),
        ("POST", "/models?url=other.mar"),
        ("DELETE", "/models/says"),
        ("PUT", "/models/nobody"),
        ("GET", "/nope"),
        ("GET", "/token"),
        ("GET", "/token?type=nothing"),
    ),
    "metrics": (("GET", "/metrics"), ("GET", "/nope")),
}
_CALLS = {
    "grpc_inference": (("Ping", {}), ("Predictions", {"model_name": "says", "input": {"data": b"x"}})),
    "grpc_management": (("ListModels", {"limit": 9}), ("RegisterModel", {"url": "other.mar"})),
}


def guarded_requests() -> list[Request]:
    """Every route with every kind of key."""
    return [*_over_http(), *_over_grpc()]


def _purposes(listener: str) -> tuple[str, str]:
    return ("inference", "management") if "inference" in listener else ("management", "inference")


def _over_http() -> Iterator[Request]:
    for listener, paths in _PATHS.items():
        purpose, other = _purposes(listener)
        for method, path in paths:
            for name, form in _KEYS.items():
                value = form.format(purpose=purpose, other=other)
                fields = [f"Authorization: {value}"] if value else []
                data = http(method, path, b"x" if path.startswith("/pred") else b"", fields)
                is_bad = name != "its key" or "no" in path
                yield Request(f"{method} {path} at {listener} by {name}", is_bad, listener, data)


def _over_grpc() -> Iterator[Request]:
    for listener, calls in _CALLS.items():
        purpose, other = _purposes(listener)
        for rpc, message in calls:
            for name, form in _KEYS.items():
                value = form.format(purpose=purpose, other=other)
                metadata = (("authorization", value),) if value else ()
                yield Request(f"{rpc} by {name}", name != "its key", listener, b"", rpc, (message,), metadata)


_V2 = {"inputs": [{"name": "a", "shape": [2, 1], "datatype": "FP32", "data": [1, 2]}]}
_JSON_BODIES = {
    "instances": {"instances": [1, 2.5, "text"]},
    "an instance": {"instances": [{"a": 1}]},
    "no instances": {"instances": []},
    "instances that are none": {"instances": 7},
    "base 64": {"instances": [{"b64": "YWI="}, {"a": {"b64": "YWI="}}]},
    "no envelope": {"a": 1},
    "an array": [1],
    "v2": _V2,
}


def enveloped_requests() -> list[Request]:
    """Bodies with and without an envelope, to each form of route, and the open inference protocol's own routes."""
    requests = []
    for name, document in _JSON_BODIES.items():
        for path in (
            "/predictions/plain",
            "/v1/models/plain:predict",
            "/v2/models/plain/infer",
            "/explanations/plain",
        ):
            data = http("POST", path, json.dumps(document).encode(), ["Content-Type: application/json"])
            requests.append(Request(f"{name} to {path}", False, "inference", data))
    for method, path in (
        ("GET", "/v2"),
        ("GET", "/v2/health/live"),
        ("GET", "/v2/health/ready"),
        ("GET", "/v2/models/plain"),
        ("GET", "/v2/models/plain/ready"),
        ("GET", "/v2/models/plain/versions/1.0"),
        ("POST", "/v2/models/nobody/infer"),
    ):
        requests.append(Request(f"{method} {path} enveloped", True, "inference", http(method, path)))
    text = http("POST", "/predictions/plain", b"x", ["Content-Type: text/plain"])
    return [*requests, Request("text without an envelope", True, "inference", text)]
