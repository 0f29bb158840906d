"""Restricted RPCs: groups of them that are served only to who sends metadata with the right value.

Source: spec sheet `triton`, sections 1.1 and 4.14. The groups are those of `restricted`, over HTTP; which RPC belongs
to which is said here and nowhere else.
"""

from collections.abc import Mapping

from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.wire import RpcCall
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.restricted import Key, parse_rules

_SERVICE = "/inference.GRPCInferenceService/"

_GROUPS: Mapping[str, tuple[str, ...]] = {
    "health": ("ServerLive", "ServerReady", "ModelReady"),
    "metadata": ("ServerMetadata", "ModelMetadata"),
    "inference": ("ModelInfer", "ModelStreamInfer"),
    "shared-memory": (
        "SystemSharedMemoryStatus",
        "SystemSharedMemoryRegister",
        "SystemSharedMemoryUnregister",
        "CudaSharedMemoryStatus",
        "CudaSharedMemoryRegister",
        "CudaSharedMemoryUnregister",
    ),
    "model-config": ("ModelConfig",),
    "model-repository": ("RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload"),
    "statistics": ("ModelStatistics",),
    "trace": ("TraceSetting",),
    "logging": ("LogSettings",),
}
_HEALTH = "/grpc.health.v1.Health/Check"

RpcRestrictions = Mapping[str, Key]
"""By method, as its whole path."""


def parse_rpc_restrictions(text: str) -> dict[str, Key]:
    """Read `--restricted-rpcs` as `restricted.parse_restrictions` does its text. INVALID likewise."""
    keys: dict[str, Key] = {}
    for group, key in parse_rules(text, "--restricted-rpcs", _GROUPS):
        keys |= dict.fromkeys((_SERVICE + name for name in _GROUPS[group]), key)
        if group == "health":
            keys[_HEALTH] = key
    return keys


def check_rpc_key(call: RpcCall, restrictions: RpcRestrictions) -> None:
    """Nothing for a method that is open, or opened by this call; else FORBIDDEN, and RESTRICTED_API."""
    key = restrictions.get(call.method)
    if key is not None and not key.opens(call):
        raise ServeError(
            Code.FORBIDDEN,
            f"This RPC is restricted: send the metadata {key.header!r} with the value that this server was started "
            "with.",
            info=ErrorInfo.of(request_reasons.RESTRICTED_API, header=key.header),
        )
