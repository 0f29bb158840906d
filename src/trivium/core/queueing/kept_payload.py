"""Payloads that outlive the request, batch or frame that they came with: copied once, and their bytes counted."""

import msgspec

from trivium.core.queueing.response_cache_policy import size_of as tensor_bytes
from trivium.types.generation import Generated
from trivium.types.payload import Payload, Raw, Tensors

PER_PART = 512
"""Bytes that keeping one payload is taken to cost beside its data."""
PER_TOKEN = 64
"""Likewise each token of a generated text."""


def detached(payload: Payload) -> Payload:
    """Return a payload that views nobody else's memory."""
    if isinstance(payload, Tensors):
        return payload.copied()
    if isinstance(payload, Raw):
        if all(type(part.data) is bytes for part in payload.parts) and payload.lease is None:
            return payload
        parts = tuple(msgspec.structs.replace(part, data=bytes(part.data)) for part in payload.parts)
        return msgspec.structs.replace(payload, parts=parts, lease=None)
    return payload


def kept_bytes(payload: Payload | None) -> int:
    """Bytes that keeping a payload costs."""
    if isinstance(payload, Raw):
        return PER_PART + sum(len(part.data) for part in payload.parts)
    if isinstance(payload, Tensors):
        return PER_PART + tensor_bytes(payload)
    if isinstance(payload, Generated):
        return PER_PART + sum(len(one.text) + PER_TOKEN * len(one.ids) for one in payload.choices)
    return PER_PART
