"""Statuses of TorchServe's gRPC services: for each error a number, the original's text and the class that it names.

Source: spec sheet `torchserve`, section 7, and what 0.12.0 answers: a second line has the name of an exception.
"""

from collections.abc import Mapping

from trivium.codecs import grpc_status
from trivium.codecs.grpc_status import writable
from trivium.servers.torchserve.wire.errors import refusal_of
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.wire import RpcAnswer, Target

_CLASSES: Mapping[str, str] = {
    "ModelNotFoundException": "org.pytorch.serve.archive.model.ModelNotFoundException",
    "ModelVersionNotFoundException": "org.pytorch.serve.archive.model.ModelVersionNotFoundException",
    "InvalidModelVersionException": "org.pytorch.serve.archive.model.InvalidModelVersionException",
    "InvalidModelException": "org.pytorch.serve.archive.model.InvalidModelException",
    "DownloadArchiveException": "org.pytorch.serve.archive.DownloadArchiveException",
}
_HTTP = "org.pytorch.serve.http."
NOT_FOUND = 404
_BUSY = (Code.NOT_READY, Code.QUEUE_FULL, Code.LOAD_FAILED)
_MODEL_API, _MODEL_EXCEPTION = "Model API disabled", "org.pytorch.serve.archive.model.ModelException"


_OF_SEQUENCES = (reasons.NO_SEQUENCE, reasons.SEQUENCE_ROWS, reasons.UNSTARTED)


def refuse_inference(error: ServeError, target: Target, exact: bool) -> RpcAnswer:
    """The end of a call for inference."""
    code, message, class_name = told_of_inference(error, target, exact)
    return (
        _ended(code, message, class_name) if class_name else RpcAnswer(code=code, details=writable(message))
    )


def told_of_inference(error: ServeError, target: Target, exact: bool) -> tuple[int, str, str]:
    """Return the status of an error, what is said, and the class that the original names, if it knows such an error.
    What it refuses before a worker has it is INTERNAL there.
    """
    status, type_name, message = refusal_of(error, target, exact)
    if status == NOT_FOUND and error.status is None:
        return grpc_status.INTERNAL, message, _class_of(type_name)
    if error.reason == reasons.UNKNOWN_MODEL:  # none is named, and there is not just one
        return grpc_status.INTERNAL, _required("model_name", message, exact), "BadRequestException.()"
    if error.reason in _OF_SEQUENCES and not error.metadata.get("idle"):
        return grpc_status.INTERNAL, _required("sequenceId", message, exact), "BadRequestException.()"
    if error.reason == reasons.ITEM_DEADLINE:
        return grpc_status.number_of(error), message, _class_of(type_name)
    if error.code in _BUSY and error.status is None:
        return grpc_status.INTERNAL, message, "InternalServerException.()"
    if error.code in (Code.WORKER_DIED, Code.MODEL_FAILED, Code.OUT_OF_MEMORY, Code.UNKNOWN, Code.EXPIRED):
        return number_of(status), message, _class_of(type_name)
    return grpc_status.number_of(error), error.message, ""


def refuse_management(error: ServeError, target: Target, exact: bool) -> RpcAnswer:
    """The end of a call for management."""
    if error.code is Code.METHOD:
        return _ended(grpc_status.PERMISSION_DENIED, _told(_MODEL_API, error, exact), _MODEL_EXCEPTION)
    status, type_name, message = refusal_of(error, target, exact)
    if status == 409:  # the original catches none of these
        return RpcAnswer(code=grpc_status.UNKNOWN, details="" if exact else writable(message))
    if error.code in (Code.DRAINING, Code.UNSUPPORTED, Code.FORBIDDEN, Code.UNAUTHENTICATED):
        return RpcAnswer(code=grpc_status.number_of(error), details=writable(error.message))
    return _ended(number_of(status), message, _class_of(type_name))


def number_of(status: int) -> int:
    """The number of a status for one in HTTP's numbers, as the original has it."""
    if status in _NUMBERS:
        return _NUMBERS[status]
    return grpc_status.FAILED_PRECONDITION if 400 <= status < 500 else grpc_status.INTERNAL


_NUMBERS = {**grpc_status.OF_HTTP, 416: grpc_status.OUT_OF_RANGE, 507: grpc_status.INTERNAL}


def _ended(code: int, message: str, class_name: str) -> RpcAnswer:
    return RpcAnswer(code=code, details=writable(f"{message}\n{class_name}"))


def _class_of(type_name: str) -> str:
    return _CLASSES.get(type_name, f"{_HTTP}{type_name}")


def _required(name: str, message: str, exact: bool) -> str:
    text = f"Parameter {name} is required."
    return text if exact else f"{text} {message}"


def _told(text: str, error: ServeError, exact: bool) -> str:
    return text if exact else writable(f"{text}. {error.message}")
