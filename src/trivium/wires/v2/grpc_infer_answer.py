"""Writes a part of an answer as a ModelInferResponse, alone or within a stream.

Source: spec sheet `triton`, sections 5.3 and 5.4: outputs are always raw bytes; a response of a stream says
whether it is the last one of its request, and an error of one request leaves the stream open.
"""

from collections.abc import Mapping

import msgspec

from trivium.codecs import binary
from trivium.codecs.grpc_status import writable
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.interfaces import RegionViews
from trivium.types.operations import ResponsePart
from trivium.types.payload import PackedTensor, Payload, Scalar, Tensor, Tensors
from trivium.types.wire import RpcAnswer, costly_rpc
from trivium.wires.v2.grpc_errors import refuse
from trivium.wires.v2.placement import RegionSlice, write
from trivium.wires.v2.service_messages import (
    InferResponse,
    Parameter,
    new_infer_response,
    new_stream_response,
)
from trivium.wires.v2.words import OWN_RPC_ERRORS, RpcErrorTranslator

FINAL = "triton_final_response"
_MOST_INT64 = 2**63 - 1
LARGE = 2**22
"""Bytes of tensors beyond which a message is rather written elsewhere than on the loop."""


class Layout(msgspec.Struct, frozen=True, gc=False):
    """The parts of an answer that its request decides: the id, and the outputs that belong in shared memory."""

    id: str
    places: Mapping[str, RegionSlice] = {}
    regions: RegionViews | None = None
    words: RpcErrorTranslator = OWN_RPC_ERRORS


class UnaryEncoder(msgspec.Struct, frozen=True, gc=False):
    """Writes the answer to one ModelInfer."""

    layout: Layout

    def encode(self, part: ResponsePart) -> RpcAnswer:
        """The whole answer. What cannot be written becomes an error, as does an answer in several parts."""
        if part.error is not None:
            return self._refused(part, part.error)
        if part.final and _is_large(part.payload):
            return costly_rpc(lambda: self._written(part))
        return self._written(part)

    def _written(self, part: ResponsePart) -> RpcAnswer:
        try:
            if not part.final or part.payload is None:
                raise _not_one(part)
            response = new_infer_response()
            _fill(response, self.layout, part)
            return RpcAnswer(response.SerializeToString())
        except Exception as error:  # an encoder never raises; the text says whose fault this is
            return self._refused(part, unwritable(error))

    def _refused(self, part: ResponsePart, error: ServeError) -> RpcAnswer:
        return refuse(self.layout.words.told(error, "ModelInfer", part.model, self.layout.id))


class StreamEncoder(msgspec.Struct, frozen=True, gc=False):
    """Writes the answer to one request of a ModelStreamInfer. `ends_stream`: its client wants an error to be the
    status of the whole call.
    """

    layout: Layout
    tells_end: bool
    ends_stream: bool

    def encode(self, part: ResponsePart) -> RpcAnswer:
        """One response; nothing at the end of an answer that has no further outputs, unless that was asked for."""
        if part.error is not None:
            return self._refused(part, part.error)
        if _is_large(part.payload):
            return costly_rpc(lambda: self._written(part))
        return self._written(part)

    def _written(self, part: ResponsePart) -> RpcAnswer:
        try:
            if part.payload is None and not (self.tells_end and part.final):
                return RpcAnswer(final=part.final)
            response = new_stream_response()
            inner = response.infer_response
            _fill(inner, self.layout, part)
            _put(inner.parameters, FINAL, part.final)
            return RpcAnswer(response.SerializeToString(), part.final)
        except Exception as error:  # as above
            return self._refused(part, unwritable(error))

    def _refused(self, part: ResponsePart, error: ServeError) -> RpcAnswer:
        words = self.layout.words
        told = words.told(error, "ModelStreamInfer", part.model, self.layout.id)
        if self.ends_stream:
            return refuse(told)
        return refuse_in_stream(told, self.layout.id, part.model if words.blames_model(error) else "")


def refuse_in_stream(error: ServeError, request_id: str, model: str = "") -> RpcAnswer:
    """An error of one request as a response, after which the stream goes on. `model`: the one that failed at it."""
    response = new_stream_response()
    response.error_message = writable(error.message)
    inner = response.infer_response
    inner.id = request_id
    if model:
        inner.model_name = _text(model)
        _put(inner.parameters, FINAL, True)
    return RpcAnswer(response.SerializeToString())


def _fill(response: InferResponse, layout: Layout, part: ResponsePart) -> None:
    payload = part.payload
    response.model_name = part.model
    response.id = layout.id
    if payload is None:
        return
    if not isinstance(payload, Tensors):
        raise _not_tensors(part)
    response.model_version = part.version
    for key, value in part.parameters.items():
        _put(response.parameters, key, value)
    outputs, raws = response.outputs, response.raw_output_contents
    for tensor in payload.items:
        output = outputs.add()
        output.name = tensor.name
        output.datatype = tensor.datatype.wire
        output.shape.extend(tensor.shape)
        place = layout.places.get(tensor.name)
        if place is not None:
            _put(output.parameters, "shared_memory_region", place.region)
            _put(output.parameters, "shared_memory_byte_size", write(tensor, place, layout.regions))
            if place.offset:
                _put(output.parameters, "shared_memory_offset", place.offset)
            raws.append(b"")  # entries pair with the outputs, whether they are here or there
            continue
        blob = binary.encode(tensor)
        raws.append(blob if isinstance(blob, bytes) else bytes(blob))


def _is_large(payload: Payload | None) -> bool:
    """Would writing it keep others waiting? Its bytes are copied twice. False for what cannot be written at all."""
    try:
        return isinstance(payload, Tensors) and sum(map(_size, payload.items)) > LARGE
    except AttributeError:
        return False


def _size(tensor: Tensor) -> int:
    return tensor.size if type(tensor) is PackedTensor else tensor.array.nbytes


def _put(parameters: Mapping[str, Parameter], key: str, value: Scalar) -> None:
    """Reading a key that is not there makes it, in a map of messages."""
    parameter = parameters[key]
    if isinstance(value, bool):
        field = "bool_param"
    elif isinstance(value, int):
        field = "int64_param" if value <= _MOST_INT64 else "uint64_param"
    else:
        field = "double_param" if isinstance(value, float) else "string_param"
    setattr(parameter, field, value)


def _text(text: str) -> str:
    """A message holds UTF-8 only."""
    return text.encode("utf-8", "backslashreplace").decode()


def _not_one(part: ResponsePart) -> ServeError:
    if part.final:
        return ServeError(
            Code.MODEL_FAILED,
            f"The model {part.model!r} ended the request without an answer. It must return its outputs, or be called "
            "by ModelStreamInfer.",
        )
    return ServeError(
        Code.UNSUPPORTED,
        f"The model {part.model!r} answers in several parts, and the ModelInfer RPC doesn't support models with "
        "decoupled transaction policy. Call ModelStreamInfer.",
        info=ErrorInfo.of(reasons.SEVERAL_PARTS, model=part.model),
    )


def _not_tensors(part: ResponsePart) -> ServeError:
    return ServeError(
        Code.UNSUPPORTED,
        f"The model {part.model!r} answered with something that cannot be made tensors, and the v2 protocol carries "
        "nothing else. Use the protocol that its handler was written for.",
    )
