"""Reads the signature of an MLflow model: columns with names and types, or tensors. Pure.

Source: the documentation of MLflow's model signatures; types are those of its `DataType`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from trivium.formats.mlflow.document import ModelDocument
from trivium.types.datatype import DataType

COLUMN_TYPES: Mapping[str, DataType | None] = {
    "boolean": DataType.BOOL,
    "integer": DataType.INT32,
    "long": DataType.INT64,
    "float": DataType.FP32,
    "double": DataType.FP64,
    "string": DataType.BYTES,
    "binary": None,
    "datetime": None,
    "array": None,
    "object": None,
    "map": None,
    "any": None,
    "sparse_vector": None,
}
"""Type of a column -> the datatype of its values; None for those that no tensor holds."""

_DTYPES = {
    **{str(one.dtype): one for one in DataType if one not in (DataType.BF16, DataType.BYTES)},
    **dict.fromkeys(("str", "object", "bytes"), DataType.BYTES),
}
_SAVE = "Save the model anew with MLflow, with signature=infer_signature(inputs, outputs)."


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `name` is empty where columns go by their position."""

    name: str
    type: str
    required: bool = True

    @property
    def datatype(self) -> DataType | None:
        """Return what its values are; None where no tensor holds them."""
        return COLUMN_TYPES[self.type]


@dataclass(frozen=True, slots=True)
class SignatureTensor:
    """One tensor, with its whole dims; -1 is any size."""

    name: str
    datatype: DataType
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """Holds the inputs or the outputs: columns or tensors, or neither where the file has none."""

    columns: tuple[Column, ...] = ()
    tensors: tuple[SignatureTensor, ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """Holds the inputs and outputs of a model, and the names of its parameters."""

    inputs: Side = Side()
    outputs: Side = Side()
    params: tuple[str, ...] = ()


def read_signature(document: ModelDocument) -> Signature:
    """Read it. Raises ConfigError, naming the key."""
    params = _listed(document, "params")
    names = []
    for place, one in enumerate(params):
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            _refuse(document, "params", f"entry {place} is {one!r:.80}", 'objects with "name" and "type"')
        names.append(one["name"])
    return Signature(_side(document, "inputs"), _side(document, "outputs"), tuple(names))


def _listed(document: ModelDocument, key: str) -> list[Any]:
    """Return the entries of a key, which are JSON in a text; older files have them as YAML."""
    written = document.signature.get(key, [])
    if isinstance(written, str):
        try:
            written = json.loads(written)
        except (ValueError, RecursionError) as error:
            _refuse(document, key, f"a text that is no JSON ({error})", "JSON, a list")
    if not isinstance(written, list):
        _refuse(document, key, f"{written!r:.80}", "a list")
    return list(written)


def _side(document: ModelDocument, key: str) -> Side:
    columns: list[Column] = []
    tensors: list[SignatureTensor] = []
    for place, one in enumerate(_listed(document, key)):
        if not isinstance(one, dict) or not isinstance(one.get("type"), str):
            _refuse(document, key, f"entry {place} is {one!r:.80}", 'objects with "type"')
        name = one.get("name") or ""
        if not isinstance(name, str):
            name = str(name)  # columns that pandas numbered
        if one["type"] == "tensor":
            tensors.append(_tensor(document, key, place, name, one.get("tensor-spec")))
        elif one["type"] in COLUMN_TYPES:
            required = one.get("required", not one.get("optional", False))
            columns.append(Column(name, one["type"], bool(required)))
        else:
            expected = f"tensor, or one of {', '.join(COLUMN_TYPES)}"
            _refuse(document, key, f"entry {place} has the type {one['type']!r:.60}", expected)
    if columns and tensors:
        _refuse(document, key, "columns and tensors side by side", "columns alone, or tensors alone")
    for many in ([one.name for one in columns], [one.name for one in tensors]):
        if twice := next((name for name in many if name and many.count(name) > 1), ""):
            _refuse(document, key, f"the name {twice!r:.60} twice", "each name once")
        if len(many) > 1 and "" in many and any(many):
            _refuse(document, key, "some entries have a name, and some none", "names for all, or for none")
    if len(tensors) > 1 and not tensors[0].name:
        _refuse(document, key, f"{len(tensors)} tensors without names", "a name for each")
    return Side(tuple(columns), tuple(tensors))


def _tensor(document: ModelDocument, key: str, place: int, name: str, told: Any) -> SignatureTensor:
    shape = told.get("shape") if isinstance(told, dict) else None
    is_shape = isinstance(shape, list) and all(type(dim) is int and dim >= -1 for dim in shape)
    if not isinstance(told, dict) or not is_shape or not isinstance(told.get("dtype"), str):
        _refuse(
            document, key, f"entry {place} has the tensor-spec {told!r:.80}", '{"dtype": ..., "shape": [...]}'
        )
    datatype = _DTYPES.get(told["dtype"])
    if datatype is None:
        _refuse(
            document,
            key,
            f"entry {place} has the dtype {told['dtype']!r:.60}",
            f"one of {', '.join(_DTYPES)}",
        )
    return SignatureTensor(name, datatype, tuple(told["shape"]))


def _refuse(document: ModelDocument, key: str, found: str, expected: str) -> NoReturn:
    document.refuse(f"signature.{key}", found, expected, _SAVE)
