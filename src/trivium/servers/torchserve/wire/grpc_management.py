"""Reads the RPCs that manage TorchServe's models, as the same requests that come over HTTP.

Source: spec sheet `torchserve`, section 7, and what 0.12.0 answers. A number that is not given is 0, and counts as not
given, but for the limit of a list.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from trivium.servers.torchserve.wire import management
from trivium.servers.torchserve.wire.grpc_messages import read
from trivium.servers.torchserve.wire.management import ManagementRequest, TorchServeParameters
from trivium.servers.torchserve.wire.management_errors import missing
from trivium.servers.torchserve.wire.management_options import ManagementOptions
from trivium.types.access import AccessScope

Reader = Callable[[Any, str, ManagementOptions], ManagementRequest]
"""Makes a request of a message, the id of the request and the options."""

_NUMBERS = ("batch_size", "initial_workers", "max_batch_delay", "response_timeout", "startup_timeout")
_TEXTS = ("handler", "model_name", "runtime", "url")


class ManagementRpc(msgspec.Struct, frozen=True):
    """One RPC: its message, what reads it, and the right that it needs."""

    message: str
    read: Reader
    scope: AccessScope = AccessScope.MANAGE


def _register(request: Any, request_id: str, options: ManagementOptions) -> ManagementRequest:
    values = {name: text for name in _TEXTS if (text := getattr(request, name))}
    values |= {name: str(number) for name in _NUMBERS if (number := getattr(request, name)) > 0}
    values |= {name: "true" for name in ("synchronous", "s3_sse_kms") if getattr(request, name)}
    return management.register(TorchServeParameters(values), options, waits=False)


def _scale(request: Any, request_id: str, options: ManagementOptions) -> ManagementRequest:
    least = request.min_worker if request.min_worker > 0 else 1
    most = request.max_worker if request.max_worker > 0 else least
    return management.scale(
        request.model_name, request.model_version, least, most, request.synchronous, options
    )


def _describe(request: Any, request_id: str, options: ManagementOptions) -> ManagementRequest:
    return management.describe(
        request.model_name, request.model_version, {} if request.customized else None, request_id, options
    )


def _list(request: Any, request_id: str, options: ManagementOptions) -> ManagementRequest:
    return management.list_models(request.limit, request.next_page_token, options)


def _set_default(request: Any, request_id: str, options: ManagementOptions) -> ManagementRequest:
    return management.set_default(request.model_name, request.model_version, options)


def _unregister(request: Any, request_id: str, options: ManagementOptions) -> ManagementRequest:
    if not request.model_name:  # observed on 0.12.0
        raise missing("url", "The request names no model. Set its model_name.")
    return management.unregister(request.model_name, request.model_version, options)


MANAGEMENT_RPCS: Mapping[str, ManagementRpc] = {
    "DescribeModel": ManagementRpc("DescribeModelRequest", _describe, AccessScope.OBSERVE),
    "ListModels": ManagementRpc("ListModelsRequest", _list, AccessScope.OBSERVE),
    "RegisterModel": ManagementRpc("RegisterModelRequest", _register),
    "ScaleWorker": ManagementRpc("ScaleWorkerRequest", _scale),
    "SetDefault": ManagementRpc("SetDefaultRequest", _set_default),
    "UnregisterModel": ManagementRpc("UnregisterModelRequest", _unregister),
}
"""RPC -> what reads it."""


def decode_rpc(name: str, message: bytes, request_id: str, options: ManagementOptions) -> ManagementRequest:
    """The request of an RPC. Raises ServeError."""
    rpc = MANAGEMENT_RPCS[name]
    return rpc.read(read(rpc.message, message), request_id, options)
