"""Triton's error codes as numbers of gRPC, which they are one by one: what they are over HTTP, and which our own are.

Source: spec sheet `triton`, sections 4.1 and 5.3. The numbers of gRPC are those of `google.rpc.Code`.
"""

from collections.abc import Mapping

from trivium.codecs.grpc_status import (
    ALREADY_EXISTS,
    CANCELLED,
    INTERNAL,
    INVALID_ARGUMENT,
    NOT_FOUND,
    PERMISSION_DENIED,
    UNAVAILABLE,
    UNIMPLEMENTED,
    UNKNOWN,
)
from trivium.types.errors import Code

HTTP_STATUS: Mapping[int, int] = {
    UNKNOWN: 400,
    INTERNAL: 500,
    NOT_FOUND: 404,
    INVALID_ARGUMENT: 400,
    UNAVAILABLE: 503,
    UNIMPLEMENTED: 501,
    ALREADY_EXISTS: 400,
    CANCELLED: 400,
    PERMISSION_DENIED: 403,  # no code of the original's: of an API that is restricted
}

CODES: Mapping[Code, int] = {
    Code.INVALID: INVALID_ARGUMENT,
    Code.NOT_FOUND: NOT_FOUND,
    Code.CONFLICT: ALREADY_EXISTS,
    Code.METHOD: UNIMPLEMENTED,
    Code.NOT_READY: UNAVAILABLE,
    Code.TOO_LARGE: INVALID_ARGUMENT,
    Code.UNSUPPORTED_MEDIA: INVALID_ARGUMENT,
    Code.UNSUPPORTED: UNIMPLEMENTED,
    Code.QUEUE_FULL: UNAVAILABLE,
    Code.EXPIRED: UNAVAILABLE,
    Code.CANCELLED: CANCELLED,
    Code.DRAINING: UNAVAILABLE,
    Code.LOAD_FAILED: INVALID_ARGUMENT,
    Code.MODEL_FAILED: INTERNAL,
    Code.WORKER_DIED: INTERNAL,
    Code.OUT_OF_MEMORY: INTERNAL,
    Code.UNKNOWN: UNKNOWN,
    Code.INTERNAL: INTERNAL,
}
"""For errors without a row."""

NOT_THE_ORIGINALS = frozenset({Code.FORBIDDEN, Code.UNAUTHENTICATED})
"""Codes that the original does not have: they keep the status that each wire has for them."""
