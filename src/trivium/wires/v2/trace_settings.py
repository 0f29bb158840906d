"""The documents of the trace extension: settings -> texts, and back.

Source: spec sheet `triton`, section 4.12. Knows the extension's names and its forms of values; what settings mean, and
which can be had, is the core's to say.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trivium.codecs.error_texts import quoted_json
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.operations import TraceReport
from trivium.types.spoken import spoken
from trivium.types.tracing import NO_CHANGE, Detail, TraceChange
from trivium.wires.v2 import request_reasons

LEVELS: Mapping[str, Detail] = {"TIMESTAMPS": Detail.TIMES, "TENSORS": Detail.TENSORS}
NUMBERS: Mapping[str, str] = {"trace_rate": "every", "trace_count": "left", "log_frequency": "per_file"}
"""Setting -> what it is of `TraceChange`."""

KEYS = ("trace_level", *NUMBERS, "trace_file", "trace_mode")
_OFF = "OFF"
_MOST = 2**31 - 1
_MOST_TOLD = 2**32 - 1
_ANY_NUMBER = -1
_WHOLE = re.compile(r"\s*([+-]?\d+)")
_LONGEST = 4000
"""Characters of a number, zeros in front included; Python reads a few more."""


def trace_document(report: TraceReport) -> dict[str, str | list[str]]:
    """The settings, with where traces go."""
    settings = report.settings
    is_in_files = report.file is not None
    return {
        "trace_level": [word for word, detail in LEVELS.items() if detail in settings.details] or [_OFF],
        "trace_rate": str(settings.every),
        "trace_count": str(_ANY_NUMBER if settings.left is None else settings.left),
        **({"log_frequency": str(settings.per_file), "trace_file": report.file or ""} if is_in_files else {}),
        "trace_mode": "triton" if is_in_files else "opentelemetry",
        **report.told,
    }


def read_json(fields: Mapping[str, Any], is_lenient: bool) -> TraceChange | None:
    """The change that a JSON object asks for; None for none. What the extension does not know is an error, or, if that
    `is_lenient`, nothing. INVALID, or UNSUPPORTED for what cannot be changed.
    """
    given: dict[str, Sequence[str] | None] = {}
    for key, value in fields.items():
        if value is None:
            given[key] = None
        elif key == "trace_level":
            if not isinstance(value, list):
                raise _unfit(key, value, "a list of strings", "array")
            given[key] = [_text(key, word) for word in value]
        elif key in NUMBERS:
            given[key] = [_text(key, value)]
        else:
            given[key] = []
    return _read(given, is_lenient)


def read_rpc(settings: Mapping[str, Sequence[str]], is_lenient: bool) -> TraceChange | None:
    """Read a message as `read_json` does a document: a setting without a value is cleared."""
    return _read({key: values or None for key, values in settings.items()}, is_lenient)


def _read(given: Mapping[str, Sequence[str] | None], is_lenient: bool) -> TraceChange | None:
    if "trace_file" in given:
        raise ServeError(
            Code.UNSUPPORTED,
            spoken(
                "The setting 'trace_file' cannot be changed by a client. Start the server with --trace-file."
            ),
            info=ErrorInfo.of(request_reasons.TRACE_FILE),
        )
    unknown = next((key for key in given if key not in KEYS), None)
    if unknown is not None and not is_lenient:
        raise ServeError(
            Code.INVALID, f"There is no setting {unknown[:80]!r}; there are: {', '.join(KEYS)}. Correct it."
        )
    fields: dict[str, Any] = {}
    if "trace_level" in given:
        words = given["trace_level"]
        details = None if words is None else _details(words, is_lenient)
        if words is None or details is not None:
            fields["details"] = details
    for key, name in NUMBERS.items():
        if key in given:
            values = given[key]
            fields[name] = None if values is None else _number(key, values, is_lenient)
    change = TraceChange(**fields)
    return None if change == NO_CHANGE else change


def _details(words: Sequence[str], is_lenient: bool) -> frozenset[Detail] | None:
    """None where no word says anything."""
    unknown = [word for word in words if word != _OFF and word not in LEVELS]
    if unknown and not is_lenient:
        known = ", ".join((_OFF, *LEVELS))
        raise ServeError(Code.INVALID, f"There is no trace level {unknown[0][:80]!r}; there are: {known}.")
    if _OFF in words and len(words) > 1:
        raise ServeError(
            Code.INVALID,
            "The trace level OFF cannot stand beside others. Leave it out, or them.",
            info=ErrorInfo.of(request_reasons.TRACE_LEVELS),
        )
    if _OFF in words:
        return frozenset()
    return frozenset(LEVELS[word] for word in words if word in LEVELS) or None


def _number(key: str, values: Sequence[str], is_lenient: bool) -> int:
    if len(values) != 1:
        facts = ErrorInfo.of(request_reasons.SEVERAL_VALUES, key=key)
        raise ServeError(Code.INVALID, f"The setting {key!r} has {len(values)} values. Give one.", info=facts)
    text = values[0]
    match = _WHOLE.match(text)
    if match is None:
        raise _wrong(key, text, ErrorInfo.of(request_reasons.TRACE_NUMBER, key=key, value=text))
    number = int(match[1]) if len(match[1]) <= _LONGEST else _MOST_TOLD + 1
    least = _ANY_NUMBER if key == "trace_count" else 0
    if key == "trace_count" and -_MOST <= number < least:
        raise _wrong(key, text, ErrorInfo.of(request_reasons.TRACE_COUNT, key=key, value=text))
    if is_lenient and -_MOST <= number < least:
        return number + _MOST_TOLD + 1  # as the original takes it: for one of 32 bits without a sign
    if not least <= number <= _MOST:
        most = _MOST if key == "trace_count" else _MOST_TOLD
        raise _wrong(
            key, text, ErrorInfo.of(request_reasons.TRACE_RANGE, key=key, value=text, least=least, most=most)
        )
    return number


def _wrong(key: str, text: str, facts: ErrorInfo) -> ServeError:
    least = _ANY_NUMBER if key == "trace_count" else 0
    return ServeError(
        Code.INVALID,
        f"The setting {key!r} is {text[:80]!r}, but a whole number from {least} to {_MOST} was expected. Correct it.",
        info=facts,
    )


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise _unfit(key, value, "a string", "string")
    return value


def _unfit(key: str, value: object, expected: str, kind: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"The setting {key!r} is {quoted_json(value, 80)}, but {expected} was expected. Correct it.",
        info=ErrorInfo.of(request_reasons.SETTING, key=key, expected=kind),
    )
