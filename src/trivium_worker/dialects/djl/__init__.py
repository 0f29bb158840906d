"""Chooses the adapter for a handler of DJL Serving."""

from trivium_worker.runtime.adapter import Adapter, Host, Setup


def ADAPTER(setup: Setup, host: Host) -> Adapter:
    """Make the adapter for a plain function, or that for an async one, a rolling batch, a function of a workflow, or
    functions around an engine.
    """
    if "engine" in setup.settings:
        from trivium_worker.dialects.djl.around import AroundEngineAdapter

        return AroundEngineAdapter(setup, host)
    if "workflow_function" in setup.settings:
        from trivium_worker.dialects.djl.function import DjlFunctionAdapter

        return DjlFunctionAdapter(setup)
    if setup.settings.get("slots"):
        from trivium_worker.dialects.djl.rolling import RollingDjlAdapter

        return RollingDjlAdapter(setup, host)
    if setup.settings.get("in_flight"):
        from trivium_worker.dialects.djl.asynchronous import (
            AsyncDjlAdapter,
        )  # few workers need asyncio, which takes a while to load

        return AsyncDjlAdapter(setup, host)
    from trivium_worker.dialects.djl.handler import DjlAdapter

    return DjlAdapter(setup, host)
