"""The RPCs that ask for or change the state of the server: models, shared memory, settings; messages -> operations.

Source: spec sheet `triton`, sections 5.2 and 5.3. Whether a client may change anything is said by `KServeOptions`.
"""

from collections.abc import Callable, Mapping
from typing import cast

from google.protobuf.message import Message

from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, anew, frameless
from trivium.types.operations import (
    Answer,
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
from trivium.wires.v2 import grpc_documents as documents
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.grpc_infer_request import values_of
from trivium.wires.v2.service_messages import (
    IndexRequest,
    LogSettingsMessage,
    Parameter,
    Region,
    RepositoryChange,
    TraceSettingsMessage,
    parse,
)
from trivium.wires.v2.settings import read_log_change
from trivium.wires.v2.trace_settings import read_rpc

Reading = tuple[Operation, Callable[[Answer], Message]]

_FILE = "file:"


def readers(abilities: KServeOptions) -> Mapping[str, Callable[[bytes], Reading]]:
    """Name of an RPC -> what reads its request. INVALID, UNSUPPORTED, or FORBIDDEN."""
    return {
        "RepositoryIndex": _index,
        "RepositoryModelLoad": lambda data: _load(data, abilities),
        "RepositoryModelUnload": lambda data: _unload(data, abilities),
        "SystemSharedMemoryStatus": _regions,
        "SystemSharedMemoryRegister": _register,
        "SystemSharedMemoryUnregister": _unregister,
        # There is none on any device, whatever it is called.
        "CudaSharedMemoryStatus": _device_regions,
        "CudaSharedMemoryRegister": _register_on_device,
        "CudaSharedMemoryUnregister": lambda data: (
            Live(),
            documents.nothing("CudaSharedMemoryUnregisterResponse"),
        ),
        "TraceSetting": lambda data: _trace(data, abilities),
        "LogSettings": lambda data: _log(data, abilities),
    }


def _index(data: bytes) -> Reading:
    request = cast(IndexRequest, parse("RepositoryIndexRequest", data))
    _check_repository(request.repository_name)
    return List(request.ready), documents.index


def _load(data: bytes, abilities: KServeOptions) -> Reading:
    request = _change("RepositoryModelLoadRequest", data, abilities)
    config: str | None = None
    files: dict[str, bytes] = {}
    for name, value in values_of(request.parameters).items():
        if name == "config":
            if not isinstance(value, str):
                raise _unfit("load", name, "string_param")
            config = value
        elif name.startswith(_FILE):
            if not isinstance(value, bytes):
                raise _unfit("load", name, "bytes_param")
            files[name.removeprefix(_FILE)] = value
        else:
            raise _unknown("load", name, "'config' and 'file:VERSION/NAME'")
    if files and config is None:
        raise ServeError(
            Code.INVALID,
            "Files were sent without the parameter 'config': they take the place of the whole folder, its "
            "configuration too. Send both.",
            info=ErrorInfo.of(request_reasons.UNREADABLE, model=request.model_name),
        )
    return Load(request.model_name, config, files), documents.nothing("RepositoryModelLoadResponse")


def _unload(data: bytes, abilities: KServeOptions) -> Reading:
    request = _change("RepositoryModelUnloadRequest", data, abilities)
    with_dependents = False
    for name, value in values_of(request.parameters).items():
        if name != "unload_dependents":
            raise _unknown("unload", name, "'unload_dependents'")
        if not isinstance(value, bool):
            raise _unfit("unload", name, "bool_param")
        with_dependents = value
    operation = Unload(request.model_name, with_dependents)
    return operation, documents.nothing("RepositoryModelUnloadResponse")


def _change(name: str, data: bytes, abilities: KServeOptions) -> RepositoryChange:
    _check_may_change(abilities)
    request = cast(RepositoryChange, parse(name, data))
    _check_repository(request.repository_name)
    return request


def _regions(data: bytes) -> Reading:
    request = cast(Region, parse("SystemSharedMemoryStatusRequest", data))
    return ListRegions(request.name), documents.regions


def _register(data: bytes) -> Reading:
    request = cast(Region, parse("SystemSharedMemoryRegisterRequest", data))
    region = SharedRegion(request.name, request.key, request.offset, request.byte_size)
    return RegisterRegion(region), documents.nothing("SystemSharedMemoryRegisterResponse")


def _unregister(data: bytes) -> Reading:
    request = cast(Region, parse("SystemSharedMemoryUnregisterRequest", data))
    return UnregisterRegion(request.name), documents.nothing("SystemSharedMemoryUnregisterResponse")


def _register_on_device(data: bytes) -> Reading:
    request = cast(Region, parse("CudaSharedMemoryRegisterRequest", data))
    raise ServeError(
        Code.UNSUPPORTED,
        f"The CUDA shared memory {request.name[:80]!r} cannot be registered: tensors are taken from the CPU's memory "
        "alone. Send them in the message, or in system shared memory.",
        info=ErrorInfo.of(request_reasons.NO_DEVICE, region=request.name),
    )


def _device_regions(data: bytes) -> Reading:
    request = cast(Region, parse("CudaSharedMemoryStatusRequest", data))
    if request.name:
        raise ServeError(
            Code.NOT_FOUND,
            f"There is no CUDA shared memory region {request.name[:80]!r}: none can be registered here.",
            info=ErrorInfo.of(request_reasons.UNKNOWN_DEVICE_REGION, region=request.name),
        )
    return Live(), documents.nothing("CudaSharedMemoryStatusResponse")


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


def _unfit(verb: str, name: str, expected: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"invalid value type for {verb} parameter {name[:80]!r}, expected {expected}. Correct it.",
        info=ErrorInfo.of(request_reasons.LOAD_TYPE, key=name, expected=expected),
    )


def _unknown(verb: str, name: str, known: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"There is no {verb} parameter {name[:80]!r}; there are: {known}. Correct it.",
        info=ErrorInfo.of(request_reasons.LOAD_PARAMETER, key=name),
    )
