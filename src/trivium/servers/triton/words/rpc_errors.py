"""Errors of the v2 protocol over gRPC in Triton's words, with its status codes.

Source: spec sheet `triton`, sections 5.3 and 5.4.
"""

from collections.abc import Mapping

from trivium.codecs.grpc_status import INTERNAL, INVALID_ARGUMENT, NOT_FOUND, UNAVAILABLE
from trivium.servers.triton.words.error_codes import CODES, NOT_THE_ORIGINALS, RPC_STATUS, ErrorCode
from trivium.servers.triton.words.texts import error_text
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.grpc_errors import TranslatedRpcError

_UNKNOWN = (reasons.UNKNOWN_MODEL, reasons.NOT_SERVING)


class TritonRpcErrors:
    """Implements `RpcErrorTranslator` by Triton's texts and statuses."""

    def told(self, error: ServeError, method: str, model: str = "", request_id: str = "") -> ServeError:
        """Translate by what the method makes of the error, then by its facts."""
        found = _by_method(error, method, model)
        if found is None:
            row = error_text(error, True, {"model": model, "id": request_id})
            if row is not None:
                found = TranslatedRpcError(RPC_STATUS[row.code], row.text)
            elif error.status == _CONFLICT:
                found = TranslatedRpcError(RPC_STATUS[ErrorCode.ALREADY_EXISTS], error.message)
            elif error.status is not None or error.code in NOT_THE_ORIGINALS:
                return error
            else:
                found = TranslatedRpcError(RPC_STATUS[CODES[error.code]], error.message)
        return found

    def blames_model(self, error: ServeError) -> bool:
        """Return True for whatever was not refused before it came to the model."""
        return error.info is None

    def forgives(self, error: ServeError, method: str) -> bool:
        """Return True for a name that is not there: it may be unloaded."""
        return method == "RepositoryModelUnload" and error.reason in _UNKNOWN


_CONFLICT = 409


def _by_method(error: ServeError, method: str, model: str) -> TranslatedRpcError | None:
    facts: Mapping[str, object] = error.metadata
    reason = error.reason
    if reason == request_reasons.RESTRICTED_API:
        return TranslatedRpcError(
            UNAVAILABLE, f"This protocol is restricted, expecting header '{facts['header']}'"
        )
    if reason == reasons.UNKNOWN_VERSION and not str(facts["version"]).isdigit():
        text = f"failed to get model version from specified version string '{facts['version']}' (details: stol), "
        return TranslatedRpcError(INVALID_ARGUMENT, f"{text}version should be an integral value > 0")
    if method == "ModelStatistics" and reason in _UNKNOWN:
        return TranslatedRpcError(INVALID_ARGUMENT, f"requested model '{facts['model']}' is not available")
    if method == "ModelStatistics" and reason == reasons.UNKNOWN_VERSION:
        text = f"requested model version is not available for model '{facts['model']}'"
        return TranslatedRpcError(INVALID_ARGUMENT, text)
    if method == "TraceSetting" and reason in _UNKNOWN:
        return TranslatedRpcError(INVALID_ARGUMENT, f"Request for unknown model : {facts['model']}")
    if method == "SystemSharedMemoryStatus" and reason == reasons.UNKNOWN_REGION:
        return TranslatedRpcError(
            NOT_FOUND, f"Unable to find system shared memory region: '{facts['region']}'"
        )
    if (
        method == "RepositoryModelLoad"
        and reason in ("", request_reasons.UNREADABLE)
        and error.code in _UNREAD
    ):
        return TranslatedRpcError(INTERNAL, f"failed to load '{model}', failed to poll from model repository")
    return None


_UNREAD = frozenset({Code.INVALID, Code.NOT_FOUND})
