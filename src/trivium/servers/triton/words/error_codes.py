"""Triton's error codes, the statuses that they have on its wires, and which of them our own codes are.

Source: spec sheet `triton`, sections 4.1 and 5.3. The numbers of gRPC are those of `google.rpc.Code`.
"""

from collections.abc import Mapping
from enum import Enum

from trivium.types.errors import Code


class ErrorCode(Enum):
    """The original's, by their names in its C interface."""

    UNKNOWN = "UNKNOWN"
    INTERNAL = "INTERNAL"
    NOT_FOUND = "NOT_FOUND"
    INVALID_ARG = "INVALID_ARG"
    UNAVAILABLE = "UNAVAILABLE"
    UNSUPPORTED = "UNSUPPORTED"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    CANCELLED = "CANCELLED"


STATUS: Mapping[ErrorCode, int] = {
    ErrorCode.UNKNOWN: 400,
    ErrorCode.INTERNAL: 500,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.INVALID_ARG: 400,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.UNSUPPORTED: 501,
    ErrorCode.ALREADY_EXISTS: 400,
    ErrorCode.CANCELLED: 400,
}
"""In HTTP."""

RPC_STATUS: Mapping[ErrorCode, int] = {
    ErrorCode.UNKNOWN: 2,
    ErrorCode.INTERNAL: 13,
    ErrorCode.NOT_FOUND: 5,
    ErrorCode.INVALID_ARG: 3,
    ErrorCode.UNAVAILABLE: 14,
    ErrorCode.UNSUPPORTED: 12,
    ErrorCode.ALREADY_EXISTS: 6,
    ErrorCode.CANCELLED: 1,
}
"""In gRPC."""

CODES: Mapping[Code, ErrorCode] = {
    Code.INVALID: ErrorCode.INVALID_ARG,
    Code.NOT_FOUND: ErrorCode.NOT_FOUND,
    Code.CONFLICT: ErrorCode.ALREADY_EXISTS,
    Code.METHOD: ErrorCode.UNSUPPORTED,
    Code.NOT_READY: ErrorCode.UNAVAILABLE,
    Code.TOO_LARGE: ErrorCode.INVALID_ARG,
    Code.UNSUPPORTED_MEDIA: ErrorCode.INVALID_ARG,
    Code.UNSUPPORTED: ErrorCode.UNSUPPORTED,
    Code.QUEUE_FULL: ErrorCode.UNAVAILABLE,
    Code.EXPIRED: ErrorCode.UNAVAILABLE,
    Code.CANCELLED: ErrorCode.CANCELLED,
    Code.DRAINING: ErrorCode.UNAVAILABLE,
    Code.LOAD_FAILED: ErrorCode.INVALID_ARG,
    Code.MODEL_FAILED: ErrorCode.INTERNAL,
    Code.WORKER_DIED: ErrorCode.INTERNAL,
    Code.OUT_OF_MEMORY: ErrorCode.INTERNAL,
    Code.UNKNOWN: ErrorCode.UNKNOWN,
    Code.INTERNAL: ErrorCode.INTERNAL,
}
"""For errors without a row."""

NOT_THE_ORIGINALS = frozenset({Code.FORBIDDEN, Code.UNAUTHENTICATED})
"""Codes that the original does not have: they keep the status that each wire has for them."""
