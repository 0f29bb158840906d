"""Folders that MLflow wrote, and what its own `mlflow models serve` answers for them."""
