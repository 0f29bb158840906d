"""Chooses the adapter for a model of Triton's Python backend."""

from trivium_worker.runtime.adapter import Adapter, Host, Setup


def ADAPTER(setup: Setup, host: Host) -> Adapter:
    """Make the adapter of a model."""
    from trivium_worker.dialects.triton.handler import TritonAdapter

    return TritonAdapter(setup, host)
