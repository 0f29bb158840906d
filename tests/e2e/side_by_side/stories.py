"""Requests that change something, told in order: each is answered by what those before it did. See `http_requests`.

At the end everything is as it was.
"""

import json
import os
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from tests.e2e.side_by_side.http_requests import infer, tensor
from tests.e2e.side_by_side.models import IDENTITY
from tests.harness.raw_http import get, post

KEY = f"/side_by_side_{os.getpid()}"
FRESH_KEY = f"{KEY}_fresh"
"""The shared memories that the test makes, of `MEMORY_BYTES` each. The second is registered once: where a region of a
key is there already, the original asks a descriptor that it has closed how large the memory is, and what it answers is
the luck of which file has that number by then.
"""
MEMORY_BYTES = 64

_SPARE = "/v2/repository/models/spare"
_REGION = "/v2/systemsharedmemory/region/r"
_CONFIG = json.dumps(
    {
        "backend": "python",
        "max_batch_size": "4",
        "input": [{"name": "INPUT0", "data_type": "TYPE_INT32", "dims": [2]}],
        "output": [{"name": "OUTPUT0", "data_type": "TYPE_INT32", "dims": [2]}],
    }
)


def _post(path: str, document: Any) -> bytes:
    return post(path, json.dumps(document).encode())


def _ask(shape: list[int]) -> bytes:
    return infer("spare", {"inputs": [tensor("INPUT0", "INT32", shape, data=[1, 2])]})


def _placed(given: dict[str, Any], wanted: dict[str, Any]) -> bytes:
    inputs = [tensor("INPUT0", "FP32", [1, 3], parameters=given)]
    return infer("ident_fp32", {"inputs": inputs, "outputs": [{"name": "OUTPUT0", "parameters": wanted}]})


def _place(region: str, size: int, offset: int = 0) -> dict[str, Any]:
    return {"shared_memory_region": region, "shared_memory_byte_size": size, "shared_memory_offset": offset}


STORY: Mapping[str, tuple[bool, bytes]] = {
    "a loaded model": (False, _ask([2])),
    "unload": (False, post(f"{_SPARE}/unload", b"")),
    "an unloaded model": (True, _ask([2])),
    "metadata of an unloaded model": (True, get("/v2/models/spare")),
    "readiness of an unloaded model": (True, get("/v2/models/spare/ready")),
    "statistics of an unloaded model": (True, get("/v2/models/spare/stats")),
    "load with a configuration": (False, _post(f"{_SPARE}/load", {"parameters": {"config": _CONFIG}})),
    "metadata after that": (False, get("/v2/models/spare")),
    "the configuration after that": (False, get("/v2/models/spare/config")),
    "the same request as before": (True, _ask([2])),
    "one of rows": (False, _ask([1, 2])),
    "load as it was": (False, post(f"{_SPARE}/load", b"{}")),
    "the same request as at first": (False, _ask([2])),
    "the index at the end": (False, post("/v2/repository/index", b"")),
    "load of sent files": (
        False,
        _post(
            "/v2/repository/models/sent/load",
            {
                "parameters": {
                    "config": _CONFIG,
                    "file:/1/model.py": b64encode(b"raise ValueError").decode(),
                    "file:1/model.py": b64encode(IDENTITY.encode()).decode(),
                }
            },
        ),
    ),
    "a model of sent files": (
        False,
        infer("sent", {"inputs": [tensor("INPUT0", "INT32", [1, 2], data=[1, 2])]}),
    ),
    "unload of sent files": (False, post("/v2/repository/models/sent/unload", b"")),
    "register": (False, _post(f"{_REGION}/register", {"key": KEY, "byte_size": MEMORY_BYTES})),
    "register again": (True, _post(f"{_REGION}/register", {"key": KEY, "byte_size": MEMORY_BYTES})),
    "register too much": (
        True,
        _post("/v2/systemsharedmemory/region/s/register", {"key": FRESH_KEY, "byte_size": 9999}),
    ),
    "the region": (False, get(f"{_REGION}/status")),
    "a request in it": (False, _placed(_place("r", 12), _place("r", 12, 16))),
    "an output that it is too small for": (True, _placed(_place("r", 12), _place("r", 8, 16))),
    "an offset beyond it": (True, _placed(_place("r", 12, 64), {})),
    "a size beyond it": (True, _placed(_place("r", 12, 56), {})),
    "a size that is not the shape's": (True, _placed(_place("r", 8), {})),
    "unregister it": (False, post(f"{_REGION}/unregister", b"")),
    "a request in it afterwards": (True, _placed(_place("r", 12), {})),
    "log less": (False, _post("/v2/logging", {"log_info": False})),
    "log more": (False, _post("/v2/logging", {"log_info": True})),
}
"""What is asked -> is it bad, and its bytes."""
