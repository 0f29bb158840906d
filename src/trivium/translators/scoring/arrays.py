"""Makes the inputs of a model from a table or arrays, by the columns of its signature. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trivium.translators.scoring.bodies import BAD_REQUEST, INVALID_VALUE, ListedArrays, Table, refused
from trivium.types.datatype import Array, DataType
from trivium.types.payload import Tensor, Tensors
from trivium.types.spec import TensorSpec


@dataclass(frozen=True, slots=True)
class ScoringColumn:
    """One column of a signature; of no name where columns go by position."""

    name: str
    type: str
    required: bool


@dataclass(frozen=True, slots=True)
class ScoringInputs:
    """Holds the inputs of a model with whole dims, and the columns of its signature, if that has some. `tensors` are
    the names in a signature of tensors.
    """

    inputs: Sequence[TensorSpec]
    columns: Sequence[ScoringColumn] = ()
    tensors: Sequence[str] = ()

    def made_of(self, asked: Table | ListedArrays) -> Tensors:
        """Return the inputs. Raises INVALID, in MLflow's form."""
        if isinstance(asked, ListedArrays):
            asked = self._columns_of(asked)
        if isinstance(asked, ListedArrays):
            return self._arrays(asked.value)
        if self.columns:
            return self._of_columns(asked, self._chosen(asked))
        names = {one.name for one in self.inputs}
        if names <= set(asked.columns):
            return self._arrays({name: asked.columns[name] for name in names})
        if len(self.inputs) != 1:
            raise _lacks(sorted(names - set(asked.columns)))
        if len(asked.columns) == 1:
            (values,) = asked.columns.values()
            if values and isinstance(values[0], list):
                return self._arrays(values)
        columns = [ScoringColumn(name, "double", True) for name in asked.columns]
        return self._of_columns(asked, dict(zip(asked.columns, columns, strict=True)))

    def taken(self, given: Tensors) -> Tensors:
        """Return tensors as the model takes them: those of columns as its matrix, others by name. Raises INVALID."""
        are_columns = {tensor.name for tensor in given.items} <= {one.name for one in self.columns}
        return self.joined(given) if are_columns and len(self.inputs) == 1 else fitted(self.inputs, given)

    def joined(self, given: Tensors) -> Tensors:
        """Return a tensor for each column as the one matrix of the model. Raises INVALID."""
        by_name = {tensor.name: tensor.array.reshape(-1) for tensor in given.items}
        counts = {name: len(array) for name, array in by_name.items()}
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{name!r:.80} has {count}" for name, count in counts.items())
            raise refused(f"The columns have several lengths: {told[:400]}. Send as many values in each.")
        (one,) = self.inputs
        rows = next(iter(counts.values()), 0)
        if one.datatype is DataType.BYTES:
            matrix = np.empty((rows, len(self.columns)), object)
            for at, column in enumerate(self.columns):
                matrix[:, at] = by_name.get(column.name, b"")
        else:
            lacking = self._lacking(one.datatype, rows, by_name)
            arrays = [_whole(column, by_name.get(column.name, lacking)) for column in self.columns]
            matrix = np.column_stack(arrays).astype(one.datatype.dtype)
        return Tensors((_fit(one, np.ascontiguousarray(matrix)),))

    def _lacking(self, datatype: DataType, rows: int, given: Mapping[str, Array]) -> Array:
        """Return the values of a column that was not sent: none of them is a number."""
        lacks = [one.name for one in self.columns if one.name not in given]
        if lacks and datatype.dtype.kind != "f":
            raise _lacks(lacks)
        return np.full(rows, np.nan)

    def _columns_of(self, asked: ListedArrays) -> Table | ListedArrays:
        """Return arrays by name as a table, where the model has columns."""
        value = asked.value
        if isinstance(value, Mapping) and self._are_columns(value):
            columns = {name: one if isinstance(one, list) else [one] for name, one in value.items()}
            counts = {len(one) for one in columns.values()}
            if len(counts) > 1:
                raise refused(
                    f"The columns have {', '.join(map(str, sorted(counts)))} values. Send as many in each."
                )
            return Table(columns, counts.pop() if counts else 0)
        is_rows = isinstance(value, list) and bool(value) and all(isinstance(row, list) for row in value)
        if self.columns and is_rows and isinstance(value, list):
            return self._by_position(value)
        if len(self.columns) == 1 and isinstance(value, list):
            return Table({self.columns[0].name: value}, len(value))
        return asked

    def _are_columns(self, value: Mapping[str, object]) -> bool:
        if self.columns:
            return True
        names = {one.name for one in self.inputs}
        return not self.tensors and not names <= set(value)

    def _by_position(self, rows: list[Any]) -> Table:
        width = len(self.columns)
        for number, row in enumerate(rows):
            if len(row) != width:
                raise refused(
                    f"Row {number} has {len(row)} values, and the model takes {width}.", INVALID_VALUE
                )
        names = [column.name or str(at) for at, column in enumerate(self.columns)]
        return Table({name: [row[at] for row in rows] for at, name in enumerate(names)}, len(rows))

    def _chosen(self, asked: Table) -> dict[str, ScoringColumn]:
        """Return the columns of a body that the model takes, in its order. What else the body has is left."""
        if not self.columns[0].name:
            if len(asked.columns) < len(self.columns):
                found = f"The body has {len(asked.columns)} columns, and the model takes {len(self.columns)}."
                raise refused(found, INVALID_VALUE)
            return dict(zip(asked.columns, self.columns, strict=False))
        lacks = [one.name for one in self.columns if one.required and one.name not in asked.columns]
        if lacks:
            raise _lacks(lacks)
        return {one.name: one for one in self.columns}

    def _of_columns(self, asked: Table, chosen: Mapping[str, ScoringColumn]) -> Tensors:
        missing = [None] * asked.rows
        values = {name: asked.columns.get(name, missing) for name in chosen}
        if len(self.inputs) == 1:
            one = self.inputs[0]
            arrays = [_column(chosen[name], values[name], one.datatype) for name in chosen]
            if one.datatype is DataType.BYTES:
                matrix = np.empty((asked.rows, len(arrays)), object)
                for at, array in enumerate(arrays):
                    matrix[:, at] = array
            else:
                matrix = np.column_stack(arrays) if arrays else np.empty((asked.rows, 0), one.datatype.dtype)
            return Tensors((_fit(one, np.ascontiguousarray(matrix)),))
        tensors = []
        for one in self.inputs:
            if one.name not in chosen:
                raise _lacks([one.name])
            array = _column(chosen[one.name], values[one.name], one.datatype)
            tensors.append(_fit(one, array.reshape(-1, 1) if len(one.dims) == 2 else array))
        return Tensors(tuple(tensors))

    def _arrays(self, value: object) -> Tensors:
        """Return arrays by the names of inputs, or one for the only input."""
        if not isinstance(value, Mapping):
            if len(self.inputs) != 1:
                names = ", ".join(one.name for one in self.inputs)
                raise refused(
                    f"The model takes several inputs: {names}. Send an object with each by its name."
                )
            return Tensors((_listed(self.inputs[0], value),))
        lacks = [one.name for one in self.inputs if one.name not in value and not one.optional]
        if lacks:
            raise _lacks(lacks)
        return Tensors(tuple(_listed(one, value[one.name]) for one in self.inputs if one.name in value))


