"""Errors of the v2 protocol over gRPC in Triton's words, with its status codes.

Source: spec sheet `triton`, sections 5.3 and 5.4.
"""

from trivium.codecs.error_table import ErrorRow, ErrorTable, Wording
from trivium.codecs.grpc_status import ALREADY_EXISTS, INTERNAL, INVALID_ARGUMENT, NOT_FOUND
from trivium.servers.triton.words.error_codes import CODES, NOT_THE_ORIGINALS
from trivium.servers.triton.words.texts import RPC_ROWS, error_text
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.errors import in_words
from trivium.wires.v2.words import RpcErrorTranslator

_UNKNOWN = (reasons.UNKNOWN_MODEL, reasons.NOT_SERVING)
_NO_NUMBER = "no number"
"""The case of a version that is none."""

TABLE = ErrorTable(
    {
        **RPC_ROWS,
        (reasons.UNKNOWN_VERSION, _NO_NUMBER): ErrorRow(
            INVALID_ARGUMENT,
            text="failed to get model version from specified version string '{version}' (details: stol), version "
            "should be an integral value > 0",
        ),
        (reasons.UNKNOWN_VERSION, "ModelStatistics"): ErrorRow(
            INVALID_ARGUMENT, text="requested model version is not available for model '{model}'"
        ),
        **{
            (reason, method): ErrorRow(INVALID_ARGUMENT, text=text)
            for reason in _UNKNOWN
            for method, text in (
                ("ModelStatistics", "requested model '{model}' is not available"),
                ("TraceSetting", "Request for unknown model : {model}"),
            )
        },
        (reasons.UNKNOWN_REGION, "SystemSharedMemoryStatus"): ErrorRow(
            NOT_FOUND, text="Unable to find system shared memory region: '{region}'"
        ),
    }
)


class TritonRpcErrors(RpcErrorTranslator):
    """Translates into Triton's texts and statuses."""

    def told(self, error: ServeError, method: str, model: str = "", request_id: str = "") -> ServeError:
        """Translate by what the method makes of the error, then by its facts."""
        reason = error.reason
        if method == "RepositoryModelLoad" and reason in _OF_FOLDER and error.code in _UNREAD:
            return in_words(
                Wording(INTERNAL), f"failed to load '{model}', failed to poll from model repository"
            )
        if reason == reasons.UNKNOWN_VERSION and not str(error.metadata["version"]).isdigit():
            method = _NO_NUMBER
        told = error_text(error, {"model": model, "id": request_id}, TABLE, method)
        if told.status:
            return in_words(told, told.text)
        if error.status == 409:  # there is already such a thing
            return in_words(Wording(ALREADY_EXISTS), error.message)
        if error.status is not None or error.code in NOT_THE_ORIGINALS:
            return error
        return in_words(Wording(CODES[error.code]), error.message)

    def blames_model(self, error: ServeError) -> bool:
        """Return True for whatever was not refused before it came to the model."""
        return not error.reason

    def forgives(self, error: ServeError, method: str) -> bool:
        """Return True for a name that is not there: it may be unloaded."""
        return method == "RepositoryModelUnload" and error.reason in _UNKNOWN


_OF_FOLDER = ("", request_reasons.UNREADABLE)
_UNREAD = frozenset({Code.INVALID, Code.NOT_FOUND})
