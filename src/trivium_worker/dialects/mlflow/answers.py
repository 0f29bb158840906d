"""Turns what a model of MLflow predicts into tensors: a table, a column, arrays by name, an array, or a list."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trivium_worker.wire.values import NUMPY_TYPES, Failure, Tensor

_ONLY = "output-0"
"""The name of an output for which the signature has none: as MLServer counts them."""


def tensors_of(found: Any, outputs: Sequence[Sequence[Any]]) -> list[Tensor]:
    """Return the tensors of a prediction. `outputs` are those of the signature: name, datatype, and whether each is a
    column, whose values are [rows, 1]. Failure for what has no form as a tensor.
    """
    arrays = _arrays(found)
    if len(arrays) == len(outputs) and not {one[0] for one in outputs} <= set(arrays):
        arrays = dict(zip((one[0] for one in outputs), arrays.values(), strict=True))
    told = {name: (datatype, is_column) for name, datatype, is_column in outputs}
    return [_tensor(name, array, *told.get(name, ("", False))) for name, array in arrays.items()]


def _arrays(found: Any) -> dict[str, Any]:
    """Return arrays by name, in their order."""
    if hasattr(found, "columns") and hasattr(found, "iloc"):
        return {str(name): found.iloc[:, at].to_numpy() for at, name in enumerate(found.columns)}
    if isinstance(found, Mapping):
        return {str(name): _array(one) for name, one in found.items()}
    return {_ONLY: _array(found)}


def _array(found: Any) -> Any:
    import numpy

    if hasattr(found, "toarray"):  # sparse
        found = found.toarray()
    if hasattr(found, "to_numpy"):
        return found.to_numpy()
    if isinstance(found, (list, tuple)) and any(isinstance(one, (dict, list, tuple)) for one in found):
        try:
            plain = numpy.asarray(found)
        except ValueError:  # rows of several lengths
            plain = numpy.empty(0, object)
        if plain.dtype.kind in "biuf" and plain.size:
            return plain
        kept = numpy.empty(len(found), object)
        kept[:] = [*found]
        return kept
    return numpy.atleast_1d(numpy.asarray(found))


def _tensor(name: str, array: Any, datatype: str, is_column: bool) -> Tensor:
    import numpy

    if array.dtype.kind in "OUSMm":
        elements = [_element(one) for one in array.ravel().tolist()]
        shape = (len(elements), 1) if is_column else array.shape
        return Tensor.of_elements(name, elements, shape)
    wanted = NUMPY_TYPES.get(datatype)
    if wanted is not None and numpy.can_cast(array.dtype, wanted, "unsafe"):
        array = array.astype(wanted, copy=False)
    try:
        return Tensor.of_array(name, array.reshape(-1, 1) if is_column else array)
    except TypeError as error:
        raise Failure(f"The model's prediction has no form as a tensor: {error}.") from error


def _element(value: Any) -> bytes:
    """Return a value as bytes: text as UTF-8, what is neither text nor bytes as JSON."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, default=str, ensure_ascii=False).encode()