def fitted(inputs: Sequence[TensorSpec], given: Tensors) -> Tensors:
    """Return tensors as the model takes them: numbers of another datatype are converted. Raises INVALID."""
    by_name = {one.name: one for one in inputs}
    made = []
    for tensor in given.items:
        one = by_name.get(tensor.name)
        if one is None:
            raise refused(
                f"There is no input {tensor.name!r:.80}; the model takes {', '.join(by_name)}.", INVALID_VALUE
            )
        array = tensor.array
        if DataType.BYTES not in (one.datatype, tensor.datatype) and not one.open:
            array = array.astype(one.datatype.dtype, copy=False)
        made.append(_fit(one, array))
    if lacks := [
        one.name for one in inputs if not one.optional and one.name not in {t.name for t in given.items}
    ]:
        raise _lacks(lacks)
    return Tensors(tuple(made))


def _lacks(names: Sequence[str]) -> Exception:
    shown = ", ".join(repr(name) for name in names[:20])
    return refused(f"The model takes {shown}, which the body lacks. Send each by its name.", INVALID_VALUE)


def _column(column: ScoringColumn, values: list[Any], datatype: DataType) -> Array:
    """Return the values of one column, as the signature's type says."""
    if datatype is DataType.BYTES:
        texts = np.empty(len(values), object)
        texts[:] = ["" if one is None else str(one).encode() for one in values]
        return texts
    is_whole = column.type in ("integer", "long", "boolean")
    numbers = []
    for row, one in enumerate(values):
        try:
            number = float("nan") if one is None else float(one)
        except (TypeError, ValueError) as error:
            raise _no_value(column, row, one) from error
        if is_whole and one is not None and not number.is_integer():
            raise _no_value(column, row, one)
        numbers.append(number)
    if datatype.dtype.kind in "iub" and any(number != number for number in numbers):
        row = next(at for at, number in enumerate(numbers) if number != number)
        raise _no_value(column, row, None)
    wide = np.asarray(values if is_whole and None not in values else numbers)
    try:
        return wide.astype(datatype.dtype)
    except (ValueError, OverflowError) as error:
        raise refused(f"Column {column.name!r:.80} does not fit {datatype.wire}: {error}.") from error


def _whole(column: ScoringColumn, values: Array) -> Array:
    """Return the numbers of a column, which are whole where its type says so. Raises INVALID."""
    if column.type in ("integer", "long", "boolean") and values.dtype.kind == "f":
        wrong = np.flatnonzero(np.isfinite(values) & (values != np.floor(values)))
        if len(wrong):
            raise _no_value(column, int(wrong[0]), values[wrong[0]].item())
    return values


def _no_value(column: ScoringColumn, row: int, value: object) -> Exception:
    return refused(f"Column {column.name!r:.80} has {value!r:.80} in row {row}, which is no {column.type}.")


def _listed(one: TensorSpec, value: object) -> Tensor:
    """Return lists as the array of an input."""
    if one.datatype is DataType.BYTES:
        found = np.array(value, dtype=object)
        texts = np.empty(found.size, object)
        texts[:] = [
            text if isinstance(text, bytes) else str(text).encode() for text in found.ravel().tolist()
        ]
        return _fit(one, texts.reshape(found.shape))
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iufb":
            raise ValueError("it holds something else than numbers")
        return _fit(one, np.ascontiguousarray(array, one.datatype.dtype))
    except (ValueError, TypeError, OverflowError) as error:
        raise refused(
            f"Input {one.name!r:.80} cannot be read as {one.datatype.wire}: {error}.", BAD_REQUEST
        ) from error


def _fit(one: TensorSpec, array: Array) -> Tensor:
    """Return the tensor. Raises INVALID for another shape than the model's."""
    dims, shape = one.dims, array.shape
    fits = len(dims) == len(shape) and all(dim in (-1, size) for dim, size in zip(dims, shape, strict=True))
    if not (fits or one.open):
        found = f"Input {one.name!r:.80} has the shape {list(shape)}; the model takes {list(dims)}."
        raise refused(found, INVALID_VALUE)
    return Tensor(one.name, one.datatype, shape, array)
