"""Translates the configuration of a server to what its protocols know of it. Knows no protocol by name."""

import re

from trivium.config.options import ServerConfig
from trivium.types.errors import Code, ServeError
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
    )


def forwarded(option: str, text: str) -> re.Pattern[str] | None:
    """Return the pattern of header fields that become parameters; None for none. Raises INVALID for no pattern."""
    try:
        return re.compile(text) if text else None
    except re.error as error:
        words = f"{option} {text!r} is no regular expression: {error}. Correct it."
        raise ServeError(Code.INVALID, words) from error
