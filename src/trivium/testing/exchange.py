"""Turns operations into what an adapter gets, and what it makes of them into outcomes: as between server and worker.

The same texts are written and read as on a worker's socket, so that whatever does not survive that does not here.
"""

from collections.abc import Mapping
from typing import Any

from trivium.core.request import Item
from trivium.core.workers.wire import AnswerReader, payload_text, read_payload, wishes
from trivium.types.payload import Payload, RequestPayload, Scalar
from trivium.types.running import Outcome
from trivium_worker.runtime.faults import fault
from trivium_worker.wire import frames, values


def to_worker(item: Item, outlet: values.Outlet) -> values.Item:
    """Return a request as a worker has it from its socket."""
    infer = item.operation
    described, blobs = payload_text(infer.payload)
    about = frames.read(frames.text({**described, **wishes(infer)}))
    data = memoryview(b"".join(blobs))
    payload: Any = frames.read_payload(about, data)
    return values.Item(item.item, infer.id, item.rows, payload, about, outlet)


def from_worker(
    number: int, outcome: Any, parameters: "Mapping[str, Any] | None" = None
) -> tuple[Outcome, Mapping[str, Scalar]]:
    """Return what an adapter made of an item, as the server reads it; a failure where it cannot be written."""
    pieces: list[Any] = []
    try:
        frames.AnswerTexts().write(pieces, number, outcome, frames.FINAL, dict(parameters or {}))
    except Exception as error:
        pieces.clear()
        frames.AnswerTexts().write(pieces, number, fault(error), frames.FINAL)
    came = b"".join(pieces)
    _, read, _, found = AnswerReader().part(came, 0, len(came))
    return read, found


def payload_of(payload: Any) -> Payload:
    """Return a payload of a worker's as the server has it."""
    described, blobs = frames.payload_text(payload)
    return read_payload(frames.read(frames.text(described)), memoryview(b"".join(blobs)))


def payload_for(payload: RequestPayload) -> Any:
    """Return a payload of the server's as a worker has it."""
    described, blobs = payload_text(payload)
    return frames.read_payload(frames.read(frames.text(described)), memoryview(b"".join(blobs)))
