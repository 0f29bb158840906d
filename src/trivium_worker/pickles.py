"""Opens files that run what their author wrote, pickles of any kind and the folders of MLflow: in a worker alone, and
only by the operator's word.

What calls it has asked for that word. No other module of both packages opens one, which a gate looks after.
"""

import pickle
from typing import IO, Any

_JOBLIB = (".joblib", ".jl")


def opened(path: str) -> Any:
    """Return the object of a trusted file. Raises whatever its author wrote, ImportError for what is not installed."""
    if path.lower().endswith(_JOBLIB):
        import joblib

        return joblib.load(path)
    with open(path, "rb") as file:
        return pickle.load(file)  # noqa: S301 - see above


def written(value: Any, file: IO[bytes]) -> None:
    """Pickle a value of a model's own code into a file of the worker's own user."""
    pickle.dump(value, file)


def read(file: IO[bytes]) -> Any:
    """Return what `written` wrote; nobody else may write into its folder. Raises as `opened`."""
    return pickle.load(file)  # noqa: S301 - see above


def opened_weights(path: str, is_safe: bool, device: Any = None) -> Any:
    """Return what PyTorch saved: tensors and plain values alone where `is_safe`, else what its author wrote. Raises
    what PyTorch raises.
    """
    import torch

    return torch.load(path, map_location=device, weights_only=is_safe)


def opened_function(folder: str) -> Any:
    """Return what MLflow loads of a trusted folder: its pickle, or what its `loader_module` makes, with the folder's
    own modules. Raises as `opened`.
    """
    import mlflow.pyfunc

    return mlflow.pyfunc.load_model(folder)
