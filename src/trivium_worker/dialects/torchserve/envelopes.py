"""Envelopes of TorchServe: what is around the data of every request and every result of a server's handlers.

Source: spec sheet `torchserve`, section 4.7, and what 0.12.0 answers. An envelope wraps a handler: it takes the data
out of the rows, and puts the results into the document that its clients expect. What it raises counts as the handler's
own failure.
"""

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

from trivium_worker.dialects.torchserve.arrays import flattened, reshaped
from trivium_worker.dialects.torchserve.tensors import HEADER_LENGTH, with_binary_data
from trivium_worker.wire.values import Failure

V2 = "kservev2"
"""The envelope of the v2 protocol."""

Handle = Callable[[Any, Any], Any]


def enveloped(handle: Handle, name: str) -> Handle:
    """Return a handler in the envelope of that name; without a name as it is."""
    return _ENVELOPES[name](handle).handle if name else handle


class Envelope:
    """Wraps a handler; this one takes nothing out and puts nothing around."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._context: Any = None

    def handle(self, data: Any, context: Any) -> Any:
        """Call the handler with what the envelope has taken out. Empty data and results pass as they are."""
        self._context = context
        if data:
            data = self._taken_out(data)
        results = self._handle(data, context)
        return self._put_around(results) if results else results

    def _taken_out(self, rows: list[dict[str, Any]]) -> Any:
        return rows

    def _put_around(self, results: Any) -> Any:
        return results


def _data(row: dict[str, Any]) -> Any:
    """Return the data of a row: an empty one counts as none, as in the original."""
    return row.get("data") or row.get("body")


class BodyEnvelope(Envelope):
    """Gives the handler the data alone."""

    def _taken_out(self, rows: list[dict[str, Any]]) -> Any:
        return [_data(row) for row in rows]


class JsonEnvelope(Envelope):
    """Gives the handler the instances of all requests as one list, and each request the predictions of its own."""

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self._lengths: list[int] = []

    def _taken_out(self, rows: list[dict[str, Any]]) -> Any:
        requests = [_instances(_data(row) or row) for row in rows]
        self._lengths = [len(instances) for instances in requests]
        return [instance for instances in requests for instance in instances]

    def _put_around(self, results: Any) -> Any:
        documents, start = [], 0
        for length in self._lengths:
            documents.append(json.dumps({"predictions": results[start : start + length]}))
            start += length
        return documents


def _instances(document: Any) -> Sequence[Any]:
    instances = document["instances"]
    if not isinstance(instances[0], dict):
        return list(instances)
    return [_decoded(instance) for instance in instances]


def _decoded(instance: dict[str, Any]) -> Any:
    """Return an instance with its base64 decoded: it is that, or has columns of it."""
    if _is_base64(instance):
        return base64.b64decode(instance["b64"])
    return {
        name: base64.b64decode(value["b64"]) if _is_base64(value) else value
        for name, value in instance.items()
    }


def _is_base64(value: Any) -> bool:
    return isinstance(value, dict) and list(value) == ["b64"]


def _document(rows: list[dict[str, Any]]) -> Any:
    """Return the document of the only request: bytes that did not say what they are count as JSON."""
    document = _data(rows[0])
    return json.loads(document) if isinstance(document, (bytes, bytearray)) else document


class KServeEnvelope(Envelope):
    """Gives the handler the instances of one request of KServe's v1, and the request its predictions."""

    def _taken_out(self, rows: list[dict[str, Any]]) -> Any:
        return _document(rows).get("instances")

    def _put_around(self, results: Any) -> Any:
        is_explained = self._context.get_request_header(0, "explain") == "True"
        return [{"explanations" if is_explained else "predictions": results}]


class KServeV2Envelope(Envelope):
    """Gives the handler the inputs of one request of KServe's v2, and the request its outputs under their names."""

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self._id: Any = None
        self._names: list[str] = []

    def _taken_out(self, rows: list[dict[str, Any]]) -> Any:
        document = self._document(rows)
        inputs = [_with_shape(tensor) for tensor in document["inputs"]]
        self._names = [tensor["name"] for tensor in inputs]
        named = document.get("id")
        self._id = named if named and named.strip() else None
        return inputs

    def _document(self, rows: list[dict[str, Any]]) -> Any:
        length = self._context.get_request_header(0, HEADER_LENGTH)
        body = _data(rows[0])
        if length and isinstance(body, (bytes, bytearray)):
            return with_binary_data(body, str(length))
        return _document(rows)

    def _put_around(self, results: Any) -> Any:
        context = self._context
        about = context.manifest.get("model")
        return [
            {
                "id": context.get_request_id(0) if self._id is None else self._id,
                "model_name": about.get("modelName"),
                "model_version": about.get("modelVersion"),
                "outputs": [_output(self._names[index], result) for index, result in enumerate(results)],
            }
        ]


def _with_shape(tensor: dict[str, Any]) -> dict[str, Any]:
    """Return an input with its data nested as its shape says; of text the first element."""
    data = tensor["data"]
    if not isinstance(data, (list, tuple)):
        raise Failure(
            f"The data of the input {str(tensor.get('name'))[:80]!r} is {_kind_of(data)}, and the envelope kservev2 "
            "takes a list of elements. Send it as a list, of one element if there is but one.",
            status=400,
        )
    is_text = tensor["datatype"] == "BYTES"
    return {**tensor, "data": data[0] if is_text else reshaped(data, tensor["shape"])}


def _kind_of(data: Any) -> str:
    kinds = {str: "a text", bool: "a truth value", dict: "an object", type(None): "null"}
    return kinds.get(type(data), "a number")


def _output(name: str, result: Any) -> dict[str, Any]:
    datatype, data = flattened(result)
    return {"name": name, "datatype": datatype, "data": data, "shape": [len(data)]}


_ENVELOPES: dict[str, Callable[[Handle], Envelope]] = {
    "body": BodyEnvelope,
    "json": JsonEnvelope,
    "kserve": KServeEnvelope,
    V2: KServeV2Envelope,
}
