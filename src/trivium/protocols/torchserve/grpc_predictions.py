"""The answers to predictions over TorchServe's gRPC, as far as all RPCs that predict have them in common."""

from abc import ABC, abstractmethod

from trivium.codecs.conversion import is_slow_to_write, negotiated
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.operations import ResponsePart
from trivium.types.payload import Raw, Tensors
from trivium.types.wire import RpcAnswer, costly_rpc


class PartRpcEncoder(ABC):
    """Implements `RpcEncoder`: a step for each part of an answer. It never raises."""

    __slots__ = ("_has_begun",)

    def __init__(self) -> None:
        self._has_begun = False

    def encode(self, part: ResponsePart) -> RpcAnswer:
        """Return the step of a part, or one that is made where nobody waits."""
        if is_slow_to_write(part.payload):
            return costly_rpc(lambda: self._written(part))
        return self._written(part)

    def _written(self, part: ResponsePart) -> RpcAnswer:
        try:
            if part.error is not None:
                return self.refused(part.error)
            is_first, self._has_begun = not self._has_begun, True
            return self.message(part, is_first)
        except Exception as error:
            return self.refused(unwritable(error))

    @abstractmethod
    def message(self, part: ResponsePart, is_first: bool) -> RpcAnswer:
        """Return the step of a part that is no error. Whatever it raises is refused."""

    @abstractmethod
    def refused(self, error: ServeError) -> RpcAnswer:
        """Return the step of an error."""


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
