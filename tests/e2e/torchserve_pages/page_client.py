"""A client over gRPC with the words and the metadata of the one that the page runs."""

import argparse

import grpc
import inference_pb2
import inference_pb2_grpc

parser = argparse.ArgumentParser()
parser.add_argument("action", choices=["infer"])
parser.add_argument("model")
parser.add_argument("file")
parser.add_argument("--auth-token", default="")
given = parser.parse_args()
metadata = [("protocol", "gRPC"), ("session_id", "12345")]
if given.auth_token:
    metadata.append(("authorization", f"Bearer {given.auth_token}"))
with grpc.insecure_channel("localhost:7070") as channel, open(given.file, "rb") as file:
    request = inference_pb2.PredictionsRequest(model_name=given.model, input={"data": file.read()})
    stub = inference_pb2_grpc.InferenceAPIsServiceStub(channel)
    print(stub.Predictions(request, metadata=metadata, timeout=60).prediction.decode())
