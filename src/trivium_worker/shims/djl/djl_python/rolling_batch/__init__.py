"""Rolling batches that a handler forms by itself."""

from djl_python.rolling_batch.rolling_batch import RollingBatch

__all__ = ["RollingBatch"]
