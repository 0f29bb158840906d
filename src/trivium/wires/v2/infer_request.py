"""Reads the bytes of an infer request as an `Infer`: the JSON header, and blobs behind it.

Source: the Open Inference Protocol v2 and its binary tensor data extension (spec sheet `triton`, sections
4.3 and 4.6). On the path of every request: nothing is copied or formatted unless it refuses. Knows no
model: whether the inputs are those of the model is the core's to judge.
"""

from collections.abc import Sequence

from msgspec import UNSET, Struct

from trivium.codecs import binary, jsontensors
from trivium.codecs.binary import Buffer
from trivium.codecs.memo import Memo
from trivium.codecs.shapes import element_count
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import RegionViews
from trivium.types.operations import Infer, WantedOutput
from trivium.types.payload import PayloadKind, Raw, RawForm, RawPart, Tensor, Tensors
from trivium.types.wire import Body, Head, Target
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.infer_header import (
    InferHeader,
    InputHeader,
    OutputHeader,
    decode_header,
)
from trivium.wires.v2.known_headers import KnownHeaders, Meaning
from trivium.wires.v2.parameters import read_parameters
from trivium.wires.v2.placement import Form, check_output, place_of, read

_TWICE = {"input": reasons.INPUT_TWICE, "output": request_reasons.OUTPUT_TWICE}
HEADER_LENGTH = b"inference-header-content-length"
_TENSORS = PayloadKind.TENSORS
_MOST_LENGTHS = 512
_LONGEST_LENGTH = 18  # digits: no body is longer, and int() takes no time over it


class InferRequest(Struct, frozen=True, gc=False):
    """An operation, and how its answer is to be written: `forms` says of each output asked for whether in
    binary, or where; where none is named, `binary_output` says so of all.
    """

    operation: Infer
    forms: dict[str, Form]
    binary_output: bool


def decode_infer(
    head: Head, target: Target, body: Body, known: KnownHeaders | None, regions: RegionViews | None = None
) -> InferRequest:
    """The request in this body, which has been unpacked, and whose tensors view it; its header is kept for the next
    that begins with it. Raises INVALID, and what `regions` raises for what is in there.
    """
    data = body.data
    length = header_length(head)
    if length is None and data:
        return _decode(data, target, body, None, regions)
    if not length:
        return _bare(target, body)
    _judge_length(length, len(data))
    return _decode(bytes(data[:length]), target, body, known, regions)


def _decode(
    text: Buffer, target: Target, body: Body, known: KnownHeaders | None, regions: RegionViews | None
) -> InferRequest:
    """The body begins with `text`, which is JSON."""
    header = decode_header(text)
    items = _tensors(header, body.data, len(text), regions)
    parameters = read_parameters(header.parameters)
    outputs = tuple(
        [WantedOutput(output.name, output.parameters.classification) for output in header.outputs]
    )
    forms = _forms(header.outputs, parameters.binary_output) if header.outputs else {}
    meaning = Meaning(header.id, outputs, forms, parameters)
    if known is not None:
        known.keep(bytes(text), header, meaning)
    return _request(items, target, body, meaning)


def _bare(target: Target, body: Body) -> InferRequest:
    """A body without a header: the data of the model's only input, which the core's door knows."""
    payload = Raw((RawPart(body.data, "application/octet-stream"),), lease=body.lease, form=RawForm.TENSOR)
    return InferRequest(Infer(target.model, payload, target.version, wants=_TENSORS), {}, True)


def _request(items: tuple[Tensor, ...], target: Target, body: Body, meaning: Meaning) -> InferRequest:
    parameters = meaning.parameters
    operation = Infer(
        target.model,
        Tensors(items, body.lease),
        target.version,
        meaning.id,
        meaning.outputs,
        parameters.own,
        parameters.priority,
        parameters.queue_timeout,
        None,
        parameters.sequence,
        _TENSORS,
    )
    return InferRequest(operation, meaning.forms, parameters.binary_output)


def header_length(head: Head) -> int | None:
    """The length in bytes of the JSON that blobs follow; None if the whole body is JSON."""
    value = head.headers.get(HEADER_LENGTH)
    return None if value is None else parsed_length(value)


def said_length(head: Head) -> int | None:
    """`header_length`, but None as well for what `decode_infer` will refuse."""
    value = head.headers.get(HEADER_LENGTH, b"")
    return int(value) if _is_length(value) else None


