"""Names the settings by which an operator trusts a model's files: with them, code that lies in the files may run."""

from collections.abc import Iterable

FILES = "trust_insecure_model_files"
"""Pickles of any kind may be opened, and code that lies beside a model may be imported."""

CODE = "trust_remote_code"
"""Python files of a language model's folder may run."""

TYPES = "skops_trusted_types"
"""Types that a skops file may have besides those that skops itself trusts."""

OPERATIONS = "trust_file_operations"
"""A graph may have operations that read or write files, or reach for the network."""

TRUSTS = frozenset({FILES, CODE, TYPES, OPERATIONS})


def trusts_among(names: Iterable[str]) -> list[str]:
    """Return those names that are such a setting, whatever stands in front: `option.`, or an engine's name. They are
    compared without case, `-` being `_`.
    """
    return [name for name in names if name.rpartition(".")[2].strip().lower().replace("-", "_") in TRUSTS]
