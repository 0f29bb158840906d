"""Engines of models of tables: rows of numbers in, a prediction per row out."""