def json_of(head: Head, body: Body) -> Buffer:
    """Return the JSON of a body, for a second look at one that was refused."""
    return body.data[: said_length(head)]


_lengths: Memo[bytes, int] = Memo(_MOST_LENGTHS)
"""Header fields that came before, and their values."""


def parsed_length(value: bytes) -> int:
    """Return the length that the header field gives. INVALID where that is no length."""
    known = _lengths.get(value)
    if known is not None:
        return known
    if not _is_length(value):
        raise ServeError(
            Code.INVALID,
            f"The header Inference-Header-Content-Length is {value[:40].decode('latin-1')!r}; expected is "
            "the length in bytes of the JSON that the body begins with, in digits.",
            info=ErrorInfo.of(request_reasons.HEADER_LENGTH, found=value[:40].decode("latin-1")),
        )
    length = int(value)
    _lengths.keep(value, length)
    return length


def _is_length(value: bytes) -> bool:
    return value.isdigit() and len(value) <= _LONGEST_LENGTH


def _judge_length(length: int, size: int) -> None:
    if length > size:
        raise ServeError(
            Code.INVALID,
            f"The header Inference-Header-Content-Length is {length}, but the body has only {size} bytes. "
            "Give the length of the JSON alone.",
            info=ErrorInfo.of(request_reasons.HEADER_LENGTH, found=length),
        )


def _tensors(
    header: InferHeader, data: Buffer, offset: int, regions: RegionViews | None
) -> tuple[Tensor, ...]:
    """Every input in order; the blobs, from `offset` on, are used up exactly."""
    items: list[Tensor] = []
    size = len(data)
    for entry in header.inputs:
        blob = entry.parameters.binary_data_size
        place = place_of(entry.name, entry.parameters)
        if place is not None:
            items.append(read(entry, place, regions))
            continue
        if blob is UNSET:
            items.append(_from_json(entry))
            continue
        if entry.data:
            raise _both_data(entry.name)
        if blob > size - offset:
            raise ServeError(
                Code.INVALID,
                f"Input {entry.name!r} has binary_data_size {blob}, but {size - offset} bytes are left for "
                "it. Send all data, and the length of the JSON in Inference-Header-Content-Length.",
                info=ErrorInfo.of(
                    request_reasons.SHORT_BLOB, input=entry.name, lacking=blob - (size - offset)
                ),
            )
        items.append(binary.decode(entry.name, entry.datatype, entry.shape, data, offset, blob))
        offset += blob
    if offset != size:
        raise ServeError(
            Code.INVALID,
            f"The body has {size} bytes, but its JSON and the binary_data_size of its inputs make {offset}: "
            f"{size - offset} are left over. Declare the data of every input.",
            info=ErrorInfo.of(request_reasons.LEFT_OVER),
        )
    if len(items) > 1:
        _refuse_twins("input", [tensor.name for tensor in items])
    return tuple(items)


def _from_json(entry: InputHeader) -> Tensor:
    if entry.data:
        return jsontensors.decode(entry.name, entry.datatype, entry.shape, entry.data)
    if element_count(entry.name, entry.shape):
        raise _no_data(entry.name)
    return binary.decode(entry.name, entry.datatype, entry.shape, b"")


def _forms(outputs: Sequence[OutputHeader], in_binary: bool) -> dict[str, Form]:
    _refuse_twins("output", [output.name for output in outputs])
    return {output.name: _form(output, in_binary) for output in outputs}


def _form(output: OutputHeader, in_binary: bool) -> Form:
    place = place_of(output.name, output.parameters)
    if place is not None:
        check_output(output)
        return place
    wish = output.parameters.binary_data
    return in_binary if wish is UNSET else wish


def _refuse_twins(kind: str, names: list[str]) -> None:
    if len(set(names)) == len(names):
        return
    twin = next(name for index, name in enumerate(names) if name in names[:index])
    raise ServeError(
        Code.INVALID,
        f"The {kind} {twin!r} is given more than once. Give each {kind} once.",
        info=ErrorInfo.of(_TWICE[kind], **{kind: twin}),
    )


def _no_data(name: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"Input {name!r} has neither of data and the parameter binary_data_size. Give exactly one of them.",
        info=ErrorInfo.of(request_reasons.NO_DATA, input=name),
    )


def _both_data(name: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"Input {name!r} has both of data and the parameter binary_data_size. Give exactly one of them.",
        info=ErrorInfo.of(request_reasons.SEVERAL_DATA, input=name, fields=("data", "binary_data_size")),
    )
