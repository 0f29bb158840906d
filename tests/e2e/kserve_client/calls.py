"""Asks a server by KServe's own client, with what it has for each protocol, and prints what it makes of the answers."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Mapping
from typing import Any

import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig

INSTANCES = {"instances": [[1, 2, 3], [4, 5, 6]]}


def request(array: Any, datatype: str, *, is_binary: bool) -> InferRequest:
    given = InferInput("x", list(array.shape), datatype)
    given.set_data_from_numpy(array, binary_data=is_binary)
    return InferRequest("sums", [given], request_id="mine")


async def outcome(call: Awaitable[Any]) -> Any:
    """What a call returns: of a response of v2 the id, and name, datatype, shape and data of each output."""
    try:
        found = await call
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not hasattr(found, "outputs"):
        return found
    outputs = [[one.name, one.datatype, list(one.shape), one.as_numpy().tolist()] for one in found.outputs]
    return [found.id, found.model_name, *outputs]


async def v1(url: str, rpc: str) -> Mapping[str, Any]:
    async with InferenceRESTClient(RESTConfig(protocol="v1", retries=1)) as client:
        return {
            "predicted": await outcome(client.infer(url, INSTANCES, model_name="sums")),
            "explained": await outcome(client.explain(url, "sums", INSTANCES)),
            "ready": await outcome(client.is_model_ready(url, "sums")),
            "live": await outcome(client.is_server_live(url)),
            "unknown": await outcome(client.infer(url, INSTANCES, model_name="nobody")),
        }


async def v2(url: str, rpc: str) -> Mapping[str, Any]:
    numbers = np.array([[1, 2, 3]], np.float32)
    whole = np.array([1, 2], np.int64)
    text = np.array([b"\x89PNG"], object)
    plain, binary = (request(numbers, "FP32", is_binary=binary) for binary in (False, True))
    found: dict[str, Any] = {}
    async with InferenceRESTClient(RESTConfig(protocol="v2", retries=1)) as client:
        found["plain"] = await outcome(client.infer(url, plain, model_name="sums"))
        found["binary"] = await outcome(client.infer(url, binary, model_name="sums"))
        found["whole"] = await outcome(
            client.infer(url, request(whole, "INT64", is_binary=True), model_name="sums")
        )
        found["text"] = await outcome(
            client.infer(url, request(text, "BYTES", is_binary=True), model_name="sums")
        )
        found["ready"] = await outcome(client.is_model_ready(url, "sums"))
        found["nobody ready"] = await outcome(client.is_model_ready(url, "nobody"))
        found["live"] = await outcome(client.is_server_live(url))
        found["server ready"] = await outcome(client.is_server_ready(url))
        found["unknown"] = await outcome(client.infer(url, plain, model_name="nobody"))
    async with InferenceGRPCClient(rpc) as client:
        found["rpc"] = await outcome(client.infer(plain))
        found["rpc text"] = await outcome(client.infer(request(text, "BYTES", is_binary=True)))
        found["rpc ready"] = await outcome(client.is_model_ready("sums"))
        found["rpc live"] = await outcome(client.is_server_live())
    return found


if __name__ == "__main__":
    protocol, *addresses = sys.argv[1:]
    print(json.dumps(asyncio.run({"kserve": v1, "kservev2": v2}[protocol](*addresses))))
