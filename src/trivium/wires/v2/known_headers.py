"""Headers of infer requests seen before, byte for byte, so that a client which repeats one is not parsed again.

A client of a model mostly sends the same JSON in front of other blobs. What a header means depends on its bytes
alone; whatever is unusual (an id, data in JSON) is not kept. Decides nothing and refuses nothing.
"""

from collections.abc import Callable, Mapping

import msgspec

from trivium.codecs.memo import Memo
from trivium.types.datatype import DataType
from trivium.types.interfaces import Encoder
from trivium.types.operations import Infer, SequenceRef, WantedOutput
from trivium.types.payload import NOT_MADE, PackedTensor, PayloadKind, Scalar, Tensor, Tensors
from trivium.types.wire import Body, Target
from trivium.wires.v2.infer_header import InferHeader
from trivium.wires.v2.parameters import RequestParameters
from trivium.wires.v2.placement import Form

LONGEST = 2048
MOST = 512
_TENSORS = PayloadKind.TENSORS
_VIEWED = frozenset(DataType) - {DataType.BYTES, DataType.BOOL}
"""Datatypes of which any bytes are a tensor."""


class KnownInput(msgspec.Struct, frozen=True, gc=False):
    """One input, its blob of `size` bytes `offset` bytes behind the header."""

    name: str
    datatype: DataType
    shape: tuple[int, ...]
    offset: int
    size: int


class Meaning(msgspec.Struct, frozen=True, gc=False):
    """The meaning of a header apart from its inputs."""

    id: str
    outputs: tuple[WantedOutput, ...]
    forms: dict[str, Form]
    parameters: RequestParameters


EncoderOf = Callable[[Meaning], Encoder]


class KnownHeader(msgspec.Struct, frozen=True, gc=False):
    """Everything that a header of `size` bytes says, and who writes the answer; `blob_bytes` follow it."""

    inputs: tuple[KnownInput, ...]
    size: int
    blob_bytes: int
    outputs: tuple[WantedOutput, ...]
    parameters: Mapping[str, Scalar]
    priority: int
    queue_timeout: float | None
    sequence: SequenceRef | None
    encoder: Encoder

    def operation(self, target: Target, body: Body) -> Infer:
        """The request in a body that begins with this header, with all its blobs."""
        data, size = body.data, self.size
        items: list[Tensor] = []
        for entry in self.inputs:  # no comprehension: until Python 3.12 it costs a call
            at = size + entry.offset
            items.append(
                PackedTensor(entry.name, entry.datatype, entry.shape, NOT_MADE, data, at, entry.size)
            )
        return Infer(
            target.model,
            Tensors(tuple(items), body.lease, size),
            target.version,
            "",
            self.outputs,
            self.parameters,
            self.priority,
            self.queue_timeout,
            None,
            self.sequence,
            _TENSORS,
        )


class KnownHeaders:
    """Bounded memory of headers, used by several threads. `encoder_of` makes the encoder of a header, once."""

    def __init__(self, encoder_of: EncoderOf) -> None:
        self._encoder_of = encoder_of
        self._headers: Memo[bytes, KnownHeader] = Memo(MOST)
        self.get = self._headers.get

    def keep(self, text: bytes, header: InferHeader, meaning: Meaning) -> None:
        """Remember a header that was found right, with its blobs, if it is of the kind that comes again."""
        if header.id or len(text) > LONGEST:
            return
        inputs: list[KnownInput] = []
        offset = 0
        for entry in header.inputs:
            size = entry.parameters.binary_data_size
            if not isinstance(size, int) or entry.datatype not in _VIEWED:
                return
            inputs.append(KnownInput(entry.name, entry.datatype, entry.shape, offset, size))
            offset += size
        said = meaning.parameters
        known = KnownHeader(
            tuple(inputs),
            len(text),
            offset,
            meaning.outputs,
            said.own,
            said.priority,
            said.queue_timeout,
            said.sequence,
            self._encoder_of(meaning),
        )
        self._headers.keep(text, known)
