"""Items -> the Input that a DJL handler sees: headers as properties, the query's arguments and the body as content.

Source: spec sheet `djl`, sections 4.3 and 8.4. A request always has content, if only an empty `data`: without any it
would be taken for the initialisation.
"""

import sys
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from trivium_worker.dialects.djl import ndlist
from trivium_worker.wire.values import Failure, Item, Listed, Payload, Raw, Tensor

_DATA = "data"
_TYPE = "content-type"
_TRACE = "traceparent"
_NDLIST = "tensor/ndlist"

Pairs = list[tuple[str, bytearray]]


class Shown(NamedTuple):
    """One request as a handler is to see it."""

    properties: dict[str, str]
    pairs: Pairs


def initialisation(name: str, properties: dict[str, str]) -> Any:
    """The first Input: no content, everything that the model's settings say."""
    return _input(name, properties)


def single(shown: Shown, name: str, always: dict[str, str]) -> Any:
    """One request."""
    inputs = _input(name, shown.properties)
    inputs.properties.update(always)
    for key, value in shown.pairs:
        inputs.content.add(key, value)
    return inputs


def batched(requests: Sequence[Shown], name: str, always: dict[str, str]) -> Any:
    """Several requests in one: each key has its request's number in front."""
    inputs = _input(name, dict(always, batch_size=str(len(requests))))
    for index, shown in enumerate(requests):
        prefix = f"batch_{index:03d}."
        for key, value in shown.properties.items():
            inputs.properties[prefix + key] = value
        for key, data in shown.pairs:
            inputs.content.add(prefix + key, data)
    return inputs


def show(item: Item) -> Shown:
    """Properties and content of one request; parts without a name are its `data`. Raises Failure, which is that
    request's alone.
    """
    if isinstance(item.payload, Listed):
        count = len(item.payload.payloads)
        text = f"A handler takes one request, and got a list of {count}. Let a function make one of them."
        raise Failure(text, "unsupported media")
    return shown(item, item.payload, item.request_id or str(uuid.uuid4()))


def shown(item: Item, payload: Payload, request_id: str) -> Shown:
    """Return one payload of a request as `show` does."""
    properties, pairs = _of_raw(payload) if isinstance(payload, Raw) else _of_tensors(item, payload)
    properties["requestId"] = request_id
    if item.context:  # of its own span, in place of its client's
        of_client = [name for name in properties if name.lower() == _TRACE]
        for name in of_client or [_TRACE]:
            properties[name] = item.context
    return Shown(properties, pairs)


def _input(name: str, properties: dict[str, str]) -> Any:
    module: Any = sys.modules.get("djl_python.inputs")  # an import statement costs ten times as much
    if module is None:
        import djl_python.inputs as module  # its package is on the path of workers alone
    inputs = module.Input()
    inputs.function_name = name
    inputs.properties.update(properties)
    return inputs


def _of_raw(payload: Raw) -> tuple[dict[str, str], Pairs]:
    properties = dict(payload.properties)
    query = payload.query
    pairs = (
        [(key, bytearray(value.encode("utf-8", "surrogatepass"))) for key, value in query] if query else []
    )
    for part in payload.parts:
        pairs.append((part.name or _DATA, bytearray(part.data)))
        if part.name or not part.content_type or _TYPE in properties:
            continue
        if not any(name.lower() == _TYPE for name in properties):
            properties[_TYPE] = part.content_type
    if not pairs:
        pairs.append((_DATA, bytearray()))
    return properties, pairs


def _of_tensors(item: Item, tensors: list[Tensor]) -> tuple[dict[str, str], Pairs]:
    """One text or blob is the body itself; anything else an NDList of the tensors in their order."""
    properties = {name: str(value) for name, value in item.parameters.items()}
    if len(tensors) == 1 and tensors[0].datatype == "BYTES":
        elements = tensors[0].elements()
        if len(elements) == 1:
            return properties, [(_DATA, bytearray(elements[0]))]
    try:
        body = ndlist.write(tensors)
    except ValueError as error:  # of which UnicodeDecodeError is one
        text = f"The tensors cannot be shown to a DJL handler, as an NDList: {error}. Send one BYTES element."
        raise Failure(text, "unsupported media") from None
    properties[_TYPE] = _NDLIST
    return properties, [(_DATA, body)]
