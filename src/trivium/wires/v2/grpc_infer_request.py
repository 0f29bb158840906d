"""Reads the bytes of a ModelInferRequest as an `Infer`.

Source: spec sheet `triton`, sections 5.2 and 5.3: of the inputs that are not in shared memory either all are raw
bytes beside the tensors, or all are contents within them. Knows no model: whether the inputs are those of the
model is the core's to judge.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from trivium.codecs import binary
from trivium.codecs.shapes import element_count, shape_of
from trivium.types.datatype import BY_NAME, DataType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, with_facts
from trivium.types.interfaces import RegionViews
from trivium.types.operations import Infer, WantedOutput
from trivium.types.payload import PayloadKind, Tensor, Tensors
from trivium.wires.v2 import grpc_contents, request_reasons
from trivium.wires.v2.infer_header import InputHeader, InputParameters, OutputHeader, OutputParameters
from trivium.wires.v2.large_messages import parse_large, weight
from trivium.wires.v2.parameters import read_parameters
from trivium.wires.v2.placement import RegionSlice, check_output, place_of, read
from trivium.wires.v2.service_messages import (
    InferRequestMessage,
    InputTensor,
    Parameter,
    RequestedOutput,
    parse_infer_request,
)

EMPTY_FINAL = "triton_enable_empty_final_response"
_LARGE_BYTES = 2**23
"""Bytes of values that one call may read: it takes a tenth of a second at most."""

MOST_TENSORS = 2**14
"""Inputs of one request, and outputs that it may ask for: each is looked at while others wait."""

_CHOICE = "parameter_choice"
_TENSORS = PayloadKind.TENSORS

Given = TypeVar("Given", InputParameters, OutputParameters)


class GrpcInfer(msgspec.Struct, frozen=True, gc=False):
    """An operation; `places`: the outputs that belong in shared memory; `tells_end`: an answer that ends without
    outputs shall be said to have ended.
    """

    operation: Infer
    places: Mapping[str, RegionSlice]
    tells_end: bool


def decode_infer(message: bytes, timeout: float | None, regions: RegionViews | None) -> GrpcInfer:
    """The request in this message, to be answered within `timeout` seconds. INVALID and what `regions` raises; with the
    facts of those, once its id is known.
    """
    if len(message) > _LARGE_BYTES and weight(message) > _LARGE_BYTES:
        request = parse_large(message)
    else:
        request = parse_infer_request(message)
    try:
        return _decoded(request, timeout, regions)
    except ServeError as error:
        raise of_request(error, request.id, request.model_name) from error


def of_request(error: ServeError, request_id: str, model: str) -> ServeError:
    """Return the refusal of a request that could be read far enough to know its id, by which a stream names it."""
    return with_facts(error, request_id=request_id, request_model=model)


def values_of(parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """Parameters as plain values. INVALID for one without a value."""
    values: dict[str, Any] = {}
    for key, parameter in parameters.items():
        choice = parameter.WhichOneof(_CHOICE)
        if choice is None:
            raise ServeError(
                Code.INVALID, f"The parameter {key!r} has no value. Set one of its fields, or leave it out."
            )
        values[key] = getattr(parameter, choice)
    return values


def _decoded(request: InferRequestMessage, timeout: float | None, regions: RegionViews | None) -> GrpcInfer:
    for what, count in (("inputs", len(request.inputs)), ("outputs", len(request.outputs))):
        if count > MOST_TENSORS:
            raise ServeError(
                Code.TOO_LARGE,
                f"The request names {count} {what}; at most {MOST_TENSORS} are read. Send fewer.",
            )
    given = values_of(request.parameters) if request.parameters else {}
    tells_end = given.pop(EMPTY_FINAL, False)
    if not isinstance(tells_end, bool):
        raise ServeError(Code.INVALID, f"The parameter {EMPTY_FINAL!r} is {tells_end!r}; set its bool_param.")
    parameters = read_parameters(given)
    wanted, places = _outputs(request.outputs) if request.outputs else ((), {})
    operation = Infer(
        request.model_name,
        Tensors(_tensors(request, regions)),
        request.model_version,
        request.id,
        wanted,
        parameters.own,
        parameters.priority,
        parameters.queue_timeout,
        timeout,
        parameters.sequence,
        _TENSORS,
    )
    return GrpcInfer(operation, places, tells_end)


def _tensors(request: InferRequestMessage, regions: RegionViews | None) -> tuple[Tensor, ...]:
    """Every input in order. What is left over of the raw contents is not looked at, as in the original."""
    raws = request.raw_input_contents
    held = len(raws)
    items: list[Tensor] = []
    index = 0
    for entry in request.inputs:
        name = entry.name
        datatype = BY_NAME.get(entry.datatype)
        if datatype is None:
            raise ServeError(
                Code.INVALID,
                f"Input {name!r} has the datatype {entry.datatype[:40]!r}; expected is one of {', '.join(BY_NAME)}.",
                info=ErrorInfo.of(request_reasons.UNKNOWN_DATATYPE, input=name),
            )
        shape = shape_of(name, entry.shape)
        if entry.parameters:
            parameters = _parameters(name, entry.parameters, InputParameters)
            place = place_of(name, parameters)
            if place is not None:
                items.append(_placed(entry, datatype, place, regions))
                continue
        if not held:
            items.append(_from_contents(entry, datatype, shape))
            continue
        if entry.HasField("contents"):
            raise ServeError(
                Code.INVALID,
                f"Input {name!r} has contents, and the request has raw_input_contents. Send all inputs in the one or "
                "all in the other.",
                info=ErrorInfo.of(request_reasons.CONTENTS_AND_RAW, input=name),
            )
        if index >= held:
            raise _no_data(name)
        items.append(binary.decode(name, datatype, shape, raws[index]))
        index += 1
    return tuple(items)


def _from_contents(entry: InputTensor, datatype: DataType, shape: tuple[int, ...]) -> Tensor:
    if entry.HasField("contents"):
        return grpc_contents.decode(entry.name, datatype, shape, entry.contents)
    if element_count(entry.name, shape):
        raise _no_data(entry.name)
    return binary.decode(entry.name, datatype, shape, b"")


def _placed(
    entry: InputTensor, datatype: DataType, place: RegionSlice, regions: RegionViews | None
) -> Tensor:
    if entry.HasField("contents"):
        raise ServeError(
            Code.INVALID, f"Input {entry.name!r} has contents and shared_memory_region. Give one of them."
        )
    return read(InputHeader(entry.name, shape_of(entry.name, entry.shape), datatype), place, regions)


def _outputs(
    outputs: Sequence[RequestedOutput],
) -> tuple[tuple[WantedOutput, ...], Mapping[str, RegionSlice]]:
    wanted: list[WantedOutput] = []
    places: dict[str, RegionSlice] = {}
    for output in outputs:
        name = output.name
        if not output.parameters:
            wanted.append(WantedOutput(name))
            continue
        parameters = _parameters(name, output.parameters, OutputParameters)
        place = place_of(name, parameters)
        if place is not None:
            check_output(OutputHeader(name, parameters))
            places[name] = place
        wanted.append(WantedOutput(name, parameters.classification))
    return tuple(wanted), places


def _parameters(name: str, given: Mapping[str, Parameter], kind: type[Given]) -> Given:
    """Those of one tensor. How it is written in JSON or not means nothing here."""
    values = {key: value for key, value in values_of(given).items() if not key.startswith("binary_data")}
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise ServeError(
            Code.INVALID,
            f"The parameters of {name!r} do not fit: {error}. Correct their types.",
            info=ErrorInfo.of(
                request_reasons.PARAMETER, key=str(error).rpartition("$.")[2].rstrip("`"), expected="integer"
            ),
        ) from error


def _no_data(name: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"There is no data for input {name!r}: neither an entry of raw_input_contents nor contents of its own. Send "
        "one of them.",
        info=ErrorInfo.of(request_reasons.NO_DATA, input=name),
    )
