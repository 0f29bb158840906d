"""Every format through every protocol, under every profile that has it: what was expected, and the page in `docs/`."""

import base64
import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.matrix import EXPECTED, MODELS, PROFILES, PROTOCOLS
from tests.harness.server_process import ServerProcess, serve

from trivium.demo import classify, places

PAGE = Path(__file__).parents[2] / "docs" / "matrix.md"
PICTURE = places.pictures()[7].read_bytes()
TENSOR = classify.to_tensor(places.pictures()[7])
ACCEPTED = ("tensor/ndlist", "takes numbers alone")
"""A refusal says one of these: what would be taken instead."""

FOUND: dict[tuple[str, str, str], str] = {}
"""Content, form, protocol -> the cell."""


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
        FOUND[content, form, protocol] = found
        assert found == expected, f"{form} by {protocol}: {body}"
        if found == "415":
            assert any(words in body for words in ACCEPTED), body


def test_the_page_shows_what_was_found() -> None:
    """Runs after the rows, whose findings it writes."""
    right = [cell for cell in FOUND.values() if cell == "200/7"]
    assert len(FOUND) == 40
    assert len(right) >= 32
    PAGE.write_text(page())


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


TOP = """# The matrix

One model, a classifier of handwritten digits, in five dresses, asked by four protocols. The picture is a PNG that
shows a seven; the tensor is the same picture, prepared by the client. A cell is the status of the answer, and the
digit in it. What an ONNX file cannot take is refused with 415 and a sentence that says what it would take: what is
in a picture is never guessed.

Every cell is asked under each profile that has its protocol: v2 under all three, DJL's predictions under `native`
and `djl`, TorchServe's under `torchserve`. `tests/e2e/test_matrix.py` asks them and writes this page;
`tests/e2e/matrix.py` is what was expected before it was first run.
"""


def page() -> str:
    """`docs/matrix.md`."""
    lines = TOP.splitlines()
    for content, rows in EXPECTED.items():
        lines += [
            "",
            f"## The {content}",
            "",
            f"| | {' | '.join(PROTOCOLS)} |",
            "|---" * (1 + len(PROTOCOLS)) + "|",
        ]
        for form in rows:
            cells = [FOUND[content, form, protocol] for protocol in PROTOCOLS]
            lines.append(f"| {form} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
