"""How values are described in a frame's JSON text: the server's side of `trivium_child.frames`. Pure."""

from trivium.types.operations import PREDICT, Infer
from trivium.types.payload import Raw, Tensor


def tensor_text(tensor: Tensor, size: int) -> list[object]:
    """A tensor of `size` bytes."""
    return [tensor.name, tensor.datatype.wire, list(tensor.shape), size]


def raw_text(raw: Raw) -> dict[str, object]:
    """A raw body."""
    return {
        "parts": [[part.name, part.content_type, part.filename, len(part.data)] for part in raw.parts],
        "properties": dict(raw.properties),
        "query": dict(raw.query),
        "status": raw.status,
        "reason": raw.reason,
        "path": raw.path,
    }


def wishes(operation: Infer) -> dict[str, object]:
    """What a request says beside its payload; nothing where it says nothing."""
    told: dict[str, object] = {}
    if operation.outputs:
        told["outputs"] = [output.name for output in operation.outputs]
    if operation.parameters:
        told["parameters"] = dict(operation.parameters)
    if operation.priority:
        told["priority"] = operation.priority
    if operation.deadline is not None:
        told["timeout"] = operation.deadline
    sequence = operation.sequence
    if sequence is not None:
        told["sequence"] = [sequence.id, sequence.starts, sequence.ends]
    if operation.method != PREDICT:
        told["method"] = operation.method
    if operation.context:
        told["context"] = operation.context
    return told
