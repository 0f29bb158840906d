"""Writes a part of an answer as the bytes of an infer response: JSON, or JSON and blobs behind it.

Source: the Open Inference Protocol v2 and its binary tensor data extension (spec sheet `triton`, sections
4.3 and 4.6): key order, no `id` where none was given, flat data, blobs in the order of the outputs.
"""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Raw, UnsetType

from trivium.codecs import binary, jsontensors
from trivium.codecs.binary import Buffer
from trivium.codecs.memo import Memo
from trivium.types import reasons
from trivium.types.datatype import DataType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.interfaces import RegionViews
from trivium.types.operations import ResponsePart
from trivium.types.payload import COPIED, PackedTensor, Scalar, Tensor, Tensors
from trivium.types.wire import HttpAnswer, costly
from trivium.wires.v2.errors import json_answer, refuse
from trivium.wires.v2.placement import Form, RegionSlice, write
from trivium.wires.v2.routes import Verb
from trivium.wires.v2.words import OWN_ERRORS, ErrorTranslator


class BinarySize(msgspec.Struct, frozen=True, gc=False):
    """Says how many bytes of an answer are those of an output, behind its JSON."""

    binary_data_size: int


class OutputAnswer(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One output: its data as a flat list, or else what says where it is."""

    name: str
    datatype: DataType
    shape: tuple[int, ...]
    parameters: BinarySize | UnsetType = UNSET
    data: Raw | UnsetType = UNSET


class InferAnswer(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """The answer to an infer request."""

    id: str = ""
    model_name: str
    model_version: str
    parameters: Mapping[str, Scalar] = {}
    outputs: list[OutputAnswer]


_Key = tuple[str, str, str, str, tuple[int, ...], int]
_ENCODER = msgspec.json.Encoder()
_BINARY_FIELDS = b"Content-Type: application/octet-stream\r\nInference-Header-Content-Length: %d\r\n"


class KnownAnswers(Memo[_Key, tuple[bytes, bytes]]):
    """Bounded memory of header lines and JSON of answers, by all that they depend on.

    Only answers of one binary output and nothing of the request's own (no id, no parameters) are kept.
    """

    MOST = 512

    def __init__(self) -> None:
        super().__init__(self.MOST)


class InferEncoder(msgspec.Struct, frozen=True, gc=False):
    """Writes the answer to one infer request: the outputs it asked for, each in the form it asked for."""

    id: str
    forms: Mapping[str, Form]
    binary_output: bool
    known: KnownAnswers
    regions: RegionViews | None = None
    words: ErrorTranslator = OWN_ERRORS

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer. What cannot be written becomes an error, as does an answer in several parts."""
        if part.error is not None:
            return self._refusal(part.error, part)
        try:
            payload = part.payload
            if not isinstance(payload, Tensors) or not part.final:
                raise _not_tensors(part)
            if (
                self.binary_output
                and len(payload.items) == 1
                and not (self.forms or self.id or part.parameters)
            ):
                return self._plain_answer(part, payload.items[0])
            if not self.binary_output or self.forms:
                for tensor in payload.items:
                    if self._form(tensor.name) is False and jsontensors.is_large(tensor):
                        return costly(lambda: self._written(part, payload))
            return self._whole_answer(part, payload)
        except Exception as error:
            return self._refusal(unwritable(error), part)

    def _written(self, part: ResponsePart, payload: Tensors) -> HttpAnswer:
        try:
            return self._whole_answer(part, payload)
        except Exception as error:
            return self._refusal(unwritable(error), part)

    def _refusal(self, error: ServeError, part: ResponsePart) -> HttpAnswer:
        return refuse(self.words.of_answer(error, Verb.INFER, part.model, self.id))

    def _plain_answer(self, part: ResponsePart, tensor: Tensor) -> HttpAnswer:
        if type(tensor) is PackedTensor:
            blob = tensor.packed()
        else:
            array = tensor.array
            is_small = array.nbytes <= COPIED and tensor.datatype.itemsize
            blob = array.tobytes() if is_small else binary.encode(tensor)
        size = len(blob)
        key = part.model, part.version, tensor.name, tensor.datatype.wire, tensor.shape, size
        head = self.known.get(key)
        if head is None:
            text = self._text(part, [_described(tensor, BinarySize(size), UNSET)])
            head = _BINARY_FIELDS % len(text), text
            self.known.keep(key, head)
        fields, text = head
        return HttpAnswer(200, fields, (text, blob), len(text) + size)

    def _whole_answer(self, part: ResponsePart, payload: Tensors) -> HttpAnswer:
        outputs: list[OutputAnswer] = []
        large: dict[int, list[bytes]] = {}
        blobs: list[Buffer] = []
        size = 0
        for tensor in payload.items:
            form = self._form(tensor.name)
            if form is None:
                continue
            if isinstance(form, RegionSlice):
                # Nothing is said of the place: NVIDIA's C++ clients read no output whose parameters lack a binary size.
                write(tensor, form, self.regions)
                outputs.append(_described(tensor, UNSET, UNSET))
            elif form:
                blob = binary.encode(tensor)
                blobs.append(blob)
                size += len(blob)
                outputs.append(_described(tensor, BinarySize(len(blob)), UNSET))
            elif jsontensors.is_large(tensor):
                large[len(outputs)] = list(jsontensors.encode_in_pieces(tensor))
                outputs.append(_described(tensor, UNSET, UNSET))
            else:
                outputs.append(_described(tensor, UNSET, Raw(jsontensors.encode(tensor))))
        if large:
            return _large_answer(self._text(part, []), outputs, large, blobs)
        text = self._text(part, outputs)
        if not blobs:
            return json_answer(200, text)
        return HttpAnswer(200, _BINARY_FIELDS % len(text), (text, *blobs), len(text) + size)

    def _text(self, part: ResponsePart, outputs: list[OutputAnswer]) -> bytes:
        return _ENCODER.encode(
            InferAnswer(
                id=self.id,
                model_name=part.model,
                model_version=part.version,
                parameters=part.parameters,
                outputs=outputs,
            )
        )

    def _form(self, name: str) -> Form | None:
        """Binary or not, or where; None for an output that was not asked for."""
        return self.forms.get(name) if self.forms else self.binary_output


def _large_answer(
    frame: bytes, outputs: list[OutputAnswer], large: Mapping[int, list[bytes]], blobs: list[Buffer]
) -> HttpAnswer:
    """An answer without its `outputs` is `frame`; the data of some are in pieces, which are sent as they are."""
    text: list[Buffer] = [frame.removesuffix(b"]}")]
    for index, output in enumerate(outputs):
        if index:
            text.append(b",")
        described = _ENCODER.encode(output)
        if index in large:
            text += (described.removesuffix(b"}"), b',"data":', *large[index], b"}")
        else:
            text.append(described)
    text.append(b"]}")
    length = sum(map(len, text))
    fields = _BINARY_FIELDS % length if blobs else b"Content-Type: application/json\r\n"
    return HttpAnswer(200, fields, (*text, *blobs), length + sum(map(len, blobs)))


def _described(tensor: Tensor, parameters: BinarySize | UnsetType, data: Raw | UnsetType) -> OutputAnswer:
    return OutputAnswer(tensor.name, tensor.datatype, tensor.shape, parameters, data)


def _not_tensors(part: ResponsePart) -> ServeError:
    if part.payload is None and part.answer is None:
        return ServeError(
            Code.MODEL_FAILED,
            f"The model {part.model!r} ended the request without an answer. It must return its outputs.",
        )
    if not part.final:
        return ServeError(
            Code.UNSUPPORTED,
            f"The model {part.model!r} answers in several parts, and this route answers once. "
            "Use a route that streams.",
            info=ErrorInfo.of(reasons.SEVERAL_PARTS, model=part.model),
        )
    return ServeError(
        Code.UNSUPPORTED,
        f"The model {part.model!r} answered with something that cannot be made tensors, and the v2 protocol carries "
        "nothing else. Use the protocol that its handler was written for.",
    )
