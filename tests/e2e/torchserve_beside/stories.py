"""Stories: requests in a row, some of them together, whose answers depend on one another.

A story belongs to one of the servers of `servers`, and leaves it as it found it. A step is a request, requests that are
sent together, or a model to wait for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.e2e.torchserve_beside.exchange import Request
from tests.e2e.torchserve_beside.http_requests import http


@dataclass(frozen=True)
class Ready:
    """Wait until so many workers of the model are."""

    model: str
    workers: int = 1


@dataclass(frozen=True)
class Together:
    """Sent at once, a moment apart; the answers are told in the order of `requests`, or sorted."""

    requests: Sequence[Request]
    apart: float = 0.0
    is_sorted: bool = False


Step = Request | Ready | Together


def _infer(target: str, body: bytes = b"x", *fields: str, method: str = "POST") -> Request:
    return Request(target, False, "inference", http(method, target, body, fields))


def _manage(method: str, target: str, body: bytes = b"", *fields: str) -> Request:
    return Request(f"{method} {target}", False, "management", http(method, target, body, fields))


def _says(word: str, model: str = "says") -> Request:
    return _infer(f"/predictions/{model}", word.encode())


def _rpc(listener: str, rpc: str, *messages: Mapping[str, object]) -> Request:
    return Request(rpc, False, listener, rpc=rpc, messages=messages)


def _sum(value: int, name: str = "", *more: str) -> Request:
    fields = [f"ts_request_sequence_id: {name}"] if name else []
    return _infer("/predictions/sums", str(value).encode(), *fields, *more)


def _scale(model: str, count: int) -> Request:
    return _manage("PUT", f"/models/{model}?min_worker={count}&synchronous=true")


def _register(url: str, more: str = "") -> Request:
    return _manage("POST", f"/models?url={url}{more}")


def _gone(model: str) -> Request:
    return _manage("DELETE", f"/models/{model}")


_JSON = "Content-Type: application/json"
_START, _END = "ts_request_sequence_start: true", "ts_request_sequence_end: true"

OPEN: Mapping[str, Sequence[Step]] = {
    "a model comes, is scaled and goes": [
        _register("other.mar"),
        _manage("GET", "/models/other"),
        _says("x", "other"),
        _scale("other", 2),
        _says("x", "other"),
        _manage("GET", "/models/other/all"),
        _scale("other", 0),
        _says("x", "other"),
        _gone("other"),
        _says("x", "other"),
        _gone("other"),
    ],
    "a second version": [
        _register("says2.mar", "&initial_workers=1"),
        _says("x"),
        _says("x", "says/2.0"),
        _manage("GET", "/models/says"),
        _manage("GET", "/models/says/all"),
        _manage("PUT", "/models/says/2.0/set-default"),
        _says("x"),
        _gone("says"),
        _gone("says/2.0"),
        _manage("PUT", "/models/says/1.0/set-default"),
        _gone("says/2.0"),
        _says("x", "says/2.0"),
    ],
    "registered twice": [_register("other.mar"), _register("other.mar"), _gone("other")],
    "registered under another name": [
        _register("other.mar", "&model_name=another&initial_workers=1"),
        _says("x", "another"),
        _manage("GET", "/models/another"),
        _gone("another"),
    ],
    "registered with everything": [
        _register(
            "other.mar",
            "&handler=handler.py&runtime=python&batch_size=3&max_batch_delay=7&initial_workers=1&synchronous=true"
            "&response_timeout=9&startup_timeout=77",
        ),
        _manage("GET", "/models/other"),
        _gone("other"),
    ],
    "registered by JSON": [
        _manage("POST", "/models", b'{"url": "other.mar", "initial_workers": "1", "batch_size": 2}', _JSON),
        _manage("GET", "/models/other"),
        _gone("other"),
    ],
    "registered, and nobody waits": [
        _register("other.mar", "&initial_workers=1&synchronous=false"),
        Ready("other"),
        _says("x", "other"),
        _gone("other"),
    ],
    "called while its worker starts": [
        _register("late.mar", "&initial_workers=1&synchronous=false"),
        Together([_says("x", "late")] * 4, is_sorted=True),
        _gone("late"),
    ],
    "called while it is scaled up": [
        _register("late.mar", "&initial_workers=1"),
        _scale("late", 0),
        _says("x", "late"),
        _manage("PUT", "/models/late?min_worker=1"),
        _says("x", "late"),
        _gone("late"),
    ],
    "described while its worker starts": [
        _register("late.mar", "&initial_workers=1&synchronous=false"),
        _manage("GET", "/models/late?customized=true"),
        _gone("late"),
    ],
    "asked by gRPC while its worker starts": [
        _register("late.mar", "&initial_workers=1&synchronous=false"),
        _rpc("grpc_inference", "Predictions", {"model_name": "late", "input": {"data": b"x"}}),
        _gone("late"),
    ],
    "registered with a file of settings": [
        _register("strict.mar", "&initial_workers=3&response_timeout=7"),
        _manage("GET", "/models/strict"),
        _gone("strict"),
    ],
    "registered with words for numbers": [
        _register("other.mar", "&batch_size=x&max_batch_delay=&initial_workers=y&response_timeout=-3"),
        _manage("GET", "/models/other"),
        _gone("other"),
    ],
    "registered without a manifest": [
        _register("bare.mar", "&handler=handler.py&initial_workers=1"),
        _says("x", "bare"),
        _manage("GET", "/models/bare"),
        _gone("bare"),
    ],
    "registered with a handler that is not there": [
        _register("other.mar", "&handler=nope.py&initial_workers=1")
    ],
    "a model that fails to load": [_register("fails.mar", "&initial_workers=1")],
    "a model that lacks memory": [_register("memory.mar", "&initial_workers=1")],
    "four make a batch": [
        _register("four.mar"),
        Ready("four"),
        Together([_says("x", "four")] * 4, is_sorted=True),
        _gone("four"),
    ],
    "a description makes no batch": [
        _register("four.mar"),
        Ready("four"),
        Together([_says("x", "four"), _manage("GET", "/models/four?customized=true")], apart=0.5),
        _gone("four"),
    ],
    "one of two fails": [
        _register("strict.mar"),
        Ready("strict"),
        Together([_says("x", "strict"), _says("raise value", "strict")]),
        Together([_says("x", "strict"), _says("code 404", "strict")]),
        Together([_says("x", "strict"), _says("none", "strict")]),
        _gone("strict"),
    ],
    "two streams of a batch": [
        _register("streams.mar"),
        Ready("streams"),
        Together([_says("a", "streams"), _says("b", "streams")], apart=0.3),
        Together([_says("a", "streams"), _says("fail", "streams")], apart=0.3),
        _gone("streams"),
    ],
    "a worker that ends": [_says("exit 3"), Ready("says"), _says("x")],
    "a worker that is killed": [_says("kill"), Ready("says"), _says("x")],
    "a worker that takes too long": [_says("sleep 30"), Ready("says"), _says("x")],
    "a full queue": [
        _register("slow.mar"),
        Ready("slow"),
        Together([_says("sleep 5", "slow")] * 4, apart=1.0),
        _gone("slow"),
    ],
    "a ticket while all work": [
        Together([_says("sleep 5", "ticket"), _says("x", "ticket")], apart=1.5),
        _says("x", "ticket"),
    ],
    "a count beside a count": [
        Together([_says("2", "counts"), _says("5", "counts")]),
        _says("3", "counts"),
    ],
    "a sequence": [
        _register("sequences.mar", "&model_name=sums"),
        Ready("sums"),
        _sum(1, "a", _START),
        _sum(2, "a"),
        _sum(3, "a", _END),
        _sum(4, "b", _START),
        _sum(5, "a"),
        _sum(6, "c", _START),
        _gone("sums"),
    ],
    "two sequences, one after the other": [
        _register("sequences.mar", "&model_name=sums"),
        Ready("sums"),
        _sum(1, "a", _START),
        _sum(10, "b", _START),
        _sum(2, "a"),
        _sum(20, "b"),
        _gone("sums"),
    ],
    "a model comes and goes by gRPC": [
        _rpc(
            "grpc_management",
            "RegisterModel",
            {"url": "other.mar", "initial_workers": 1, "synchronous": True},
        ),
        _rpc("grpc_inference", "Predictions", {"model_name": "other", "input": {"data": b"x"}}),
        _rpc("grpc_management", "ScaleWorker", {"model_name": "other", "min_worker": 2, "synchronous": True}),
        _rpc("grpc_management", "DescribeModel", {"model_name": "other"}),
        _rpc("grpc_management", "UnregisterModel", {"model_name": "other"}),
        _rpc("grpc_inference", "Predictions", {"model_name": "other", "input": {"data": b"x"}}),
    ],
    "a worker that ends, by gRPC": [
        _rpc("grpc_inference", "Predictions", {"model_name": "says", "input": {"data": b"exit 3"}}),
        Ready("says"),
        _rpc("grpc_inference", "Predictions", {"model_name": "says", "input": {"data": b"x"}}),
    ],
    "a model without workers, by gRPC": [
        _rpc("grpc_management", "RegisterModel", {"url": "other.mar"}),
        _rpc("grpc_inference", "Predictions", {"model_name": "other", "input": {"data": b"x"}}),
        _rpc("grpc_management", "UnregisterModel", {"model_name": "other"}),
    ],
    "a sequence by gRPC": [
        _register("sequences.mar", "&model_name=sums"),
        Ready("sums"),
        _rpc(
            "grpc_inference",
            "StreamPredictions2",
            {"model_name": "sums", "sequence_id": "g", "input": {"body": b"1"}},
            {"model_name": "sums", "sequence_id": "g", "input": {"body": b"2"}},
        ),
        _gone("sums"),
    ],
}

GUARDED: Mapping[str, Sequence[Step]] = {
    "a key is renewed": [
        Request(
            "renew",
            False,
            "management",
            http("GET", "/token?type=inference", fields=["Authorization: Bearer KEY:API"]),
        ),
        Request(
            "the old key",
            True,
            "inference",
            http("GET", "/ping", fields=["Authorization: Bearer OLD:inference"]),
        ),
        Request(
            "the new key",
            False,
            "inference",
            http("GET", "/ping", fields=["Authorization: Bearer KEY:inference"]),
        ),
        Request(
            "renew by no API key",
            True,
            "management",
            http("GET", "/token?type=inference", fields=["Authorization: Bearer x"]),
        ),
    ],
}
