"""The flags of `tritonserver` whose values have a grammar of their own: restrictions, patterns, settings by backend.

Pure: texts in, values of our configuration out. Refusals are worded as the original's (spec sheet `triton`, section
1.1).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trivium.types.errors import Code, ServeError
from trivium.wires.v2.restricted import GROUPS

_GRPC_PREFIX = "triton-grpc-protocol-"
_DEFAULT_ROWS = "default-max-batch-size"


def pattern(values: Mapping[str, Any], flag: str) -> str:
    """Names of headers come in lower case here: without regard to case the pattern means what it says."""
    text: str = values[flag]
    try:
        re.compile(text)
    except re.error as error:
        raise ServeError(Code.INVALID, f'Bad option: "{flag}".\n{text!r} is no pattern: {error}') from error
    return f"(?i:{text})" if text else ""


def restrictions(values: Mapping[str, Any], flag: str) -> str:
    """All that were given, in the form of our own option; metadata have the original's prefix."""
    prefix = _GRPC_PREFIX if flag.startswith("--grpc") else ""
    return ";".join(_restriction(text, flag, prefix) for text in values[flag])


def _restriction(text: str, flag: str, prefix: str) -> str:
    groups, _, secret = text.partition(":")
    key, _, value = secret.partition("=")
    if not (groups and key and value):
        raise ServeError(
            Code.INVALID, f"{flag} option format is '<config name>:<setting>=<value>'. Got {text}"
        )
    word = "protocol" if prefix else "api"
    for group in groups.split(","):
        if group not in GROUPS:
            raise ServeError(Code.INVALID, f"unknown restricted {word} '{group}' ")
    if ";" in secret or value != value.strip():
        raise ServeError(
            Code.INVALID, f"{flag}: a key with ';' or blanks around it cannot be had here: {text}"
        )
    return f"{groups}:{prefix}{key}={value}"


def backend_settings(texts: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Backend (empty for all), setting and value of each."""
    for text in texts:
        backend, comma, setting = text.partition(",")
        if not comma:
            backend, setting = "", text
        key, equals, value = setting.partition("=")
        if not (equals and key):
            raise ServeError(
                Code.INVALID,
                f"--backend-config option format is '<backend name>,<setting>=<value>'. Got {text}",
            )
        yield backend, key, value


def default_rows(values: Mapping[str, Any]) -> int:
    """The largest batch of a model whose file alone says that it can batch."""
    rows = 4
    for _, key, value in backend_settings(values["--backend-config"]):
        if key == _DEFAULT_ROWS:
            if not value.isdecimal():
                raise ServeError(Code.INVALID, f"--backend-config: {key} must be a whole number. Got {value}")
            rows = int(value)
    return rows


def cache_bytes(values: Mapping[str, Any]) -> int:
    """Return how many bytes of answers are kept; 0 for none."""
    size: int = values["--response-cache-byte-size"]
    for text in values["--cache-config"]:
        cache, comma, setting = text.partition(",")
        key, equals, value = setting.partition("=")
        if not (cache and comma and equals):
            raise ServeError(
                Code.INVALID,
                "No cache specified. --cache-config option format is <cache name>,<setting>=<value>. "
                f"Got {text}",
            )
        if (cache, key) != ("local", "size") or not value.isdecimal():
            raise ServeError(
                Code.INVALID, f"--cache-config: {text} cannot be had here, but local,size=BYTES can."
            )
        size = int(value)
    return size


def unused_settings(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Those that have no effect, with the reason."""
    lost = values["--rate-limit"] == "off" and values["--rate-limit-resource"]
    rates = ("--rate-limit-resource (--rate-limit is off)",) if lost else ()
    return (*_unused_backend_settings(values), *rates)


def _unused_backend_settings(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Those that have no effect."""
    return tuple(
        f"--backend-config={backend},{key} (a model's own parameters hold)"
        for backend, key, _ in backend_settings(values["--backend-config"])
        if key != _DEFAULT_ROWS
    )
