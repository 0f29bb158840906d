"""Reads what a program of torch.export says of itself: its inputs and outputs, sizes that may vary as -1.

Read from the graph; nothing is run. Called in a probe process only.
"""

from collections.abc import Sequence
from typing import Any

from trivium.engines.torch.arrays import datatype_of
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.spec import ModelFacts, ModelSpec, TensorSpec

_TREE = "the file does not tell its inputs as tensors by name: they are a tree, or no tensors"


def exported_facts(torch: Any, spec: ModelSpec, notes: tuple[str, ...]) -> ModelFacts:
    """Inputs by the names of the arguments, outputs by their keys or as `OUTPUT__0` and so on; neither, with a note,
    where they are not plain tensors. Raises LOAD_FAILED for a file that cannot be read.
    """
    path = spec.root / spec.entry
    try:
        program = torch.export.load(str(path))
    except Exception as error:
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': PyTorch {torch.__version__} cannot open {path}: {said_by(error)}",
        ) from error
    nodes = {node.name: node for node in program.graph.nodes}
    given = [str(name) for name in program.graph_signature.user_inputs]
    back = [nodes.get(str(name)) for name in program.graph_signature.user_outputs]
    out = program.call_spec.out_spec
    keys = list(out.context) if out.type is dict else [f"OUTPUT__{at}" for at in range(len(back))]
    inputs = _tensors(given, [nodes.get(name) for name in given])
    outputs = _tensors(keys, back)
    if inputs is None or outputs is None:
        return ModelFacts((), (), False, notes, remarks=(_TREE,))
    batchable = all(tensor.dims[:1] == (-1,) for tensor in (*inputs, *outputs))
    return ModelFacts(inputs, outputs, batchable, notes)


def _tensors(names: Sequence[str], nodes: Sequence[Any]) -> tuple[TensorSpec, ...] | None:
    """None where one of them is no plain tensor, or they are fewer or more than their names."""
    if len(names) != len(nodes):
        return None
    specs: list[TensorSpec] = []
    for name, node in zip(names, nodes, strict=True):
        value = node.meta.get("val") if node is not None else None
        datatype = datatype_of(getattr(value, "dtype", None))
        if value is None or datatype is None:
            return None
        dims = tuple(size if isinstance(size, int) else -1 for size in value.shape)
        specs.append(TensorSpec(name, datatype, dims))
    return tuple(specs)
