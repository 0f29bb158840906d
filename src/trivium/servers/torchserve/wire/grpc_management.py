"""Reads the RPCs that manage TorchServe's models, as the same requests that come over HTTP.

Source: spec sheet `torchserve`, section 7, and what 0.12.0 answers. A number that is not given is 0, and counts as not
given, but for the limit of a list.
"""

from collections.abc import Mapping
from typing import Any

from trivium.servers.torchserve.wire.grpc_messages import read
from trivium.servers.torchserve.wire.management import FramedRequest, ManagementRequest, read_management
from trivium.servers.torchserve.wire.management_errors import missing
from trivium.servers.torchserve.wire.management_options import ManagementOptions
from trivium.servers.torchserve.wire.management_routes import ManagementVerb as Verb

MANAGEMENT_RPCS: Mapping[str, Verb] = {
    "DescribeModel": Verb.DESCRIBE,
    "ListModels": Verb.LIST,
    "RegisterModel": Verb.REGISTER,
    "ScaleWorker": Verb.SCALE,
    "SetDefault": Verb.SET_DEFAULT,
    "UnregisterModel": Verb.UNREGISTER,
}
"""RPC -> what it asks for."""

_ZERO_COUNTS = ("limit",)


def decode_rpc(name: str, message: bytes, request_id: str, options: ManagementOptions) -> ManagementRequest:
    """The request of an RPC. Raises ServeError."""
    verb, given = MANAGEMENT_RPCS[name], _arguments(read(f"{name}Request", message))
    model = given.get("model_name", "")
    if verb is Verb.UNREGISTER and not model:  # observed on 0.12.0
        raise missing("url", "The request names no model. Set its model_name.")
    return read_management(
        FramedRequest(verb, model, given.get("model_version", ""), given, request_id), options
    )


def _arguments(request: Any) -> dict[str, str]:
    """Return the fields of a message as text: those that are given, and every truth value."""
    values = {field.name: getattr(request, field.name) for field in request.DESCRIPTOR.fields}
    return {name: _text(value) for name, value in values.items() if _is_given(name, value)}


def _is_given(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return True
    if isinstance(value, int):
        return value > 0 or (value == 0 and name in _ZERO_COUNTS)
    return bool(value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
