"""Folders that MLflow writes, as models."""
