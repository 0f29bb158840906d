"""KServe's own clients, asked by lines of JSON: each line has a server, a model and its inputs, each answer is a line.

One process for many servers, since the package takes long to import.
"""

import asyncio
import json
import sys
from typing import Any

import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig


def request(inputs: list[dict[str, Any]], *, is_binary: bool) -> InferRequest:
    """A request of v2 with these inputs."""
    made = []
    for each in inputs:
        if each["datatype"] == "BYTES":
            array = np.array([one.encode() for one in each["data"]], object)
        else:
            array = np.array(each["data"], {"FP32": np.float32, "FP64": np.float64}[each["datatype"]])
        array = array.reshape(each["shape"])
        given = InferInput(each["name"], list(array.shape), each["datatype"])
        given.set_data_from_numpy(array, binary_data=is_binary)
        made.append(given)
    return InferRequest(None, made, request_id="mine")


def outputs(response: Any) -> dict[str, Any]:
    """The tensors of an answer, by their names."""
    return {each.name: each.as_numpy().tolist() for each in response.outputs}


async def asked(line: dict[str, Any]) -> dict[str, Any]:
    """What the clients get for one line."""
    url, model, found = line["url"], line["model"], {}
    if "instances" in line:
        async with InferenceRESTClient(RESTConfig(protocol="v1", retries=1, timeout=120)) as client:
            found["v1"] = (await client.infer(url, {"instances": line["instances"]}, model_name=model))[
                "predictions"
            ]
            found["v1 ready"] = await client.is_model_ready(url, model)
    async with InferenceRESTClient(RESTConfig(protocol="v2", retries=1, timeout=120)) as client:
        for name, is_binary in (("v2", False), ("v2 binary", True)):
            answer = await client.infer(url, request(line["inputs"], is_binary=is_binary), model_name=model)
            found[name] = outputs(answer)
        found["ready"] = await client.is_model_ready(url, model)
        for name, call in (("live", client.is_server_live), ("server ready", client.is_server_ready)):
            try:
                found[name] = await call(url)
            except json.JSONDecodeError:  # as with Triton's own server, whose answer has no body
                found[name] = "no JSON"
    if "rpc" in line:
        async with InferenceGRPCClient(line["rpc"]) as client:
            answer = await client.infer(
                InferRequest(model, request(line["inputs"], is_binary=False).inputs, request_id="mine")
            )
            found["grpc"] = outputs(answer)
            found["rpc ready"] = await client.is_model_ready(model)
            found["rpc live"] = await client.is_server_live()
    return found


if __name__ == "__main__":
    for text in sys.stdin:
        try:
            answer = asyncio.run(asked(json.loads(text)))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, default=lambda value: value.decode()), flush=True)
