"""Turns tensors into the JSON of the v2 protocol and back, for handlers that see a v2 client's request as a document.

Source: spec sheet `torchserve`, sections 4.2 and 4.7, and the v2 protocol's extension for binary data. No NumPy is
needed: a worker's environment may have none.
"""

import base64
import json
import struct
from collections.abc import Sequence
from typing import Any

from trivium_worker.wire.values import Buffer, Failure, Tensor

HEADER_LENGTH = "Inference-Header-Content-Length"
"""The header that says how much of a body is JSON; data of tensors stand behind it."""

_FORMS = {
    "BOOL": "?",
    "UINT8": "B",
    "UINT16": "H",
    "UINT32": "I",
    "UINT64": "Q",
    "INT8": "b",
    "INT16": "h",
    "INT32": "i",
    "INT64": "q",
    "FP16": "e",
    "FP32": "f",
    "FP64": "d",
}
_SIZE = "binary_data_size"


def document_of(request_id: str, tensors: Sequence[Tensor], always_base64: bool = False) -> dict[str, Any]:
    """Return a request as v2 JSON has it, data flat."""
    document: dict[str, Any] = {"id": request_id} if request_id else {}
    document["inputs"] = [described(tensor, always_base64) for tensor in tensors]
    return document


def described(tensor: Tensor, always_base64: bool = False) -> dict[str, Any]:
    """Return a tensor as v2 JSON has it, data flat. BYTES are text, or all base64 if one is no UTF-8: `parameters` say
    so. With `always_base64` they are that, as behind the original's gRPC, and nothing says so.
    """
    told: dict[str, Any] = {"name": tensor.name, "shape": list(tensor.shape), "datatype": tensor.datatype}
    if tensor.datatype != "BYTES":
        told["data"] = _numbers(tensor)
        return told
    elements = tensor.elements()
    try:
        told["data"] = None if always_base64 else [element.decode("utf-8") for element in elements]
    except UnicodeDecodeError:
        told["parameters"] = {"encoding": "base64"}
    if told.get("data") is None:
        told["data"] = [base64.b64encode(element).decode("ascii") for element in elements]
    return told


def _numbers(tensor: Tensor) -> list[Any]:
    data = tensor.data
    if tensor.datatype == "BF16":  # the upper half of an FP32
        halves = struct.unpack(f"<{len(data) // 2}H", data)
        return list(
            struct.unpack(f"<{len(halves)}f", struct.pack(f"<{len(halves)}I", *(h << 16 for h in halves)))
        )
    form = _FORMS[tensor.datatype]
    return list(struct.unpack(f"<{len(data) // struct.calcsize('<' + form)}{form}", data))


def tensor_of(output: dict[str, Any]) -> Tensor:
    """Return what v2 JSON describes, data flat, as a tensor; BYTES are texts, and what is no text as JSON. Raises
    struct.error for a number that its datatype cannot hold.
    """
    name, datatype, shape, data = (output[key] for key in ("name", "datatype", "shape", "data"))
    if datatype == "BYTES":
        texts = [element if isinstance(element, str) else json.dumps(element) for element in data]
        return Tensor.of_elements(name, [text.encode("utf-8") for text in texts], shape)
    return Tensor(name, datatype, shape, struct.pack(f"<{len(data)}{_FORMS[datatype]}", *data))


def with_binary_data(body: Buffer, length: str) -> Any:
    """Return the document of a body whose first bytes, so many, are JSON: each input that says how many bytes it has
    gets its data from behind them. Raises Failure for a body that is not so.
    """
    view = memoryview(body)
    if not length.isdecimal() or int(length) > len(view):
        raise _unfit(f"{HEADER_LENGTH} is {length[:40]!r}, and the body has {len(view)} bytes")
    at = int(length)
    document = json.loads(bytes(view[:at]))
    inputs = []
    for given in document["inputs"]:
        size = (given.get("parameters") or {}).get(_SIZE)
        if size is None:
            inputs.append(given)
            continue
        if type(size) is not int or not 0 <= size <= len(view) - at:
            raise _unfit(
                f"{_SIZE} of the input {given['name']!r} is {size!r}, and {len(view) - at} bytes are left"
            )
        tensor = Tensor(given["name"], given["datatype"], given["shape"], view[at : at + size])
        try:
            inputs.append({**given, **described(tensor)})
        except (struct.error, KeyError) as error:
            raise _unfit(
                f"the {size} bytes of the input {given['name']!r} are no {given['datatype']}"
            ) from error
        at += size
    if at != len(view):
        raise _unfit(f"{len(view) - at} bytes belong to no input")
    return {**document, "inputs": inputs}


def _unfit(found: str) -> Failure:
    return Failure(f"The request's binary data cannot be read: {found}. Let a client write them.", status=400)
