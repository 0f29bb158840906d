"""Makes the rows that a TorchServe handler sees, `data[i]` and its headers, from requests.

Source: spec sheet `torchserve`, section 4.2. Whole bodies and files are read by their content type, form fields are
always bytes. A request of tensors becomes the document of the v2 protocol, or its only BYTES element the body.
"""

import base64
import json
import logging
import struct
from typing import Any

from trivium_worker.wire.values import Buffer, Item, Raw, Tensor

BODY = "body"
_FILE = "application/octet-stream"  # where a file does not say what it is
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


def row_of(item: Item, decodes: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the handler's row, and the request's headers with those that the original adds: one per input, `explain`,
    `url_path` (both not where the route has no path) and, where a handler is to describe itself, `describe`. Without
    `decodes` every input is bytes.
    """
    payload = item.payload
    if not isinstance(payload, Raw):
        return _tensors_row(item, payload), {
            BODY: {"content-type": "application/json"},
            "explain": "False",
            "url_path": "",
        }
    row: dict[str, Any] = {name: bytearray(value.encode("utf-8")) for name, value in payload.query}
    headers: dict[str, Any] = {name: {"content-type": ""} for name in row}
    for part in payload.parts:
        name, is_read = part.name or BODY, not part.name or bool(part.filename)
        row[name] = decoded(part.data, part.content_type) if decodes and is_read else bytearray(part.data)
        kind = _essence(part.content_type) or (_FILE if part.filename else "")
        headers[name] = {"content-type": kind if is_read else ""}
    headers.update(payload.properties)
    if payload.path is not None:
        headers["explain"] = "False"
        headers["url_path"] = payload.path
    if item.method == "explain":
        headers["explain"] = "True"
    if item.method == "describe":
        headers["describe"] = "True"
    return row, headers


def decoded(data: Buffer, content_type: str) -> Any:
    """A body by its content type: parsed JSON, text, else (and where it is neither) a bytearray."""
    kind = _essence(content_type).lower()
    raw = bytearray(data)
    try:
        if kind == "application/json":
            return json.loads(raw)
        if kind.startswith("text/"):
            return raw.decode("utf-8")
    except (ValueError, RecursionError) as error:
        logging.warning("a body of content type %s is handed over as bytes: %s", kind, error)
    return raw


def _essence(content_type: str) -> str:
    return content_type.partition(";")[0].strip()


def _tensors_row(item: Item, tensors: list[Tensor]) -> dict[str, Any]:
    if len(tensors) == 1 and tensors[0].datatype == "BYTES":
        elements = tensors[0].elements()
        if len(elements) == 1:
            return {BODY: bytearray(elements[0])}
    document: dict[str, Any] = {"id": item.request_id} if item.request_id else {}
    document["inputs"] = [_described(tensor) for tensor in tensors]
    return {BODY: document}


def _described(tensor: Tensor) -> dict[str, Any]:
    """Return tensors as v2 JSON has them, data flat. BYTES are text, or all base64 if one is no UTF-8: `parameters`
    say so.
    """
    told: dict[str, Any] = {"name": tensor.name, "shape": list(tensor.shape), "datatype": tensor.datatype}
    if tensor.datatype == "BYTES":
        elements = tensor.elements()
        try:
            told["data"] = [element.decode("utf-8") for element in elements]
        except UnicodeDecodeError:
            told["data"] = [base64.b64encode(element).decode("ascii") for element in elements]
            told["parameters"] = {"encoding": "base64"}
    else:
        told["data"] = _numbers(tensor)
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
