"""A client of TorchServe's gRPC services, as its users write them: grpcio, with and without asyncio, and stubs that
grpc_tools has compiled, which lie on the path.

It is given both addresses, the keys of both, and the model store's archive, and prints what it was answered as JSON.
"""

import asyncio
import json
import sys
from typing import Any

import grpc
import inference_pb2
import inference_pb2_grpc
import management_pb2
import management_pb2_grpc
from google.protobuf.empty_pb2 import Empty

SECONDS = 60


def request(model: str, data: bytes, **more: Any) -> Any:
    return inference_pb2.PredictionsRequest(model_name=model, input={"data": data}, **more)


def life(stub: Any, metadata: Any, archive: str) -> list[str]:
    """What is said of a model from its registration on."""
    name = {"model_name": "registered"}
    asked = [
        (
            stub.RegisterModel,
            management_pb2.RegisterModelRequest(url=archive, initial_workers=1, synchronous=True, **name),
        ),
        (stub.DescribeModel, management_pb2.DescribeModelRequest(**name)),
        (stub.ListModels, management_pb2.ListModelsRequest(limit=10)),
        (stub.ScaleWorker, management_pb2.ScaleWorkerRequest(min_worker=2, synchronous=True, **name)),
        (stub.SetDefault, management_pb2.SetDefaultRequest(model_version="1.0", **name)),
        (stub.UnregisterModel, management_pb2.UnregisterModelRequest(**name)),
    ]
    return [call(message, metadata=metadata, timeout=SECONDS).msg for call, message in asked]


def blocking(addresses: list[str], keys: list[Any], archive: str) -> dict[str, Any]:
    with grpc.insecure_channel(addresses[0]) as infers, grpc.insecure_channel(addresses[1]) as manages:
        stub = inference_pb2_grpc.InferenceAPIsServiceStub(infers)
        given = {"metadata": keys[0], "timeout": SECONDS}
        found: dict[str, Any] = {
            "ping": stub.Ping(Empty(), **given).health,
            "predicted": stub.Predictions(request("echo", b"hi"), **given).prediction.decode(),
            "streamed": [
                each.prediction.decode() for each in stub.StreamPredictions(request("parts", b"hi"), **given)
            ],
        }
        future = stub.Predictions.future(request("echo", b"later"), **given)
        found["later"] = future.result().prediction.decode()
        asked = iter([request("parts", b"hi", sequence_id="s")])
        parts = list(stub.StreamPredictions2(asked, **given))
        found["sequence"] = [[each.prediction.decode(), each.sequence_id, each.status.code] for each in parts]
        try:
            stub.Predictions(request("nobody", b""), **given)
        except grpc.RpcError as error:
            found["unknown"] = [error.code().name, error.details()]
        try:
            stub.Predictions(request("echo", b""), timeout=SECONDS)
        except grpc.RpcError as error:
            found["no key"] = [error.code().name, error.details()]
        found["life"] = life(management_pb2_grpc.ManagementAPIsServiceStub(manages), keys[1], archive)
    return found


async def awaited(address: str, key: Any) -> dict[str, Any]:
    async with grpc.aio.insecure_channel(address) as channel:
        stub = inference_pb2_grpc.InferenceAPIsServiceStub(channel)
        many = [
            stub.Predictions(request("echo", b"%d" % each), metadata=key, timeout=SECONDS)
            for each in range(20)
        ]
        found: dict[str, Any] = {"many": [each.prediction.decode() for each in await asyncio.gather(*many)]}
        stream = stub.StreamPredictions(request("parts", b"hi"), metadata=key, timeout=SECONDS)
        found["streamed"] = [each.prediction.decode() async for each in stream]
        left = stub.StreamPredictions(request("parts", b"wait"), metadata=key, timeout=SECONDS)
        found["first"] = (await left.read()).prediction.decode()
        left.cancel()
        found["after"] = (await stub.Predictions(request("echo", b"hi"), metadata=key)).prediction.decode()
        try:
            await stub.Predictions(request("nobody", b""), metadata=key, timeout=SECONDS)
        except grpc.aio.AioRpcError as error:
            found["unknown"] = [error.code().name, error.details()]
    return found


def main() -> None:
    given = json.loads(sys.argv[1])
    keys = [(("authorization", f"Bearer {key}"),) for key in given["keys"]]
    found = {
        "blocking": blocking(given["addresses"], keys, given["archive"]),
        "awaited": asyncio.run(awaited(given["addresses"][0], keys[0])),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
