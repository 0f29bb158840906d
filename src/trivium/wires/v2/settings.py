"""The document of the logging extension, and what of it can be set.

Source: spec sheet `triton`, section 4.11.
"""

from collections.abc import Mapping
from typing import Any

from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.log_settings import LogChange, LogSettings
from trivium.wires.v2 import request_reasons

_SWITCHES = {"log_info": "info", "log_warning": "warning", "log_error": "error"}
_VERBOSE, _FILE, _FORMAT = "log_verbose_level", "log_file", "log_format"
_FORMS = {"default": False, "ISO8601": True}
_WORDS = {is_iso: word for word, is_iso in _FORMS.items()}
_KEYS = (_FILE, *_SWITCHES, _VERBOSE, _FORMAT)
_MOST_VERBOSE = 2**31 - 1


def log_document(settings: LogSettings) -> dict[str, object]:
    """The settings, by the extension's names."""
    switches = {key: getattr(settings, name) for key, name in _SWITCHES.items()}
    return {
        _FILE: settings.file,
        **switches,
        _VERBOSE: settings.verbose,
        _FORMAT: _WORDS[settings.is_iso],
    }


def read_log_change(fields: Mapping[str, Any], is_lenient: bool) -> LogChange:
    """The change that is asked for; what is null is left. INVALID for a wrong type, and for an unknown key unless that
    `is_lenient`; UNSUPPORTED for what is set at the start.
    """
    change: dict[str, Any] = {}
    for key, value in fields.items():
        if key not in _KEYS:
            if not is_lenient:
                raise _unknown(key)
        elif value is None:
            continue
        elif key == _FILE:
            _check_file(value, is_lenient)
        elif key == _VERBOSE:
            if type(value) is not int or not 0 <= value <= _MOST_VERBOSE:
                raise _unfit(key, "an integer from 0", "unsigned-integer")
            change["verbose"] = value
        elif key in _SWITCHES:
            if not isinstance(value, bool):
                raise _unfit(key, "true or false", "boolean")
            change[_SWITCHES[key]] = value
        else:
            change["is_iso"] = _form(value)
    return LogChange(**change)


def _check_file(value: object, is_lenient: bool) -> None:
    if not isinstance(value, str) and not is_lenient:
        raise _unfit(_FILE, "a string", "string")
    if value or is_lenient:
        raise ServeError(
            Code.UNSUPPORTED,
            "The setting 'log_file' cannot be changed by a client. Say where the log goes when the server is started: "
            "redirect its standard error, or, with trivium tritonserver, give --log-file.",
            info=ErrorInfo.of(request_reasons.LOG_FILE),
        )


def _form(value: object) -> bool:
    if not isinstance(value, str):
        raise _unfit(_FORMAT, "a string", "string")
    if value not in _FORMS:
        raise ServeError(
            Code.INVALID,
            f"There is no log format {value[:80]!r}; there are: {', '.join(_FORMS)}. Correct it.",
            info=ErrorInfo.of(request_reasons.LOG_FORMAT, value=value),
        )
    return _FORMS[value]


def _unfit(key: str, expected: str, kind: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"The setting {key!r} must be {expected}. Correct it.",
        info=ErrorInfo.of(request_reasons.SETTING, key=key, expected=kind),
    )


def _unknown(key: str) -> ServeError:
    return ServeError(
        Code.INVALID, f"There is no setting {key[:80]!r}; there are: {', '.join(_KEYS)}. Correct it."
    )
