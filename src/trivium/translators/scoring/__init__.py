"""The scoring bodies of `mlflow models serve` into the tensors of a model, and its outputs into predictions."""
