"""Makes the adapter of a model that MLflow itself loads, in an environment that has it."""

from trivium_worker.runtime.adapter import Adapter, Host, Setup


def ADAPTER(setup: Setup, host: Host) -> Adapter:
    """Make the adapter of a model."""
    from trivium_worker.dialects.mlflow.model import MlflowAdapter

    return MlflowAdapter(setup, host)
