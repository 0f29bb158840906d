"""The trace flags of `tritonserver` as fields of our configuration.

Pure. Source: spec sheet `triton`, sections 1.1 and 4.12; refusals are worded as the original's. A setting of
`--trace-config` goes before its deprecated flag, of which each stands for one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trivium.types.errors import Code, ServeError

TRITON, OPEN_TELEMETRY = "triton", "opentelemetry"

_LEVELS: Mapping[str, str] = {
    **dict.fromkeys(("false", "off"), ""),
    **dict.fromkeys(("true", "on", "min", "max", "timestamps"), "timestamps"),
    "tensors": "tensors",
}
_GLOBAL = ("rate", "level", "mode", "count")
_FILES = ("file", "log-frequency")
_SPANS = ("url", "resource", "bsp_max_queue_size", "bsp_schedule_delay", "bsp_max_export_batch_size")
_KNOWN: Mapping[str, Sequence[str]] = {"": _GLOBAL, TRITON: _FILES, OPEN_TELEMETRY: _SPANS}
_FORM = "--trace-config option format is '<trace mode>,<setting>=<value>'. Got "
_URL = "http://localhost:4318/v1/traces"
_SERVICE = "service.name=triton-inference-server"
_DEFAULTS = {
    "bsp_max_queue_size": "2048",
    "bsp_schedule_delay": "5000",
    "bsp_max_export_batch_size": "512",
}


def trace_fields(values: Mapping[str, Any]) -> dict[str, object]:
    """Field -> value. Without a level nothing is traced; clients may give one."""
    told = list(_told(values["--trace-config"]))
    last = {(mode, key): value for mode, key, value in told}
    levels = {_level(text) for text in values["--trace-level"]}
    levels |= {_level(value) for mode, key, value in told if (mode, key) == ("", "level")}
    is_off = "" in levels  # whatever else is asked for
    fields: dict[str, object] = {
        "trace_levels": "" if is_off else ",".join(sorted(levels, reverse=True)),
        "trace_rate": _number("rate", last.get(("", "rate"), values["--trace-rate"])),
        "trace_count": _number("count", last.get(("", "count"), values["--trace-count"])),
    }
    if _mode(last.get(("", "mode"), TRITON)) == TRITON:
        frequency = last.get((TRITON, "log-frequency"), values["--trace-log-frequency"])
        return fields | {
            "trace_file": last.get((TRITON, "file"), values["--trace-file"]),
            "trace_frequency": _number("triton,log-frequency", frequency),
        }
    spans = _DEFAULTS | {key: value for (mode, key), value in last.items() if mode == OPEN_TELEMETRY}
    resource = [value for mode, key, value in told if (mode, key) == (OPEN_TELEMETRY, "resource")]
    return fields | {
        "trace_endpoint": spans.get("url", _URL),
        "trace_resource": ",".join((_SERVICE, *resource)),
        "trace_queue": _number("opentelemetry,bsp_max_queue_size", spans["bsp_max_queue_size"]),
        "trace_delay": _number("opentelemetry,bsp_schedule_delay", spans["bsp_schedule_delay"]) / 1000,
        "trace_batch": _number("opentelemetry,bsp_max_export_batch_size", spans["bsp_max_export_batch_size"]),
    }


def unused_traces(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the trace settings that have no effect, each with the reason."""
    fields = trace_fields(values)
    if fields["trace_levels"] and not (fields.get("trace_file") or fields.get("trace_endpoint")):
        return ("--trace-config level (there is no --trace-config triton,file to write traces to)",)
    given = [flag for flag in ("--trace-file", "--trace-log-frequency") if values[flag]]
    return tuple(f"{flag} (traces are sent to a collector)" for flag in given if "trace_endpoint" in fields)


def _told(texts: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Mode (empty for none), setting and value of each."""
    for text in texts:
        mode, comma, setting = text.partition(",")
        if not comma or "=" in mode:
            mode, setting = "", text
        elif not mode:
            raise ServeError(
                Code.INVALID,
                "No trace mode specified. --trace-config option format is <trace mode>,<setting>=<value> or "
                f"<setting>=<value>. Got {text}",
            )
        mode = _mode(mode) if mode else mode
        key, _, value = setting.partition("=")
        if not (key and value):
            raise ServeError(Code.INVALID, f"{_FORM}{text}")
        if key not in _KNOWN[mode]:
            name = f"{mode},{key}" if mode else key
            known = ", ".join(_KNOWN[mode])
            raise ServeError(
                Code.INVALID,
                f'Bad option: "--trace-config {name}".\nthere is no such setting; there are: {known}',
            )
        yield mode, key, value


def _mode(text: str) -> str:
    if text.lower() not in (TRITON, OPEN_TELEMETRY):
        raise ServeError(
            Code.INVALID,
            f'invalid value for trace mode option: {text}. Available options are "triton" and "opentelemetry"',
        )
    return text.lower()


def _level(text: str) -> str:
    if text.lower() not in _LEVELS:
        raise ServeError(Code.INVALID, f"invalid value for trace level option: {text}")
    return _LEVELS[text.lower()]


def _number(name: str, text: Any) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ServeError(
            Code.INVALID, f'Bad option: "--trace-config {name}".\nInvalid option value. Got {text}'
        ) from error
