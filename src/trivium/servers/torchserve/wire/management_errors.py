"""Errors of TorchServe's management: which status, type and text each has that the core or this protocol raises.

Source: spec sheet `torchserve`, sections 0, 5 and 7, and what 0.12.0 answers. Behind the original's text stands our own
sentence, unless a profile wants that text alone.
"""

from enum import StrEnum

import msgspec

from trivium.codecs.error_table import SAID, ErrorRow, ErrorTable, Refusal, Wording, written
from trivium.codecs.error_texts import wire_text
from trivium.servers.torchserve.wire.errors import FAILED_TO_LOAD, METHOD, METHOD_TEXT, NOT_THERE, case_of
from trivium.types import reasons
from trivium.types.errors import Code, ConfigError, ServeError
from trivium.types.spoken import spoken


class Act(StrEnum):
    """Says what is done to a model."""

    REGISTER = "register"
    DESCRIBE = "describe"
    SCALE = "scale"
    SET_DEFAULT = "set default"
    UNREGISTER = "unregister"
    LIST = "list"


class Wish(msgspec.Struct, frozen=True):
    """Says what was asked for, as far as errors name it; `is_remote`: what is at the URL has to be fetched."""

    act: Act
    model: str = ""
    version: str = ""
    url: str = ""
    is_remote: bool = False


_FETCH, _INVALID_MODEL = "fetch", "invalid model"
_STARTING, _NO_MEMORY = "starting", "no memory"
"""Cases of what is done: see `_verb`."""

_OPENING = (Code.LOAD_FAILED, Code.WORKER_DIED, Code.EXPIRED, Code.MODEL_FAILED, Code.NOT_READY)
"""What is said of workers that do not start."""

_NOT_FOUND = "ModelNotFoundException"
_NO_VERSION = "ModelVersionNotFoundException"
_FAILED = "InternalServerException"
_UNSTARTED = "Failed to start workers for model {model} version: {version_or_none}"
_NOT_STARTED, _NO_ROOM = ErrorRow(500, _FAILED, _UNSTARTED), ErrorRow(507, _FAILED, _UNSTARTED)
_NOT_FETCHED = ErrorRow(400, "DownloadArchiveException", "Failed to download archive from: {url}")
_NO_WORKER = ErrorRow(
    503,
    "ServiceUnavailableException",
    'Model "{asked}" has no worker to serve describe request. Please use scale workers API to add workers.',
)
TABLE = ErrorTable(
    {
        SAID: ErrorRow(404, _NOT_FOUND, "{words}"),
        reasons.UNKNOWN_MODEL: NOT_THERE,
        (reasons.NOT_SERVING, FAILED_TO_LOAD): NOT_THERE,
        (reasons.UNKNOWN_VERSION, Act.SET_DEFAULT): ErrorRow(
            404, _NO_VERSION, "Model version {asked_version} does not exist for model {asked}"
        ),
        reasons.UNKNOWN_VERSION: ErrorRow(
            404, _NO_VERSION, "Model version: {asked_version} does not exist for model: {asked}"
        ),
        reasons.REGISTERED_TWICE: ErrorRow(
            409, "ConflictStatusException", "Model version {version} is already registered for model {model}"
        ),
        reasons.DEFAULT_VERSION: ErrorRow(
            403, "InvalidModelVersionException", "Cannot remove default version for model {asked}"
        ),
        reasons.NOT_BY_CLIENTS: METHOD,
        (reasons.NOT_LOADED, _STARTING): _NOT_STARTED,
        (reasons.NOT_LOADED, _NO_MEMORY): _NO_ROOM,
        (Code.OUT_OF_MEMORY, _NO_MEMORY): _NO_ROOM,
        **{(code, verb): _NOT_STARTED for code in _OPENING for verb in (_STARTING, Act.REGISTER, Act.SCALE)},
        (Code.NOT_FOUND, Act.REGISTER): ErrorRow(404, _NOT_FOUND, "Model not found at: {url}"),
        **{(code, _FETCH): _NOT_FETCHED for code in Code if code is not Code.DRAINING},
        (Code.FORBIDDEN, _FETCH): ErrorRow(
            404, _NOT_FOUND, "Given URL {url} does not match any allowed URL(s)"
        ),
        reasons.NO_PACKAGES: ErrorRow(
            400, "ModelException", "Custom pip package installation failed for model {model}"
        ),
        (Code.LOAD_FAILED, _INVALID_MODEL): ErrorRow(400, "InvalidModelException"),
        (Code.NOT_READY, Act.DESCRIBE): _NO_WORKER,
        (Code.QUEUE_FULL, Act.DESCRIBE): _NO_WORKER,
    }
)


def worded(error: ServeError, wish: Wish) -> ServeError:
    """Return the error with what the original says of it; as it is, where it says nothing."""
    if isinstance(error, Refusal):
        return error
    row = TABLE.find(error, _verb(error, wish))
    if not row.status:
        return error
    version = error.metadata.get("version", wish.version)
    about = {
        "asked": wish.model,
        "asked_version": wish.version,
        "model": wish.model,
        "version": wish.version,
        "version_or_none": version or None,
        "url": wish.url,
    }
    return Refusal(error.code, error.message, written(row, error, about))


def _verb(error: ServeError, wish: Wish) -> str:
    """Return what is done to a model, or which case of it the error is."""
    case, code = case_of(error), error.code
    if case:
        return case
    if code is Code.OUT_OF_MEMORY and wish.act in (Act.REGISTER, Act.SCALE):
        return _NO_MEMORY
    if wish.act is not Act.REGISTER:
        return wish.act
    if error.reason == reasons.NOT_LOADED or code is Code.WORKER_DIED:
        return _STARTING
    if isinstance(error, ConfigError):
        return _INVALID_MODEL
    return _FETCH if wish.is_remote else Act.REGISTER


def missing(name: str, message: str) -> Refusal:
    """Return the refusal of a request without a parameter that it needs."""
    return invalid(f"Parameter {name} is required.", message)


def invalid(text: str, message: str) -> Refusal:
    """Return the refusal of a request with a parameter that cannot be; `text` is the original's, if it has one."""
    return Refusal(Code.INVALID, message, Wording(400, "BadRequestException", wire_text(text)))


def model_api_off() -> Refusal:
    """Return the refusal of a registration where there are none."""
    return Refusal(
        Code.METHOD,
        spoken(
            "Models are not registered and unregistered by clients here: the model API is off. Its switch is "
            "--torchserve-no-model-api."
        ),
        Wording(405, METHOD.type_name, METHOD_TEXT),
    )
