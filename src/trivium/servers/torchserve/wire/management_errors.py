"""Errors of TorchServe's management: which status, type and text each has that the core or this protocol raises.

Source: spec sheet `torchserve`, sections 0, 5 and 7, and what 0.12.0 answers. Behind the original's text stands our own
sentence, unless a profile wants that text alone.
"""

from enum import Enum

import msgspec

from trivium.codecs.error_texts import wire_text
from trivium.servers.torchserve.wire.errors import METHOD, TABLE, ErrorRow, ExactRefusal
from trivium.servers.torchserve.words.model_urls import UrlRefused
from trivium.types import reasons
from trivium.types.errors import Code, ConfigError, ServeError
from trivium.types.state import VersionState

_FAILED, _NOT_FOUND = "InternalServerException", "ModelNotFoundException"
_OPENING = (Code.LOAD_FAILED, Code.WORKER_DIED, Code.EXPIRED, Code.MODEL_FAILED, Code.NOT_READY)
"""What is said of workers that do not start."""


class Act(Enum):
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


def worded(error: ServeError, wish: Wish) -> ServeError:
    """Return the error with the row that the original has for it; as it is, where it has none."""
    if isinstance(error, ExactRefusal):
        return error
    row = _by_reason(error, wish) or _by_act(error, wish)
    return error if row is None else ExactRefusal(error.code, error.message, row)


def _by_reason(error: ServeError, wish: Wish) -> ErrorRow | None:
    model, version = wish.model, wish.version
    if isinstance(error, UrlRefused):
        return ErrorRow(404, _NOT_FOUND, error.text)
    match error.reason:
        case reasons.UNKNOWN_MODEL:
            return ErrorRow(404, _NOT_FOUND, f"Model not found: {model}")
        case reasons.UNKNOWN_VERSION if wish.act is Act.SET_DEFAULT:
            text = f"Model version {version} does not exist for model {model}"
            return ErrorRow(404, "ModelVersionNotFoundException", text)
        case reasons.UNKNOWN_VERSION:
            text = f"Model version: {version} does not exist for model: {model}"
            return ErrorRow(404, "ModelVersionNotFoundException", text)
        case reasons.REGISTERED_TWICE:
            name, number = _named(error, wish)
            text = f"Model version {number} is already registered for model {name}"
            return ErrorRow(409, "ConflictStatusException", text)
        case reasons.DEFAULT_VERSION:
            text = f"Cannot remove default version for model {model}"
            return ErrorRow(403, "InvalidModelVersionException", text)
        case reasons.NOT_BY_CLIENTS:
            return METHOD
        case reasons.NOT_SERVING if error.metadata.get("state") == VersionState.FAILED.value:
            return ErrorRow(404, _NOT_FOUND, f"Model not found: {model}")
    return None


def _by_act(error: ServeError, wish: Wish) -> ErrorRow | None:
    code = error.code
    if wish.act is Act.REGISTER:
        return _of_registration(error, wish)
    if wish.act is Act.SCALE and code in (*_OPENING, Code.OUT_OF_MEMORY):
        return _not_started(error, wish)
    if wish.act is Act.DESCRIBE and code in (Code.NOT_READY, Code.QUEUE_FULL):
        text = (
            f'Model "{wish.model}" has no worker to serve describe request. Please use scale workers API to add '
            "workers."
        )
        return ErrorRow(503, "ServiceUnavailableException", text)
    return None


def _of_registration(error: ServeError, wish: Wish) -> ErrorRow | None:
    code = error.code
    if error.reason == reasons.NOT_LOADED or code in (Code.OUT_OF_MEMORY, Code.WORKER_DIED):
        return _not_started(error, wish)
    if isinstance(error, ConfigError):
        return ErrorRow(400, "InvalidModelException")
    if wish.is_remote and code is Code.FORBIDDEN:
        text = f"Given URL {wish.url} does not match any allowed URL(s)"
        return ErrorRow(404, _NOT_FOUND, text)
    if wish.is_remote and code is not Code.DRAINING:
        return ErrorRow(400, "DownloadArchiveException", f"Failed to download archive from: {wish.url}")
    if code is Code.NOT_FOUND:
        return ErrorRow(404, _NOT_FOUND, f"Model not found at: {wish.url}")
    return _not_started(error, wish) if code in _OPENING else None


def _not_started(error: ServeError, wish: Wish) -> ErrorRow:
    name, version = _named(error, wish)
    status = 507 if error.code is Code.OUT_OF_MEMORY else 500
    return ErrorRow(status, _FAILED, f"Failed to start workers for model {name} version: {version or None}")


def _named(error: ServeError, wish: Wish) -> tuple[str, str]:
    """Return the model and the version that an error is about."""
    told = error.metadata
    return str(told.get("model", wish.model)), str(told.get("version", wish.version))


def missing(name: str, message: str) -> ExactRefusal:
    """Return the refusal of a request without a parameter that it needs."""
    return invalid(f"Parameter {name} is required.", message)


def invalid(text: str, message: str) -> ExactRefusal:
    """Return the refusal of a request with a parameter that cannot be; `text` is the original's."""
    return ExactRefusal(Code.INVALID, message, ErrorRow(400, TABLE[Code.INVALID].type_name, wire_text(text)))


def model_api_off() -> ExactRefusal:
    """Return the refusal of a registration where there are none."""
    return ExactRefusal(
        Code.METHOD,
        "Models are not registered and unregistered by clients here: the model API is off. Start the server with "
        "--enable-model-api, or without --torchserve-no-model-api.",
        METHOD,
    )


def not_from_here() -> ServeError:
    """Return the refusal of a change where whoever reaches the server could make it."""
    return ServeError(
        Code.FORBIDDEN,
        "This server listens beyond its own machine, and whoever reaches it may not register, scale or unregister "
        "anything. Have it listen on loopback alone, or start it with --keys and send a key that may manage models.",
    )
