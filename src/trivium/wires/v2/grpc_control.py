"""The RPCs that ask for or change the state of the server: models, shared memory, settings; messages -> operations.

Source: spec sheet `triton`, sections 5.2 and 5.3. Whether a client may change anything is said by `KServeOptions`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from google.protobuf.message import Message

from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, anew, frameless
from trivium.types.operations import Answer, Live, LogControl, Operation, TraceControl
from trivium.wires.v2 import grpc_documents as documents
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.control import Framing, operation_of
from trivium.wires.v2.grpc_infer_request import values_of
from trivium.wires.v2.routes import Verb
from trivium.wires.v2.service_messages import (
    LogSettingsMessage,
    Parameter,
    TraceSettingsMessage,
    parse,
)
from trivium.wires.v2.settings import read_log_change
from trivium.wires.v2.trace_settings import read_rpc

Reading = tuple[Operation, Callable[[Answer], Message]]

_RPCS: Mapping[str, Verb] = {
    "RepositoryIndex": Verb.INDEX,
    "RepositoryModelLoad": Verb.LOAD,
    "RepositoryModelUnload": Verb.UNLOAD,
    "SystemSharedMemoryStatus": Verb.REGIONS,
    "SystemSharedMemoryRegister": Verb.REGISTER,
    "SystemSharedMemoryUnregister": Verb.UNREGISTER,
    "CudaSharedMemoryStatus": Verb.DEVICE_REGIONS,
    "CudaSharedMemoryRegister": Verb.DEVICE_REGISTER,
}
"""RPC -> what it asks for."""

_WRITERS = {Verb.INDEX: documents.index, Verb.REGIONS: documents.regions}
"""What writes the answers that say more than that it was done."""

_KNOWN = {"load": "'config' and 'file:VERSION/NAME'", "unload": "'unload_dependents'"}


def readers(abilities: KServeOptions) -> Mapping[str, Callable[[bytes], Reading]]:
    """Name of an RPC -> what reads its request. INVALID, UNSUPPORTED, or FORBIDDEN."""
    unregistered = documents.nothing("CudaSharedMemoryUnregisterResponse")
    return {
        **{name: partial(_read, name, abilities) for name in _RPCS},
        # There is none on any device, whatever it is called.
        "CudaSharedMemoryUnregister": lambda data: (Live(), unregistered),
        "TraceSetting": lambda data: _trace(data, abilities),
        "LogSettings": lambda data: _log(data, abilities),
    }


def _read(rpc: str, abilities: KServeOptions, data: bytes) -> Reading:
    verb = _RPCS[rpc]
    if verb in (Verb.LOAD, Verb.UNLOAD):
        _check_may_change(abilities)
    request = parse(f"{rpc}Request", data)
    fields = {field.name: getattr(request, field.name) for field in request.DESCRIPTOR.fields}
    _check_repository(fields.get("repository_name", ""))
    if "parameters" in fields:
        fields["parameters"] = values_of(fields["parameters"])
    name = fields.get("model_name") or fields.get("name", "")
    write = _WRITERS.get(verb) or documents.nothing(f"{rpc}Response")
    return operation_of(verb, name, fields, _GRPC), write


def _trace(data: bytes, abilities: KServeOptions) -> Reading:
    request = cast(TraceSettingsMessage, parse("TraceSettingRequest", data))
    if request.settings:
        _check_may_change(abilities)
    settings = {key: list(setting.value) for key, setting in request.settings.items()}
    try:
        change = read_rpc(settings, abilities.as_original)
    except ServeError as error:
        if not request.model_name:
            raise
        return TraceControl(request.model_name), _refusing(
            frameless(error)
        )  # one that is not there is told of first
    return TraceControl(request.model_name, change), documents.trace_settings


def _refusing(error: ServeError) -> Callable[[Answer], Message]:
    def write(answer: Answer) -> Message:
        raise anew(error)

    return write


def _log(data: bytes, abilities: KServeOptions) -> Reading:
    request = cast(LogSettingsMessage, parse("LogSettingsRequest", data))
    settings: Mapping[str, Parameter] = request.settings
    if settings:
        _check_may_change(abilities)
    change = read_log_change(values_of(settings), abilities.as_original)
    return LogControl(change), documents.log_settings


def _check_may_change(abilities: KServeOptions) -> None:
    if not abilities.may_change:
        raise ServeError(
            Code.FORBIDDEN,
            "This server listens beyond its own machine, and whoever reaches it may not load, unload or change "
            "anything. Change its folders and start it again, or have it listen on loopback alone.",
        )


def _check_repository(name: str) -> None:
    if name:
        raise ServeError(
            Code.UNSUPPORTED,
            f"'repository_name' specification is not supported; it is {name[:80]!r}. Leave it out: all repositories "
            "are one.",
            info=ErrorInfo.of(request_reasons.NAMED_REPOSITORY),
        )


def _typed(kind: type, field: str, verb: str) -> Callable[[str, Any], Any]:
    """Return what takes a value of just one field of a parameter."""

    def read(name: str, value: Any) -> Any:
        if not isinstance(value, kind):
            raise ServeError(
                Code.INVALID,
                f"invalid value type for {verb} parameter {name[:80]!r}, expected {field}. Correct it.",
                info=ErrorInfo.of(request_reasons.LOAD_TYPE, key=name, expected=field),
            )
        return value

    return read


def _unknown(verb: str, name: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"There is no {verb} parameter {name[:80]!r}; there are: {_KNOWN[verb]}. Correct it.",
        info=ErrorInfo.of(request_reasons.LOAD_PARAMETER, key=name),
    )


_GRPC = Framing(
    _typed(str, "string_param", "load"),
    _typed(bytes, "bytes_param", "load"),
    _typed(bool, "bool_param", "unload"),
    _unknown,
    "message",
)
