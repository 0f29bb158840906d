"""Chooses the adapter for a model of Triton's Python backend."""

from trivium_child.adapter import Adapter, Host, Setup


def ADAPTER(setup: Setup, host: Host) -> Adapter:
    """Make the adapter of a model."""
    from trivium_child.triton_handler import TritonAdapter

    return TritonAdapter(setup, host)
