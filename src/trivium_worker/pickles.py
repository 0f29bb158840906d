"""Opens files that run what their author wrote, pickles and the folders of MLflow: in a worker alone, and only by the
operator's word.

What calls it has asked for that word.
"""

import pickle
from typing import Any

_JOBLIB = (".joblib", ".jl")


def opened(path: str) -> Any:
    """Return the object of a trusted file. Raises whatever its author wrote, ImportError for what is not installed."""
    if path.lower().endswith(_JOBLIB):
        import joblib

        return joblib.load(path)
    with open(path, "rb") as file:
        return pickle.load(file)  # noqa: S301 - see above


def opened_function(folder: str) -> Any:
    """Return what MLflow loads of a trusted folder: its pickle, or what its `loader_module` makes, with the folder's
    own modules. Raises as `opened`.
    """
    import mlflow.pyfunc

    return mlflow.pyfunc.load_model(folder)
