"""Chooses the adapter for a handler of TorchServe."""

from trivium_worker.runtime.adapter import Adapter, Host, Setup


def ADAPTER(setup: Setup, host: Host) -> Adapter:
    """Make the adapter for batches, the one for continuous batching, or that for many requests at once."""
    if setup.settings.get("in_flight"):
        from trivium_worker.dialects.torchserve.asynchronous import (
            AsyncTorchServeAdapter,  # few workers need asyncio
        )

        return AsyncTorchServeAdapter(setup, host)
    if setup.settings.get("slots"):
        from trivium_worker.dialects.torchserve.steps import SteppingTorchServeAdapter

        return SteppingTorchServeAdapter(setup, host)
    from trivium_worker.dialects.torchserve.handler import TorchServeAdapter

    return TorchServeAdapter(setup, host)
