"""Opens pickles, which run what their author wrote: the one place that does, and only by the operator's word.

What calls it has asked for that word, and runs in a process of one model's instance.
"""

import pickle
from pathlib import Path
from typing import Any

JOBLIB = (".joblib", ".jl")


def opened(path: Path) -> Any:
    """Return the object of a trusted file. Raises whatever its author wrote, ImportError for what is not installed."""
    if path.suffix.lower() in JOBLIB:
        import joblib

        return joblib.load(path)
    with open(path, "rb") as file:
        return pickle.load(file)  # noqa: S301 - see above
