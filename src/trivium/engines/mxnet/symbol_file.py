"""Reads what a symbol file of MXNet says: its inputs, outputs and parameters, without MXNet.

The file is JSON: a list of nodes, of which those with the operation `null` are variables, and the heads, which are the
outputs. Names of outputs are those that MXNet's own `list_outputs` has. Pure.
"""

import ast
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from trivium.types.datatype import DataType
from trivium.types.spec import TensorSpec

MOST_BYTES = 2**26
"""Of a symbol file: a graph of a hundred thousand nodes has 20 MB."""

MOST_NODES = 2**20
_MOST_DIMS = 32
_VARIABLE = "null"
_LOSSES = frozenset(
    {
        *("SoftmaxOutput", "Softmax", "LinearRegressionOutput", "LogisticRegressionOutput"),
        *("MAERegressionOutput", "SVMOutput"),
    }
)
"""Operations of training that answer when they are only run: what they compare with, their second input, is not
looked at.
"""

_TARGETS = frozenset({"_contrib_MultiBoxTarget", "MultiBoxTarget"})
"""Operations that make of labels what a detector is trained towards: only a graph for training has them."""

_OUTPUTS: Mapping[str, Sequence[str]] = {
    "BatchNorm": ("output", "mean", "var"),
    "Dropout": ("output", "mask"),
    "GroupNorm": ("output", "mean", "std"),
    "InstanceNorm": ("output", "mean", "var"),
    "LRN": ("output", "tmp_norm"),
    "LayerNorm": ("output", "mean", "std"),
}
"""Operations that name their outputs; several of any other are numbered."""

DATATYPES: Mapping[int, DataType] = {
    0: DataType.FP32,
    1: DataType.FP64,
    2: DataType.FP16,
    3: DataType.UINT8,
    4: DataType.INT32,
    5: DataType.INT8,
    6: DataType.INT64,
    7: DataType.BOOL,
}
"""MXNet's numbers of the datatypes that tensors of clients have."""


class SymbolFault(Exception):
    """Says what is wrong with a symbol file, as a part of a sentence."""


@dataclass(frozen=True, slots=True)
class SymbolFile:
    """Holds the variables of a graph, in its order, with their attributes, those of them that are labels, and the names
    of its outputs. `training` are the nodes that only a graph for training has.
    """

    variables: Mapping[str, Mapping[str, str]]
    labels: frozenset[str]
    training: tuple[str, ...]
    outputs: tuple[str, ...]

    def inputs(self, parameters: Collection[str]) -> tuple[TensorSpec, ...]:
        """Return the variables that have no parameter, which a client sends. Raises SymbolFault."""
        return tuple(
            _input(name, attributes)
            for name, attributes in self.variables.items()
            if name not in parameters and name not in self.labels
        )


def read_symbol(data: bytes) -> SymbolFile:
    """Return what a symbol file says. Raises SymbolFault."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SymbolFault(f"it is no JSON ({error})") from error
    nodes = _list(_field(document, "nodes", "the graph"), "nodes")
    if not 0 < len(nodes) <= MOST_NODES:
        raise SymbolFault(f"it has {len(nodes)} nodes; expected 1 to {MOST_NODES}")
    operations = [_text(node, "op") for node in nodes]
    names = [_text(node, "name") for node in nodes]
    variables = {
        name: _attributes(node)
        for node, operation, name in zip(nodes, operations, names, strict=True)
        if operation == _VARIABLE
    }
    sources = [
        [_entry(one, at) for one in _list(node.get("inputs", []), "inputs")] for at, node in enumerate(nodes)
    ]
    heads = [_entry(one, len(nodes)) for one in _list(_field(document, "heads", "the graph"), "heads")]
    if not heads:
        raise SymbolFault("it has no heads, and so no outputs")
    counts = _counts(document, len(nodes))
    outputs = tuple(_output(names[at], operations[at], place, counts[at]) for at, place in heads)
    training = tuple(name for name, one in zip(names, operations, strict=True) if one in _TARGETS)
    return SymbolFile(variables, _labels(operations, names, sources), training, outputs)


def _labels(
    operations: Sequence[str], names: Sequence[str], sources: Sequence[Sequence[tuple[int, int]]]
) -> frozenset[str]:
    """Return the variables that only losses compare with."""
    compared: set[int] = set()
    used: set[int] = set()
    for operation, taken in zip(operations, sources, strict=True):
        for place, (at, _) in enumerate(taken):
            (compared if operation in _LOSSES and place else used).add(at)
    return frozenset(names[at] for at in compared - used if operations[at] == _VARIABLE)


def _counts(document: Mapping[str, Any], nodes: int) -> Sequence[int]:
    """Return how many outputs each node has: one, where an old file does not tell."""
    ends = document.get("node_row_ptr")
    if not isinstance(ends, list) or len(ends) != nodes + 1 or not all(isinstance(one, int) for one in ends):
        return [1] * nodes
    return [after - before for before, after in pairwise(ends)]


def _output(name: str, operation: str, place: int, count: int) -> str:
    if operation == _VARIABLE:
        return name
    named = _OUTPUTS.get(operation, ())
    if place < len(named):
        return f"{name}_{named[place]}"
    return f"{name}_output" if count <= 1 else f"{name}_output{place}"


def _input(name: str, attributes: Mapping[str, str]) -> TensorSpec:
    number = attributes.get("__dtype__", "0")
    datatype = DATATYPES.get(int(number)) if number.isdecimal() else None
    if datatype is None:
        raise SymbolFault(f"its input '{name}' has the datatype {number!r}, which no client can send")
    shape = attributes.get("__shape__", "")
    if not shape:
        return TensorSpec(name, datatype, (-1,), open=True)
    return TensorSpec(name, datatype, _dims(name, shape))


def _dims(name: str, text: str) -> tuple[int, ...]:
    """Return the dims of a written shape, in which 0 and -1 are any size."""
    try:
        shape = ast.literal_eval(text[:1000])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        shape = None
    is_shape = isinstance(shape, (tuple, list)) and len(shape) <= _MOST_DIMS
    if not is_shape or not all(type(one) is int and one >= -1 for one in shape):
        raise SymbolFault(
            f"its input '{name}' has the shape {text[:80]!r}; expected numbers, as in (0, 3, 224, 224)"
        )
    return tuple(one or -1 for one in shape)


def _attributes(node: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what a node says of itself: older files have other names for the place."""
    for key in ("attrs", "attr", "param"):
        found = node.get(key)
        if isinstance(found, dict):
            return {str(name): str(value) for name, value in found.items()}
    return {}


def _entry(value: object, nodes: int) -> tuple[int, int]:
    """Return the node and the number of an output that an entry names: a node before its reader."""
    is_entry = isinstance(value, list) and len(value) >= 2 and all(type(one) is int for one in value[:2])
    if not is_entry or not (0 <= value[0] < nodes and 0 <= value[1] < MOST_NODES):  # type: ignore[index]
        raise SymbolFault(f"an entry {str(value)[:80]} names no node of the {nodes} that come before it")
    return value[0], value[1]  # type: ignore[index]


def _field(value: object, key: str, what: str) -> object:
    if not isinstance(value, dict) or key not in value:
        raise SymbolFault(f"{what} has no '{key}'")
    return value[key]


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise SymbolFault(f"'{what}' is no list")
    return value


def _text(node: object, key: str) -> str:
    found = _field(node, key, "a node")
    if not isinstance(found, str):
        raise SymbolFault(f"the '{key}' of a node is no text")
    return found
