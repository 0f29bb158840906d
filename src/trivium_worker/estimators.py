"""Tells which files of a folder hold an estimator of scikit-learn, in the formats of DJL's handler.

The server judges a folder by it, and the worker opens a file by it. Source: the documentation of DJL Serving's
scikit-learn handler. Pure: it judges names, and opens nothing.
"""

from collections.abc import Collection
from typing import NamedTuple

SKOPS = "skops"
FORMATS: dict[str, tuple[str, ...]] = {
    SKOPS: (".skops",),
    "joblib": (".joblib", ".jl"),
    "pickle": (".pkl", ".pickle"),
    "cloudpickle": (".pkl", ".pickle", ".cloudpkl"),
}
"""Word of `option.model_format` -> ends of the files. All but the first are pickles, which run what is in them."""

TYPES, TRUST = "skops_trusted_types", "trust_insecure_model_files"
"""Options: which types beyond skops' own a file may have, and whether pickles may be opened."""

OWN_LOADING = "Or load the model in a function model_fn(model_dir) of model.py."
PICKLES = tuple(dict.fromkeys(end for word, ends in FORMATS.items() if word != SKOPS for end in ends))
"""Ends of the files that run what is in them."""


class EstimatorFiles(NamedTuple):
    """The files that may be meant, in the order of the alphabet; exactly one where a folder is as it should be."""

    ends: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def is_pickle(self) -> bool:
        """Is what is to be opened a pickle, in whichever dress?"""
        return self.ends != FORMATS[SKOPS]


def files_of(names: Collection[str], written: str) -> EstimatorFiles:
    """Return the files of the format that is `written`, a word of `FORMATS`; without one the file's end says which it
    is, and skops goes before pickles.
    """
    if written:
        return _ending(names, FORMATS[written])
    found = _ending(names, FORMATS[SKOPS])
    return found if found.names else _ending(names, PICKLES)


def trusted_types(written: str) -> list[str]:
    """Return the types that an option names, split by colons, or by commas where the option can have some."""
    return [one.strip() for one in written.replace(",", ":").split(":") if one.strip()]


def _ending(names: Collection[str], ends: tuple[str, ...]) -> EstimatorFiles:
    return EstimatorFiles(ends, tuple(sorted(name for name in names if name.endswith(ends))))
