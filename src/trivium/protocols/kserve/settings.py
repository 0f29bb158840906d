"""The documents of the logging and trace extensions, and what of them can be set.

Source: spec sheet `triton`, sections 4.11 and 4.12. The log has one level, which these switches move; traces are not
written, so that they can be switched off alone.
"""

from typing import Any

from trivium.types.errors import Code, ServeError
from trivium.types.faults import Kind, fault

_SWITCHES = {"log_info": "info", "log_warning": "warning", "log_error": "error"}
_VERBOSE = "log_verbose_level"
_FIXED = {"log_file": "", "log_format": "default"}
_LEVELS = ("debug", "info", "warning", "error")

TRACE: dict[str, object] = {
    "trace_level": ["OFF"],
    "trace_rate": "1000",
    "trace_count": "-1",
    "log_frequency": "0",
    "trace_file": "",
    "trace_mode": "triton",
}
"""The trace settings, of the server and of every model."""


def log_document(level: str) -> dict[str, object]:
    """The log settings, of the least level that is logged."""
    on = _LEVELS[_LEVELS.index(level) :] if level in _LEVELS else ()
    switches = {key: word in on for key, word in _SWITCHES.items()}
    return {"log_file": "", **switches, _VERBOSE: int("debug" in on), "log_format": "default"}


def read_switches(fields: dict[str, Any]) -> dict[str, bool]:
    """The levels to switch. INVALID for an unknown key or a wrong type; UNSUPPORTED for what is set at the start."""
    switches: dict[str, bool] = {}
    for key, value in fields.items():
        if key in _FIXED:
            _check_fixed(key, value)
        elif key == _VERBOSE:
            if type(value) is not int or value < 0:
                raise _unfit(key, "an integer from 0")
            switches["debug"] = value > 0
        elif key in _SWITCHES:
            if not isinstance(value, bool):
                raise _unfit(key, "true or false")
            switches[_SWITCHES[key]] = value
        else:
            raise _unknown(key, (*_FIXED, *_SWITCHES, _VERBOSE))
    return switches


def check_trace(fields: dict[str, Any]) -> None:
    """Nothing for settings that are as they are, or null; UNSUPPORTED for others, INVALID for unknown ones."""
    for key, value in fields.items():
        if key not in TRACE:
            raise _unknown(key, TRACE)
        now = TRACE[key]
        if value is not None and value != now and [value] != now:
            raise ServeError(
                Code.UNSUPPORTED,
                f"The setting {key!r} cannot be changed: this server writes no traces yet, and its trace_level is OFF. "
                "Leave it, and look at the statistics.",
            )


def _check_fixed(key: str, value: object) -> None:
    if not isinstance(value, str):
        raise _unfit(key, "a string")
    if value != _FIXED[key]:
        raise ServeError(
            Code.UNSUPPORTED,
            f"The setting {key!r} cannot be changed by a client: the log goes to standard error, in one form. Redirect "
            "it where the server is started.",
            fault=fault(Kind.LOG_FILE) if key == "log_file" else fault(Kind.LOG_FORMAT, value=value),
        )


def _unfit(key: str, expected: str) -> ServeError:
    words = {"true or false": "boolean", "a string": "string"}
    return ServeError(
        Code.INVALID,
        f"The setting {key!r} must be {expected}. Correct it.",
        fault=fault(Kind.SETTING, key=key, expected=words.get(expected, "unsigned-integer")),
    )


def _unknown(key: str, known: Any) -> ServeError:
    return ServeError(Code.INVALID, f"There is no setting {key[:80]!r}; there are: {', '.join(known)}.")
