"""Tells the inputs and outputs of a scripted module by name, from the types of `forward`; the rest is the request's.

Pure rules on what a schema says, as TorchScript writes it.
"""

import re
from collections.abc import Sequence

from trivium.engines.torch.call import Argument
from trivium.types.datatype import DataType
from trivium.types.spec import TensorSpec

_MANY = ("List[Tensor]", "Dict[str, Tensor]")
_TENSOR = "Tensor"
_TENSORS = re.compile(r"Tuple\[(Tensor(, Tensor)*)\]")


def open_inputs(arguments: Sequence[Argument]) -> tuple[TensorSpec, ...]:
    """Return a spec for each argument that takes a tensor, or one for any number of them; none where an argument that
    must be given takes something else.
    """
    if len(arguments) == 1 and arguments[0].type in _MANY:
        return (_open(arguments[0].name, many=True),)
    if any(not (one.takes_tensor or one.has_default) for one in arguments):
        return ()
    return tuple(_open(one.name, optional=one.may_lack) for one in arguments if one.takes_tensor)


def open_outputs(returned: str) -> tuple[TensorSpec, ...]:
    """Return a spec for each tensor of a type that `forward` returns, by its place; none where the type does not tell
    how many there are.
    """
    if returned == _TENSOR:
        return (_open("OUTPUT__0"),)
    match = _TENSORS.fullmatch(returned)
    count = match[1].count(_TENSOR) if match else 0
    return tuple(_open(f"OUTPUT__{at}") for at in range(count))


def _open(name: str, optional: bool = False, many: bool = False) -> TensorSpec:
    return TensorSpec(name, DataType.FP32, (-1,), optional=optional, open=True, many=many)
