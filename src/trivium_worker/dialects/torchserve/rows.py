"""Makes the rows that a TorchServe handler sees, `data[i]` and its headers, from requests.

Source: spec sheet `torchserve`, section 4.2. Whole bodies and files are read by their content type, form fields are
always bytes. A request of tensors becomes the document of the v2 protocol, or its only BYTES element the body.
"""

import json
import logging
from typing import Any

from trivium_worker.dialects.torchserve.tensors import document_of
from trivium_worker.wire.values import Buffer, Item, Raw, Tensor

BODY = "body"
_FILE = "application/octet-stream"  # where a file does not say what it is


def row_of(item: Item, decodes: bool, as_document: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the handler's row, and the request's headers with those that the original adds: one per input, `explain`,
    `url_path` (both not where the route has no path) and, where a handler is to describe itself, `describe`. Without
    `decodes` every input is bytes. Tensors are a document `as_document` also where they are but one text, with its
    BYTES in base64.
    """
    payload = item.payload
    if not isinstance(payload, Raw):
        return _tensors_row(item, payload, as_document), {
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


def _tensors_row(item: Item, tensors: list[Tensor], as_document: bool) -> dict[str, Any]:
    if not as_document and len(tensors) == 1 and tensors[0].datatype == "BYTES":
        elements = tensors[0].elements()
        if len(elements) == 1:
            return {BODY: bytearray(elements[0])}
    return {BODY: document_of(item.request_id, tensors, always_base64=as_document)}
