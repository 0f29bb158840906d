"""The bytes of a prediction over TorchServe's gRPC."""

from collections.abc import Collection, Mapping

import msgspec

from trivium.codecs.conversion import negotiated
from trivium.protocols.torchserve.generate_request import read_request
from trivium.protocols.torchserve.generated_text import end_of, text_of
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Generate
from trivium.types.operations import ResponsePart
from trivium.types.payload import Raw, Tensors


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
