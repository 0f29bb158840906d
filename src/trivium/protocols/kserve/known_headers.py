"""Headers of infer requests seen before, byte for byte, so that a client which repeats one is not parsed again.

A client of a model mostly sends the same JSON in front of other blobs. What a header means depends on its bytes
alone; whatever is unusual (an id, data in JSON) is not kept. Decides nothing and refuses nothing.
"""

import msgspec

from trivium.protocols.kserve.infer_header import InferHeader
from trivium.protocols.kserve.parameters import RequestParameters
from trivium.protocols.kserve.placement import Form
from trivium.types.datatype import DataType
from trivium.types.operations import WantedOutput

LONGEST = 2048
MOST = 512
_VIEWED = frozenset(DataType) - {DataType.BYTES, DataType.BOOL}
"""Datatypes of which any bytes are a tensor."""


class KnownInput(msgspec.Struct, frozen=True, gc=False):
    """One input, its blob `offset` bytes behind the header."""

    name: str
    datatype: DataType
    shape: tuple[int, ...]
    offset: int


class Meaning(msgspec.Struct, frozen=True, gc=False):
    """What a header says beside its inputs."""

    id: str
    outputs: tuple[WantedOutput, ...]
    forms: dict[str, Form]
    parameters: RequestParameters


class KnownHeader(msgspec.Struct, frozen=True, gc=False):
    """Everything that a header says; `blob_bytes` follow it."""

    inputs: tuple[KnownInput, ...]
    blob_bytes: int
    meaning: Meaning


class KnownHeaders:
    """A bounded memory; when it is full it is emptied. Used by several threads: its single steps are atomic."""

    def __init__(self) -> None:
        self._headers: dict[bytes, KnownHeader] = {}
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
            inputs.append(KnownInput(entry.name, entry.datatype, entry.shape, offset))
            offset += size
        if len(self._headers) >= MOST:
            self._headers.clear()
        self._headers[text] = KnownHeader(tuple(inputs), offset, meaning)
