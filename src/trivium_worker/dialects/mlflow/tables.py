"""Puts tensors, one for each column of a signature, together into a table of pandas."""

import json
from collections.abc import Sequence
from typing import Any

from trivium_worker.wire.values import Failure, Tensor

_NUMBERS = {"boolean": "?", "integer": "<i4", "long": "<i8", "float": "<f4", "double": "<f8"}
"""Type of a column -> numpy's code for it."""


class Columns:
    """The columns of a signature, each with its name and its type. A name is empty where columns go by position."""

    def __init__(self, model: str, columns: Sequence[Sequence[str]]) -> None:
        self._model = model
        self._types = {name or f"input-{at}": (name or at, kind) for at, (name, kind) in enumerate(columns)}

    @property
    def are_there(self) -> bool:
        """Has the signature any?"""
        return bool(self._types)

    def table(self, tensors: Sequence[Tensor], is_asked: bool) -> Any:
        """Return a DataFrame with a column for each tensor, in the signature's order. Failure ("invalid") for what is
        no column, and for columns of several lengths. Without a signature the names are those of the request.
        """
        import pandas

        given = {one.name: one for one in tensors}
        known = self._types or {name: (name, "") for name in given}
        if not is_asked and (unknown := [name for name in given if name not in known]):
            raise self._refused(f"has no column {unknown[0]!r:.80}; it takes {', '.join(known)[:400]}")
        found = {
            label: self._values(given[name], kind) for name, (label, kind) in known.items() if name in given
        }
        if len({len(one) for one in found.values()}) > 1:
            told = ", ".join(f"{name} has {len(one)}" for name, one in found.items())
            raise self._refused(f"got columns of several lengths: {told[:400]}. Send as many values in each")
        return pandas.DataFrame(found)

    def _values(self, tensor: Tensor, kind: str) -> Any:
        """Return the values of one column: numbers as an array, others as a list."""
        import numpy

        shape = tensor.shape
        if not (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)):
            raise self._refused(
                f"got the shape {list(shape)} for column '{tensor.name}'; send [rows] or [rows, 1]"
            )
        if tensor.datatype == "BYTES":
            return [self._read(one, kind, tensor.name) for one in tensor.elements()]
        array = tensor.array().reshape(-1)
        wanted = _NUMBERS.get(kind)
        if wanted is None:
            return array
        if not numpy.can_cast(array.dtype, wanted, "same_kind"):
            raise self._refused(f"got {tensor.datatype} for column '{tensor.name}', which is {kind}")
        return array.astype(wanted, copy=False)

    def _read(self, value: bytes, kind: str, name: str) -> Any:
        """Return a value that came as bytes: a text, bytes, a time, or what its JSON says."""
        if kind == "binary":
            return value
        text = as_text(value, f"Column '{name}'")
        if kind == "datetime":
            import pandas

            try:
                return pandas.Timestamp(text)
            except ValueError as error:
                raise self._refused(f"got {text!r:.80} for column '{name}', which is no time") from error
        if kind in ("", "string"):
            return text
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._refused(
                f"got {text!r:.80} for column '{name}'; send JSON, as it is {kind}"
            ) from error

    def _refused(self, words: str) -> Failure:
        return Failure(f"Model '{self._model}' {words}.", "invalid")


def as_text(data: bytes, what: str) -> str:
    """Decode UTF-8. Failure ("invalid") for what is none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        words = f"{what} is no UTF-8: {error.reason} at byte {error.start}."
        raise Failure(words, "invalid", 400, "scoring", {"error_code": "BAD_REQUEST"}) from error
