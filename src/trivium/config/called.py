"""Reads a configuration for a server that another program's server calls, whose sockets those are. Pure."""

from dataclasses import replace

from trivium.config.options import ServerConfig
from trivium.config.schema import ConfigSchema
from trivium.types.listeners import is_loopback

_WIDE = "0.0.0.0"
_GROUPS = frozenset({"grpc", "management"})
_NAMES = frozenset(
    {
        "host",
        "console_port",
        "http_port",
        "no_http",
        "http_socket",
        "reuse_http_port",
        "idle_timeout",
        "header_timeout",
        "half_close_wait",
        "metrics_port",
        "metrics_host",
        "keystore_password",
    }
)
"""Options of addresses, connections and certificates."""


def without_effect(schema: ConfigSchema, config: ServerConfig) -> str:
    """Return what is wrong with a configuration that sets what the calling server decides; empty for nothing."""
    given = [
        name
        for name in config.origins
        if name in _NAMES or "_tls_" in name or schema.options[name].group in _GROUPS
    ]
    if not given:
        return ""
    one = len(given) == 1
    return (
        f"{', '.join(given)} {'has' if one else 'have'} no effect here: the server that runs the application listens, "
        f"and it speaks HTTP alone. Leave {'it' if one else 'them'} out, and set addresses and certificates there."
    )


def as_reached(config: ServerConfig) -> ServerConfig:
    """Return a configuration that says who reaches the server: with `open` anybody may, as on all addresses."""
    if not config.security.open or not is_loopback(config.server.host):
        return config
    return replace(config, server=replace(config.server, host=_WIDE))
