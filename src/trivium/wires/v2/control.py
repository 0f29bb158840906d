"""Requests that ask for or change the state of the server (models, shared memory, settings) as operations, and how HTTP
frames them.

Source: spec sheet `triton`, sections 4.9 to 4.12. Whether a client may change anything is said by `KServeOptions`.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from trivium.codecs import data_reasons
from trivium.codecs.v2_bodies import decode_object
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.operations import (
    List,
    ListRegions,
    Live,
    Load,
    LogControl,
    Operation,
    RegisterRegion,
    SharedRegion,
    TraceControl,
    Unload,
    UnregisterRegion,
)
from trivium.types.spoken import spoken
from trivium.types.wire import Body, Target
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.routes import Verb
from trivium.wires.v2.settings import read_log_change
from trivium.wires.v2.trace_settings import read_json

_DEPENDENTS = "unload_dependents"
_FILE = "file:"
_HANDLE_BYTES = 64
_JSON_TYPES = {bool: "boolean", str: "string", int: "unsigned-integer"}


class Framing(msgspec.Struct, frozen=True):
    """Reads the parameters of a change as HTTP or gRPC frames them. `config`, `file` and `switch` return the value of
    one, by its name, and raise for another type; `unknown` makes the error for one that there is not. `carrier` is the
    word for what carries tensors.
    """

    config: Callable[[str, Any], str]
    file: Callable[[str, Any], bytes]
    switch: Callable[[str, Any], bool]
    unknown: Callable[[str, str], ServeError]
    carrier: str


def operation_of(verb: str, name: str, fields: Mapping[str, Any], framing: Framing) -> Operation:
    """Return what is asked of a model or a region of this name, over HTTP or gRPC. INVALID, UNSUPPORTED or NOT_FOUND.

    The fields have their types: `ready`, `parameters`, `key`, `offset`, `byte_size`, and `fault`, the reason why a
    region of a device cannot be.
    """
    match verb:
        case Verb.INDEX:
            return List(fields["ready"])
        case Verb.LOAD:
            return _load(name, fields["parameters"], framing)
        case Verb.UNLOAD:
            return _unload(name, fields["parameters"], framing)
        case Verb.REGIONS:
            return ListRegions(name)
        case Verb.REGISTER:
            return RegisterRegion(SharedRegion(name, fields["key"], fields["offset"], fields["byte_size"]))
        case Verb.UNREGISTER:
            return UnregisterRegion(name)
        case Verb.DEVICE_REGISTER:
            raise ServeError(
                Code.UNSUPPORTED,
                f"The CUDA shared memory {name[:80]!r} cannot be registered: tensors are taken from the CPU's memory "
                f"alone. Send them in the {framing.carrier}, or in system shared memory.",
                info=ErrorInfo.of(fields.get("fault", request_reasons.NO_DEVICE), region=name),
            )
        case Verb.DEVICE_REGIONS if name:
            raise ServeError(
                Code.NOT_FOUND,
                f"There is no CUDA shared memory region {name[:80]!r}: none can be registered here.",
                info=ErrorInfo.of(request_reasons.UNKNOWN_DEVICE_REGION, region=name),
            )
    return Live()  # there is none on any device, whatever it is called


def _load(model: str, parameters: Mapping[str, Any], framing: Framing) -> Load:
    config: str | None = None
    files: dict[str, bytes] = {}
    for name, value in parameters.items():
        if name == "config":
            config = framing.config(name, value)
        elif name.startswith(_FILE):
            files[name.removeprefix(_FILE)] = framing.file(name, value)
        else:
            raise framing.unknown("load", name)
    if files and config is None:
        raise ServeError(
            Code.INVALID,
            "Files were sent without the parameter 'config': they take the place of the whole folder, its "
            "configuration too. Send both.",
            info=ErrorInfo.of(request_reasons.UNREADABLE, model=model),
        )
    return Load(model, config, files)


def _unload(model: str, parameters: Mapping[str, Any], framing: Framing) -> Unload:
    for name in parameters:
        if name != _DEPENDENTS:
            raise framing.unknown("unload", name)
    return Unload(model, _DEPENDENTS in parameters and framing.switch(_DEPENDENTS, parameters[_DEPENDENTS]))


# -- over HTTP ---------------------------------------------------------------------------------------------


def decode_control(target: Target, body: Body, abilities: KServeOptions) -> Operation:
    """The operation of a target with one of these verbs. INVALID, UNSUPPORTED, or FORBIDDEN."""
    if target.verb in (Verb.LOG_SETTINGS, Verb.TRACE_SETTINGS):
        return _setting(target, body, abilities)
    return operation_of(target.verb, target.model, _fields(target, body, abilities), _HTTP)


def _fields(target: Target, body: Body, abilities: KServeOptions) -> dict[str, Any]:
    match target.verb:
        case Verb.INDEX:
            return {"ready": _taken(decode_object(body.data, "index request"), "ready", bool, False)}
        case Verb.LOAD | Verb.UNLOAD:
            _check_may_change(target, abilities)
            given = decode_object(body.data, f"{target.verb} request")
            return {"parameters": _taken(given, "parameters", dict, {})}
        case Verb.REGISTER:
            return _region(decode_object(body.data, "register request"))
        case Verb.DEVICE_REGISTER:
            return {"fault": _device_fault(body)}
    return {}


def _region(fields: dict[str, Any]) -> dict[str, Any]:
    for key in ("key", "byte_size"):
        if key not in fields:
            raise ServeError(
                Code.INVALID,
                f"The register request has no {key!r}; it takes key, byte_size and offset. Give it.",
                info=ErrorInfo.of(request_reasons.NO_MEMBER, key=key),
            )
    kinds: tuple[tuple[str, type, Any], ...] = (("key", str, ""), ("offset", int, 0), ("byte_size", int, 0))
    return {key: _taken(fields, key, kind, default) for key, kind, default in kinds}


def _device_fault(body: Body) -> str:
    """Return the reason of another fault if there is one: a handle of CUDA has 64 bytes."""
    handle = decode_object(body.data, "register request").get("raw_handle")
    text = handle.get("b64") if isinstance(handle, dict) else None
    try:
        size = len(base64.b64decode(text)) if isinstance(text, str) else 0
    except (binascii.Error, ValueError):
        size = 0
    return request_reasons.NO_DEVICE if size == _HANDLE_BYTES else request_reasons.NO_HANDLE


def _setting(target: Target, body: Body, abilities: KServeOptions) -> Operation:
    fields = decode_object(body.data, "settings request") if target.takes_body else {}
    if target.takes_body:
        _check_may_change(target, abilities)
    if target.verb == Verb.LOG_SETTINGS:
        return LogControl(read_log_change(fields, abilities.as_original))
    return TraceControl(target.model, read_json(fields, abilities.as_original))


def _check_may_change(target: Target, abilities: KServeOptions) -> None:
    """Refuse a change, unless the route is restricted: whoever got this far has shown its key."""
    if not abilities.may_change and target.verb not in abilities.restricted:
        raise ServeError(
            Code.FORBIDDEN,
            spoken(
                "This server listens beyond its own machine, and whoever reaches it may not load, unload or change "
                "anything. Have it listen on loopback alone, or start it with --restricted-apis and send the key."
            ),
        )


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ServeError(
            Code.INVALID,
            f"The load parameter {name[:80]!r} is no string. Send it as one.",
            info=ErrorInfo.of(request_reasons.LOAD_TYPE, key=name, expected="string_param"),
        )
    return value


def _file(name: str, value: Any) -> bytes:
    try:
        return base64.b64decode(_text(name, value), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ServeError(
            Code.INVALID, f"The load parameter {name[:80]!r} is no base64: {error}. Encode the file so."
        ) from error


def _switch(name: str, value: Any) -> bool:
    return bool(_taken({name: value}, name, bool, False))


def _unknown(verb: str, name: str) -> ServeError:
    if verb == "unload":
        known, info = f"is '{_DEPENDENTS}'", None
    else:
        known, info = (
            "are 'config' and 'file:VERSION/NAME'",
            ErrorInfo.of(request_reasons.LOAD_PARAMETER, key=name),
        )
    return ServeError(
        Code.INVALID,
        f"There is no {verb} parameter {name[:80]!r}; there {known}. Correct it.",
        info=info,
    )


def _taken(fields: dict[str, Any], key: str, kind: type, default: Any) -> Any:
    """The value of a key, of just that type; whole numbers are not negative."""
    value: Any = fields.get(key, default)
    if type(value) is not kind or (isinstance(value, int) and not 0 <= value < 2**63):
        expected = {bool: "true or false", dict: "an object", str: "a string", int: "an integer from 0"}[kind]
        facts = (
            ErrorInfo.of(data_reasons.NO_OBJECT)
            if kind is dict
            else ErrorInfo.of(request_reasons.SETTING, key=key, expected=_JSON_TYPES[kind])
        )
        raise ServeError(Code.INVALID, f"{key!r} must be {expected}. Correct it.", info=facts)
    return value


_HTTP = Framing(_text, _file, _switch, _unknown, "body")
