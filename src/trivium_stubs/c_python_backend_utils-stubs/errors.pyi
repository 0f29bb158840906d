from _typeshed import Incomplete
from c_python_backend_utils.names import Numbered
from trivium_worker.wire.values import Failure as Failure

class TritonModelException(Exception): ...

class ErrorCode(Numbered):
    UNKNOWN: int
    INTERNAL: int
    NOT_FOUND: int
    INVALID_ARG: int
    UNAVAILABLE: int
    UNSUPPORTED: int
    ALREADY_EXISTS: int
    CANCELLED: int

class TritonError:
    UNKNOWN: Incomplete
    INTERNAL: Incomplete
    NOT_FOUND: Incomplete
    INVALID_ARG: Incomplete
    UNAVAILABLE: Incomplete
    UNSUPPORTED: Incomplete
    ALREADY_EXISTS: Incomplete
    CANCELLED: Incomplete
    def __init__(self, message: str, code: ErrorCode = ...) -> None: ...
    def code(self) -> ErrorCode: ...
    def message(self) -> str: ...
    def failure(self) -> Failure: ...
    @classmethod
    def of_failure(cls, failure: Failure) -> TritonError: ...
