"""What is asked over gRPC of the server that is open to everybody, by tables: a call's RPC and its messages."""

from collections.abc import Mapping
from typing import Any

from tests.e2e.torchserve_beside.exchange import Request

Calls = Mapping[str, tuple[str, Mapping[str, Any]]]


def _predict(model: str, data: bytes = b"x", key: str = "data", **more: Any) -> Mapping[str, Any]:
    return {"model_name": model, "input": {key: data}, **more}


GOOD: Calls = {
    "ping": ("Ping", {}),
    "a prediction": ("Predictions", _predict("says")),
    "a prediction by body": ("Predictions", _predict("says", key="body")),
    "a prediction of a version": ("Predictions", _predict("says", model_version="1.0")),
    "what a handler sees": ("Predictions", _predict("view", b"\x00\xff")),
    "what a handler sees of two inputs": (
        "Predictions",
        {"model_name": "view", "input": {"a": b"1", "b": b""}},
    ),
    "what a handler sees of none": ("Predictions", {"model_name": "view"}),
    "a stream": ("StreamPredictions", _predict("stream")),
    **{
        f"says {word}": ("Predictions", _predict("says", word.encode()))
        for word in ("none", "json", "bytes", "text", "status 404", "header 1")
    },
}

BAD: Calls = {
    "a stream's first part": ("Predictions", _predict("stream")),
    **{
        f"says {word}": ("Predictions", _predict("says", word.encode()))
        for word in (
            "raise value",
            "raise memory",
            "code 400",
            "code 404",
            "code 413",
            "code 429",
            "code 513",
            "not a list",
            "object",
        )
    },
    "a stream that fails": ("StreamPredictions", _predict("stream", b"fail")),
    "an unknown model": ("Predictions", _predict("nobody")),
    "an unknown version": ("Predictions", _predict("says", model_version="9")),
    "no model": ("Predictions", {}),
    "no message": ("Predictions", {"garbage": b"\xff\xff\xff"}),
    "an unknown model's stream": ("StreamPredictions", _predict("nobody")),
    "no model's stream": ("StreamPredictions", {}),
    "an unknown model's sequence": ("StreamPredictions2", _predict("nobody", sequence_id="a")),
    "a sequence without its id": ("StreamPredictions2", _predict("sequences", b"1")),
}

MANAGEMENT_GOOD: Calls = {
    "the list": ("ListModels", {"limit": 100}),
    "the list by nothing": ("ListModels", {}),
    "the list by two": ("ListModels", {"limit": 2, "next_page_token": 2}),
    "describe": ("DescribeModel", {"model_name": "view"}),
    "describe a version": ("DescribeModel", {"model_name": "view", "model_version": "1.0"}),
    "describe all": ("DescribeModel", {"model_name": "view", "model_version": "all"}),
    "describe by its own": ("DescribeModel", {"model_name": "names", "customized": True}),
    "scale": ("ScaleWorker", {"model_name": "view", "min_worker": 1, "max_worker": 1, "synchronous": True}),
    "scale and do not wait": ("ScaleWorker", {"model_name": "view", "min_worker": 1}),
    "set the default": ("SetDefault", {"model_name": "view", "model_version": "1.0"}),
}

MANAGEMENT_BAD: Calls = {
    "describe nobody": ("DescribeModel", {"model_name": "nobody"}),
    "describe nothing": ("DescribeModel", {}),
    "describe a version that is not": ("DescribeModel", {"model_name": "view", "model_version": "9"}),
    "register nothing": ("RegisterModel", {}),
    "register nobody": ("RegisterModel", {"url": "nobody.mar"}),
    "register what is there": ("RegisterModel", {"url": "view.mar"}),
    "register by ruby": ("RegisterModel", {"url": "other.mar", "runtime": "ruby"}),
    "scale nobody": ("ScaleWorker", {"model_name": "nobody", "min_worker": 1}),
    "scale nothing": ("ScaleWorker", {}),
    "scale a version that is not": (
        "ScaleWorker",
        {"model_name": "view", "model_version": "9", "min_worker": 1},
    ),
    "scale to less than the least": (
        "ScaleWorker",
        {"model_name": "view", "min_worker": 3, "max_worker": 1},
    ),
    "set nobody's default": ("SetDefault", {"model_name": "nobody", "model_version": "1.0"}),
    "set a default that is not": ("SetDefault", {"model_name": "view", "model_version": "9"}),
    "unregister nobody": ("UnregisterModel", {"model_name": "nobody"}),
    "unregister nothing": ("UnregisterModel", {}),
    "unregister a version that is not": ("UnregisterModel", {"model_name": "view", "model_version": "9"}),
}


def open_calls() -> list[Request]:
    """All of them."""
    return [
        Request(f"{listener}: {name}", is_bad, listener, rpc=rpc, messages=(message,))
        for listener, is_bad, table in (
            ("grpc_inference", False, GOOD),
            ("grpc_inference", True, BAD),
            ("grpc_management", False, MANAGEMENT_GOOD),
            ("grpc_management", True, MANAGEMENT_BAD),
        )
        for name, (rpc, message) in table.items()
    ]
