"""Decides how much of a control group's memory the server itself may hold, where its options do not say. Pure.

The defaults are made for a machine. Of what a container may have, the models need most: what the server holds for
requests, in memory and in files of its scratch folder, which may be memory too, gets a share of it at most.
"""

from dataclasses import replace
from typing import Any

from trivium.config.options import ServerConfig

_SERVER = {"max_buffered_bytes": 8}
_MODELS = {"deferred_bytes": 16, "unread_memory": 32, "unread_disk": 8}
"""Options of a group by their names within it -> the divisor of the memory that gives the most they are by default."""


def within_memory(config: ServerConfig, memory: int | None) -> ServerConfig:
    """Return a configuration whose defaults fit into so many bytes; what somebody has set stays as it is. One body fits
    into what all of them together may be.
    """
    if memory is None:
        return config
    server, models = config.server, config.models
    server = replace(server, **_lowered(server, _SERVER, config, memory))
    models = replace(models, **_lowered(models, _MODELS, config, memory))
    if "max_body_bytes" not in config.origins:
        server = replace(server, max_body_bytes=min(server.max_body_bytes, server.max_buffered_bytes))
    elif "max_buffered_bytes" not in config.origins:
        server = replace(server, max_buffered_bytes=max(server.max_body_bytes, server.max_buffered_bytes))
    return replace(config, server=server, models=models)


def _lowered(section: object, shares: dict[str, int], config: ServerConfig, memory: int) -> dict[str, Any]:
    return {
        name: min(getattr(section, name), memory // divisor)
        for name, divisor in shares.items()
        if name not in config.origins
    }
