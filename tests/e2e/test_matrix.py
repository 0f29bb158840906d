"""Every format through every protocol, under every profile that has it, is answered as `matrix.EXPECTED` says.

`docs/matrix.md` is made of the same table by `make docs`.
"""

import base64
import json
from collections.abc import Iterator
from http.client import HTTPConnection

import numpy as np
import pytest
from tests.e2e.matrix import EXPECTED, MODELS, PROFILES, PROTOCOLS
from tests.harness.server_process import ServerProcess, serve

from trivium.demo import classify, places

PICTURE = places.pictures()[7].read_bytes()
TENSOR = classify.to_tensor(places.pictures()[7])
ACCEPTED = ("tensor/ndlist", "takes numbers alone")
"""A refusal says one of these: what would be taken instead."""


@pytest.fixture(scope="module", params=PROFILES)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, ServerProcess]]:
    """A server of all five models, under one profile."""
    paths = [places.models(), places.bare_model(), *places.handlers()]
    log = tmp_path_factory.mktemp("log") / "log"
    with serve(log, *paths, "--profile", request.param) as server:
        yield request.param, server


@pytest.mark.parametrize("content", EXPECTED)
@pytest.mark.parametrize("form", MODELS)
def test_a_row(served: tuple[str, ServerProcess], content: str, form: str) -> None:
    profile, server = served
    for protocol in PROFILES[profile]:
        expected = EXPECTED[content][form][PROTOCOLS.index(protocol)]
        found, body = ask(server, form, protocol, content)
        if (profile, expected) == ("djl", "415") and protocol == "DJL predictions":
            assert (found, "is not a NDList" in body) == ("400", True), body  # DJL's own words
            continue
        assert found == expected, f"{form} by {protocol}: {body}"
        if found == "415":
            assert any(words in body for words in ACCEPTED), body


def test_every_cell_is_asked() -> None:
    """Every protocol is under a profile, and most cells are the digit."""
    assert {protocol for protocols in PROFILES.values() for protocol in protocols} == set(PROTOCOLS)
    cells = [cell for rows in EXPECTED.values() for form in MODELS for cell in rows[form]]
    assert len(cells) == 40
    assert cells.count("200/7") >= 32


def ask(server: ServerProcess, form: str, protocol: str, content: str) -> tuple[str, str]:
    """One cell: status/digit, and the body for people."""
    path, headers, body = request(form, protocol, content)
    connection = HTTPConnection("127.0.0.1", server.port, timeout=120)
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    text = data.decode("utf-8", "replace")
    return (f"200/{digit(answer, data)}" if answer.status == 200 else str(answer.status)), text


def request(form: str, protocol: str, content: str) -> tuple[str, dict[str, str], bytes]:
    """Path, headers and body, as a client of that protocol would send them."""
    model = MODELS[form]
    if protocol.endswith("predictions"):
        if content == "picture":
            return f"/predictions/{model}", {}, PICTURE
        document = json.dumps({"image": TENSOR.tolist()}).encode()
        return f"/predictions/{model}", {"Content-Type": "application/json"}, document
    path = f"/v2/models/{model}/infer"
    name = "picture" if content == "picture" and form == "Triton Python" else "image"
    batches = form != "bare ONNX"
    if protocol == "v2 JSON":
        entry = (
            {
                "shape": [1, 1] if batches else [1],
                "datatype": "BYTES",
                "data": [base64.b64encode(PICTURE).decode()],
            }
            if content == "picture"
            else {"shape": list(TENSOR.shape), "datatype": "FP32", "data": TENSOR.ravel().tolist()}
        )
        return path, {}, json.dumps({"inputs": [{"name": name, **entry}]}).encode()
    blob = len(PICTURE).to_bytes(4, "little") + PICTURE if content == "picture" else TENSOR.tobytes()
    entry = {
        "name": name,
        "shape": ([1, 1] if batches else [1]) if content == "picture" else list(TENSOR.shape),
        "datatype": "BYTES" if content == "picture" else "FP32",
        "parameters": {"binary_data_size": len(blob)},
    }
    header = json.dumps({"inputs": [entry], "parameters": {"binary_data_output": True}}).encode()
    return path, {"Inference-Header-Content-Length": str(len(header))}, header + blob


def digit(answer, data: bytes) -> int:
    """The digit in an answer of any form: by name, by the greatest probability, or in a handler's JSON."""
    length = answer.getheader("Inference-Header-Content-Length")
    kind = answer.getheader("Content-Type") or ""
    if "ndlist" in kind:
        from trivium.codecs.ndlist import decode

        arrays = {tensor.name: tensor.array for tensor in decode(data, 2**20)}
        return picked(arrays)
    document = json.loads(data[: int(length)] if length else data)
    if "digit" in document:
        return document["digit"]
    if "predictions" in document:  # nested lists of the values alone, or pairs with their names
        found = document["predictions"]
        pairs = found if found and isinstance(found[0], dict) else [{"key": "only", "value": found}]
        return picked({pair["key"]: np.array(pair["value"]) for pair in pairs})
    arrays, at = {}, int(length or 0)
    for output in document["outputs"]:
        size = output.get("parameters", {}).get("binary_data_size")
        if size is None:
            arrays[output["name"]] = np.array(output["data"]).reshape(output["shape"])
            continue
        blob, at = data[at : at + size], at + size
        kinds = {"FP32": "<f4", "INT64": "<i8"}
        arrays[output["name"]] = (
            np.frombuffer(blob, kinds[output["datatype"]]).reshape(output["shape"])
            if output["datatype"] in kinds
            else np.array([blob[4:].decode()])
        )
    return picked(arrays)


def picked(arrays: dict[str, np.ndarray]) -> int:
    """The digit among outputs."""
    if "digit" in arrays:
        return int(arrays["digit"].ravel()[0])
    if "output" in arrays:
        return json.loads(str(arrays["output"].ravel()[0]))["digit"]
    scores = next(array for array in arrays.values() if array.size == 10)
    return int(scores.argmax())
