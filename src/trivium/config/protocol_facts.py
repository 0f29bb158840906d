"""Translates the configuration of a server to what its protocols know of it. Knows no protocol by name."""

import re
import socket
import time
from dataclasses import replace

from trivium.config.options import ServerConfig
from trivium.types.by_type import ByType
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import RegionViews
from trivium.types.listeners import Listener, Role, Transport
from trivium.types.protocol_context import ProtocolContext


def protocol_context(config: ServerConfig, name: str, version: str) -> ProtocolContext:
    """Gather the facts that are the same for every listener. The server calls itself `name`, unless an option says
    otherwise.
    """
    return ProtocolContext(
        server_name=config.server.name or name,
        server_version=version,
        may_change=config.is_loopback or config.security.open_management or bool(config.security.keys),
        shares_memory=config.security.client_shared_memory,
        max_unpacked_bytes=config.server.max_body_bytes,
        max_total_unpacked_bytes=config.server.max_buffered_bytes,
        restricted_apis=config.security.restricted_apis,
        restricted_rpcs=config.security.restricted_rpcs,
        has_duration_metrics=not config.metrics.no_duration_metrics,
        has_quantiles=bool(config.metrics.quantiles),
        has_first_part_metrics=config.metrics.first_part,
        has_vllm_metrics=config.metrics.vllm,
        own=config.own,
        strict_requests=config.server.strict_requests,
    )


def on_listener(
    context: ProtocolContext,
    config: ServerConfig,
    listener: Listener,
    regions: RegionViews | None,
    states: ByType,
) -> ProtocolContext:
    """Return the context with what holds on one listener; `states` are what the listeners of a server have in common.
    Management that listens apart, on this machine alone, may change things. Raises INVALID for options that cannot be.
    """
    is_http = listener.transport is Transport.HTTP
    forwards = (
        forwarded("--forward-headers", config.http.forward_headers)
        if is_http
        else forwarded("--forward-metadata", config.grpc.forward_metadata)
    )
    is_apart = listener.role is Role.MANAGEMENT and listener.bind.is_local
    return replace(
        context,
        may_change=context.may_change or is_apart,
        regions=regions,
        forwards=forwards,
        roles=listener.roles,
        now=time.monotonic,
        epoch=time.time,
        host=socket.gethostname(),
        states=states,
    )


def forwarded(option: str, text: str) -> re.Pattern[str] | None:
    """Return the pattern of header fields that become parameters; None for none. Raises INVALID for no pattern."""
    try:
        return re.compile(text) if text else None
    except re.error as error:
        words = f"{option} {text!r} is no regular expression: {error}. Correct it."
        raise ServeError(Code.INVALID, words) from error
