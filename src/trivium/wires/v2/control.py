"""The routes that ask for or change the state of the server: models, shared memory, settings; bodies -> operations.

Source: spec sheet `triton`, sections 4.9 to 4.12. Whether a client may change anything is said by `KServeOptions`.
"""

import base64
import binascii
from typing import Any

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
from trivium.types.wire import Body, Target
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.routes import Verb
from trivium.wires.v2.settings import read_log_change
from trivium.wires.v2.trace_settings import read_json

_FILE = "file:"
_HANDLE_BYTES = 64
_JSON_TYPES = {bool: "boolean", str: "string", int: "unsigned-integer"}


def decode_control(target: Target, body: Body, abilities: KServeOptions) -> Operation:
    """The operation of a target with one of these verbs. INVALID, UNSUPPORTED, or FORBIDDEN."""
    match target.verb:
        case Verb.INDEX:
            return List(_taken(decode_object(body.data, "index request"), "ready", bool, False))
        case Verb.LOAD | Verb.UNLOAD:
            _check_may_change(target, abilities)
            parameters = _taken(decode_object(body.data, f"{target.verb} request"), "parameters", dict, {})
            return (_load if target.verb == Verb.LOAD else _unload)(target.model, parameters)
        case Verb.REGIONS:
            return ListRegions(target.model)
        case Verb.REGISTER | Verb.UNREGISTER:
            is_new = target.verb == Verb.REGISTER
            return _register(target.model, body) if is_new else UnregisterRegion(target.model)
        case Verb.DEVICE_REGISTER:
            raise ServeError(
                Code.UNSUPPORTED,
                f"The CUDA shared memory {target.model!r} cannot be registered: tensors are taken from the CPU's "
                "memory alone. Send them in the body, or in system shared memory.",
                info=_device_fault(target.model, body),
            )
        case Verb.DEVICE_REGIONS if target.model:
            raise ServeError(
                Code.NOT_FOUND,
                f"There is no CUDA shared memory region {target.model!r}: none can be registered here.",
                info=ErrorInfo.of(request_reasons.UNKNOWN_DEVICE_REGION, region=target.model),
            )
        case Verb.DEVICE_REGIONS | Verb.DEVICE_UNREGISTER:
            return Live()  # there is none, whatever it is called
        case _:
            return _setting(target, body, abilities)


def _device_fault(region: str, body: Body) -> ErrorInfo:
    """Return a fault of another kind if there is one: a handle of CUDA has 64 bytes."""
    handle = decode_object(body.data, "register request").get("raw_handle")
    text = handle.get("b64") if isinstance(handle, dict) else None
    try:
        size = len(base64.b64decode(text)) if isinstance(text, str) else 0
    except (binascii.Error, ValueError):
        size = 0
    return ErrorInfo.of(
        request_reasons.NO_DEVICE if size == _HANDLE_BYTES else request_reasons.NO_HANDLE, region=region
    )


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
            "This server listens beyond its own machine, and whoever reaches it may not load, unload or change "
            "anything. Have it listen on loopback alone, or start it with --restricted-apis and send the key.",
        )


def _load(model: str, parameters: dict[str, Any]) -> Load:
    config: str | None = None
    files: dict[str, bytes] = {}
    for name, value in parameters.items():
        if name != "config" and not name.startswith(_FILE):
            raise ServeError(
                Code.INVALID,
                f"There is no load parameter {name[:80]!r}; there are 'config' and 'file:VERSION/NAME'. Correct it.",
                info=ErrorInfo.of(request_reasons.LOAD_PARAMETER, key=name),
            )
        if not isinstance(value, str):
            raise ServeError(
                Code.INVALID,
                f"The load parameter {name[:80]!r} is no string. Send it as one.",
                info=ErrorInfo.of(request_reasons.LOAD_TYPE, key=name, expected="string_param"),
            )
        if name == "config":
            config = value
        else:
            files[name.removeprefix(_FILE)] = _file(name, value)
    if files and config is None:
        raise ServeError(
            Code.INVALID,
            "Files were sent without the parameter 'config': they take the place of the whole folder, its "
            "configuration too. Send both.",
            info=ErrorInfo.of(request_reasons.UNREADABLE, model=model),
        )
    return Load(model, config, files)


def _file(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ServeError(
            Code.INVALID, f"The load parameter {name[:80]!r} is no base64: {error}. Encode the file so."
        ) from error


def _unload(model: str, parameters: dict[str, Any]) -> Unload:
    unknown = [name for name in parameters if name != "unload_dependents"]
    if unknown:
        raise ServeError(
            Code.INVALID,
            f"There is no unload parameter {unknown[0][:80]!r}; there is 'unload_dependents'. Correct it.",
        )
    return Unload(model, _taken(parameters, "unload_dependents", bool, False))


def _register(name: str, body: Body) -> RegisterRegion:
    fields = decode_object(body.data, "register request")
    for key in ("key", "byte_size"):
        if key not in fields:
            raise ServeError(
                Code.INVALID,
                f"The register request has no {key!r}; it takes key, byte_size and offset. Give it.",
                info=ErrorInfo.of(request_reasons.NO_MEMBER, key=key),
            )
    key = _taken(fields, "key", str, "")
    return RegisterRegion(
        SharedRegion(name, key, _taken(fields, "offset", int, 0), _taken(fields, "byte_size", int, 0))
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
