"""Chooses the adapter for a typed handler."""

from trivium_worker.runtime.adapter import Adapter, Host, Setup


def ADAPTER(setup: Setup, host: Host) -> Adapter:
    """Make the adapter for one call at a time, or that for an async function."""
    if setup.settings.get("in_flight"):
        from trivium_worker.dialects.typed.asynchronous import AsyncTypedAdapter  # few workers need asyncio

        return AsyncTypedAdapter(setup, host)
    from trivium_worker.dialects.typed.handler import TypedAdapter

    return TypedAdapter(setup, host)
