"""Asks a model over v2 by each of its clients: JSON by hand, binary and gRPC by the real libraries."""

import httpx
import numpy as np
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils
from tests.harness.server_process import ServerProcess


def infer(
    server: ServerProcess, model: str, name: str, rows: np.ndarray, route: str
) -> dict[str, np.ndarray]:
    """Return the outputs of one request of v2, by the client that the route names."""
    kind = tritonclient.utils.np_to_triton_dtype(rows.dtype)
    if route == "json":
        data = [one.decode() for one in rows] if kind == "BYTES" else rows.tolist()
        tensor = {"name": name, "datatype": kind, "shape": list(rows.shape), "data": data}
        answer = httpx.post(f"{server.url}/v2/models/{model}/infer", json={"inputs": [tensor]}, timeout=60)
        assert answer.status_code == 200, answer.text
        return {one["name"]: np.reshape(one["data"], one["shape"]) for one in answer.json()["outputs"]}
    library = tritonclient.http if route == "binary" else tritonclient.grpc
    url = server.url.removeprefix("http://") if route == "binary" else server.grpc_address
    with library.InferenceServerClient(url) as client:
        sent = library.InferInput(name, rows.shape, kind)
        sent.set_data_from_numpy(rows)
        answer = client.infer(model, [sent])
        given = answer.get_response()
        outputs = given["outputs"] if isinstance(given, dict) else given.outputs
        names = [one["name"] if isinstance(one, dict) else one.name for one in outputs]
        return {one: answer.as_numpy(one) for one in names}
