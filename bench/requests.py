"""The request bytes that every variant is sent, and the wrk script that sends them."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench.repository import CACHE


@dataclass(frozen=True)
class Request:
    """One v2 binary request for `model`; `data` is its only input."""

    model: str
    input: str
    data: np.ndarray

    @property
    def path(self) -> str:
        return f"/v2/models/{self.model}/infer"

    def json(self) -> bytes:
        tensor = {
            "name": self.input,
            "shape": self.data.shape,
            "datatype": "FP32",
            "parameters": {"binary_data_size": self.data.nbytes},
        }
        document = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
        return json.dumps(document, separators=(",", ":")).encode()

    def body(self) -> bytes:
        return self.json() + self.data.tobytes()

    def headers(self) -> dict[str, str]:
        length = str(len(self.json()))
        return {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": length}


@dataclass(frozen=True)
class RawRequest:
    """The same bytes without a header, for a handler behind `POST /predictions`."""

    model: str
    data: np.ndarray

    @property
    def path(self) -> str:
        return f"/predictions/{self.model}"

    def body(self) -> bytes:
        return self.data.tobytes()

    def headers(self) -> dict[str, str]:
        return {"Content-Type": "application/octet-stream"}


@dataclass(frozen=True)
class JsonRequest:
    """One v2 request whose numbers are JSON, as most people write it."""

    model: str
    input: str
    data: np.ndarray

    @property
    def path(self) -> str:
        return f"/v2/models/{self.model}/infer"

    def body(self) -> bytes:
        values = self.data.ravel().tolist()
        tensor = {"name": self.input, "shape": self.data.shape, "datatype": "FP32", "data": values}
        return json.dumps({"inputs": [tensor]}).encode()

    def headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json"}


AnyRequest = Request | RawRequest | JsonRequest


def script(request: AnyRequest) -> Path:
    """Write a wrk script; the body is read from a file beside it."""
    name = f"{request.model}-{type(request).__name__}"
    body = CACHE / f"{name}.body"
    body.write_bytes(request.body())
    found = CACHE / f"{name}.lua"
    headers = "".join(f'wrk.headers["{name}"] = "{value}"\n' for name, value in request.headers().items())
    found.write_text(
        f'local file = io.open("{body}", "rb")\nwrk.body = file:read("*all")\nwrk.method = "POST"\n{headers}'
    )
    return found


def echo(model: str) -> Request:
    """FP32[1,16], different numbers in every element."""
    return Request(model, "x", np.arange(16, dtype="<f4").reshape(1, 16))


def json_echo(model: str) -> JsonRequest:
    """The numbers of `echo`'s tensor in JSON."""
    return JsonRequest(model, "x", echo(model).data)


def raw_echo(model: str) -> RawRequest:
    """The 64 bytes of `echo`'s tensor."""
    return RawRequest(model, echo(model).data)


def picture(model: str = "mobilenet") -> Request:
    """FP32[1,3,224,224], 602,112 bytes, seeded."""
    data = np.random.default_rng(0).random((1, 3, 224, 224), dtype=np.float32)
    return Request(model, "input", data)
