"""The answers to predictions over TorchServe's gRPC, as far as all RPCs that predict have them in common."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

import msgspec

from trivium.codecs.conversion import is_slow_to_write, negotiated
from trivium.servers.torchserve.wire.generate_request import read_request
from trivium.servers.torchserve.wire.generated_text import end_of, text_of
from trivium.servers.torchserve.wire.openai_paths import asks_as_openai
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.generation import Generate
from trivium.types.operations import ResponsePart
from trivium.types.payload import Raw, Tensors
from trivium.types.wire import RpcAnswer, Target, costly_rpc


class PredictionBytes:
    """Makes the bytes of the parts of one prediction. Of a model that generates they are text, which `streams` or is
    one part; the inputs with the names of `others` are not for it.
    """

    __slots__ = ("_end", "_has_begun", "_others", "_streams")

    def __init__(self, streams: bool, others: Collection[str] = ()) -> None:
        self._streams = streams
        self._others = others
        self._end: bytes | None = None
        self._has_begun = False

    @property
    def generates(self) -> bool:
        """Is it a model that generates? Known once the request has been read."""
        return self._end is not None

    def read(self, raw: Raw, parameters: Mapping[str, str]) -> Generate:
        """Read the inputs for a model that generates: as the fields of a form, or JSON. INVALID, naming the field."""
        if asks_as_openai(parameters):
            words = "The model is asked as OpenAI's API is, which gRPC does not carry. Ask it over HTTP."
            raise ServeError(Code.UNSUPPORTED, words)
        self._end = end_of(parameters)
        fields = tuple(part for part in raw.parts if part.name not in self._others)
        return read_request(msgspec.structs.replace(raw, parts=fields), parameters, self._streams)

    def of(self, part: ResponsePart) -> bytes | None:
        """Return the bytes of one part without an error; None for an empty last one behind others, and for no text."""
        is_first, self._has_begun = not self._has_begun, True
        payload = part.payload
        if self._end is not None:
            return text_of(part, self._end) or None
        if payload is None:
            return b"" if is_first else None
        if isinstance(payload, Raw):
            return bytes(payload.parts[0].data) if payload.parts else b""
        if isinstance(payload, Tensors):
            return b"".join(negotiated(payload, "", "", "application/json")[1])
        raise ServeError(
            Code.UNSUPPORTED, f"The model {part.model!r} generates text, which this RPC does not answer."
        )


class PartRpcEncoder(ABC):
    """Implements `RpcEncoder`: a step for each part of an answer to the `target`. It never raises."""

    __slots__ = ("_exact", "_prediction", "_target")

    def __init__(self, target: Target, prediction: PredictionBytes, exact: bool) -> None:
        self._target = target
        self._prediction = prediction
        self._exact = exact

    def encode(self, part: ResponsePart) -> RpcAnswer:
        """Return the step of a part, or one that is made where nobody waits."""
        if is_slow_to_write(part.payload):
            return costly_rpc(lambda: self._written(part))
        return self._written(part)

    def _written(self, part: ResponsePart) -> RpcAnswer:
        try:
            return self.message(part) if part.error is None else self.refused(part.error)
        except Exception as error:
            return self.refused(unwritable(error))

    @abstractmethod
    def message(self, part: ResponsePart) -> RpcAnswer:
        """Return the step of a part that is no error. Whatever it raises is refused."""

    @abstractmethod
    def refused(self, error: ServeError) -> RpcAnswer:
        """Return the step of an error."""
