"""The bytes of a prediction over TorchServe's gRPC."""

from trivium.codecs.conversion import negotiated
from trivium.types.errors import Code, ServeError
from trivium.types.operations import ResponsePart
from trivium.types.payload import Raw, Tensors


def bytes_of(part: ResponsePart) -> bytes:
    """Return the bytes of one part. UNSUPPORTED for text that a model generates."""
    payload = part.payload
    if payload is None:
        return b""
    if isinstance(payload, Raw):
        return bytes(payload.parts[0].data) if payload.parts else b""
    if isinstance(payload, Tensors):
        return b"".join(negotiated(payload, "", "", "application/json")[1])
    raise ServeError(
        Code.UNSUPPORTED, f"The model {part.model!r} generates text, which this RPC does not answer."
    )
