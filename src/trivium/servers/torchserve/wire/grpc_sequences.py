"""Reads the sequences of requests over TorchServe's gRPC, and answers those of a stream without ending it.

Source: spec sheet `torchserve`, section 7, and what 0.12.0 answers: an error of one request is a message with a status,
and so a call outlives it.
"""

from typing import Any

from trivium.codecs.grpc_status import writable
from trivium.servers.torchserve.wire.grpc_errors import refuse_inference, told_of_inference
from trivium.servers.torchserve.wire.grpc_messages import new
from trivium.servers.torchserve.wire.grpc_predictions import PartRpcEncoder, PredictionBytes
from trivium.servers.torchserve.words.layers import SequenceNames
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.operations import ResponsePart, SequenceRef
from trivium.types.payload import Payload, Raw
from trivium.types.wire import RpcAnswer, Target

_DETAIL = "type.googleapis.com/google.rpc.ErrorInfo"
_ENDS_CALL = frozenset({Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.DRAINING, Code.CANCELLED})


def sequence_of(request: Any, names: SequenceNames, is_stream: bool) -> SequenceRef | None:
    """Return the sequence that a request names. INVALID where it has to and does not: in a stream, unless it starts
    one, for which the server makes an id.
    """
    if not (is_stream or request.sequence_id):
        return None
    starts, ends = (_is_true(request.input.get(name, b"")) for name in (names.start, names.end))
    if request.sequence_id:
        return SequenceRef(request.sequence_id, starts, ends)
    if is_stream and not starts:
        raise ServeError(
            Code.INVALID,
            f"The request names no sequence. Set its sequence_id, or the input {names.start} to true for a new one.",
            info=ErrorInfo.of(reasons.NO_SEQUENCE, model=""),
        )
    return None


def _is_true(value: bytes) -> bool:
    return value.strip().lower() == b"true"


def refuse_in_stream(error: ServeError, target: Target, exact: bool, **names: str) -> RpcAnswer:
    """Return the message of an error that ends its request alone, with what names that; the end of the call where
    nobody may go on.
    """
    if error.code in _ENDS_CALL:
        return refuse_inference(error, target, exact)
    code, message, class_name = told_of_inference(error, target, exact)
    info = new("ErrorInfo", reason=class_name).SerializeToString()
    status = new("Status", code=code, message=writable(message))
    status.details.add(type_url=_DETAIL, value=info)
    return RpcAnswer(new("PredictionResponse", status=status, **names).SerializeToString())


class SequenceRpcEncoder(PartRpcEncoder):
    """Writes the answer to one request of a stream: a message for each part. Where the server made the sequence's id,
    which is what the header `shows` says then, the message has it, if the handler passes it on. Texts that a model
    generates at once come in turns: their messages have the id that the client gave, which is its `own`.
    """

    __slots__ = ("_own", "_shows")

    def __init__(
        self, target: Target, prediction: PredictionBytes, exact: bool, shows: str, own: str
    ) -> None:
        super().__init__(target, prediction, exact)
        self._shows = shows.lower()
        self._own = own

    def message(self, part: ResponsePart) -> RpcAnswer:
        """Return the message of a part; none for an empty last one behind others."""
        data = self._prediction.of(part)
        if data is None:
            return RpcAnswer(None, part.final)
        message = new("PredictionResponse", prediction=data, **self._names(part.payload))
        return RpcAnswer(message.SerializeToString(), part.final)

    def refused(self, error: ServeError) -> RpcAnswer:
        """Return the message of an error, which leaves the call open."""
        return refuse_in_stream(error, self._target, self._exact, **self._names())

    def _names(self, payload: Payload | None = None) -> dict[str, str]:
        if self._prediction.generates:
            return {"sequence_id": self._own} if self._own else {}
        if not self._shows or not isinstance(payload, Raw):
            return {}
        said = {name.lower(): value for name, value in payload.properties.items()}
        return {"sequence_id": said[self._shows]} if self._shows in said else {}
