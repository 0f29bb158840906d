"""Binds the tensors of a body to a model's inputs, by name or by position, and adds a missing batch dimension.

Pure rules on names and ranks. Whether datatypes and shapes fit the model, the core's admission says.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from trivium.codecs.elements import object_array
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensor, reshaped
from trivium.types.spec import TensorSpec

_ANONYMOUS = re.compile(r"(arr_\d+)?")  # numpy's names for arrays that were given none


@dataclass(frozen=True, slots=True)
class Wanted:
    """The tensors that a body is read for: a model's inputs, or (`are_outputs`) those that its handler answers."""

    model: str
    specs: tuple[TensorSpec, ...]
    batch_axis: bool = False
    are_outputs: bool = False

    @property
    def only(self) -> TensorSpec | None:
        """The one that a body without names is for: the only one that is required, or that there is."""
        required = [spec for spec in self.specs if not spec.optional] or self.specs
        return required[0] if len(required) == 1 else None

    @property
    def text(self) -> TensorSpec | None:
        """The one of BYTES that any body at all may go into."""
        only = self.only
        if only is None and all(spec.optional for spec in self.specs):
            texts = [spec for spec in self.specs if spec.datatype is DataType.BYTES]
            only = texts[0] if len(texts) == 1 else None
        return only if only is not None and only.datatype is DataType.BYTES else None

    @property
    def many(self) -> TensorSpec | None:
        """The one that stands for any number of tensors."""
        return next((spec for spec in self.specs if spec.many), None)

    def named(self, name: str) -> TensorSpec | None:
        """The one of this name."""
        return next((spec for spec in self.specs if spec.name == name), None)

    def __str__(self) -> str:
        """All of them in words, for an error: `'x' FP32[rows,3], 'y' BYTES[1] (optional)`."""
        return ", ".join(
            f"'{spec.name}' {spec.kind(self.batch_axis)}" + (" (optional)" if spec.optional else "")
            for spec in self.specs
        )


def numbered(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Give those without a name the one that numpy gives them, by their place."""
    return [
        one if one.name else Tensor(f"arr_{i}", one.datatype, one.shape, one.array)
        for i, one in enumerate(tensors)
    ]


def is_anonymous(name: str) -> bool:
    """Tell whether a tensor was given no name."""
    return _ANONYMOUS.fullmatch(name) is not None


def bind(tensors: Sequence[Tensor], wanted: Wanted, names_count: bool) -> tuple[Tensor, ...]:
    """The tensors under the names that the model has for them, each with the batch dimension if it lacked just
    that. Unless only `names_count`, those of which the model knows no name are taken by position, if they have no
    names of their own, or if there is one for the only one wanted.

    INVALID for names of which the model knows none, and for more tensors than it has.
    """
    if wanted.many is not None:
        return tuple(numbered(tensors))
    if not names_count and not any(wanted.named(tensor.name) for tensor in tensors):
        tensors = _by_position(tensors, wanted)
    return tuple(_in_rows(tensor, wanted) for tensor in tensors)


def in_order(tensors: Sequence[Tensor], wanted: Wanted) -> tuple[Tensor, ...] | None:
    """All that are wanted, in the order wanted, if these have their names, or are as many and have none of their
    own. What they have beyond that is left out; None where one lacks.
    """
    if len(tensors) == len(wanted.specs) and all(is_anonymous(tensor.name) for tensor in tensors):
        return tuple(_renamed(tensor, spec) for tensor, spec in zip(tensors, wanted.specs, strict=True))
    by_name = {tensor.name: tensor for tensor in tensors}
    if not all(spec.name in by_name for spec in wanted.specs):
        return None
    return tuple(by_name[spec.name] for spec in wanted.specs)


def one_element(spec: TensorSpec, body: bytes | memoryview, batch_axis: bool) -> Tensor:
    """A whole body as the one element of a BYTES tensor, in as many dims of 1 as the model has."""
    shape = (1,) * (len(spec.dims) + batch_axis)
    return Tensor(spec.name, spec.datatype, shape, object_array([bytes(body)], shape))


def _by_position(tensors: Sequence[Tensor], wanted: Wanted) -> list[Tensor]:
    only = wanted.only
    specs = (only,) if only is not None and len(tensors) == 1 else wanted.specs
    if len(tensors) > len(specs):
        raise ServeError(
            Code.INVALID,
            f"The body has {len(tensors)} tensors, but model '{wanted.model}' takes {len(specs)}: {wanted}.",
        )
    if specs != (only,) and not all(is_anonymous(tensor.name) for tensor in tensors):
        names = ", ".join(repr(tensor.name) for tensor in tensors)
        raise ServeError(
            Code.INVALID,
            f"The body has the tensors {names}, but model '{wanted.model}' takes {wanted}. Give them these names, "
            "or none for their order to count.",
        )
    return [_renamed(tensor, spec) for tensor, spec in zip(tensors, specs, strict=False)]


def _renamed(tensor: Tensor, spec: TensorSpec) -> Tensor:
    return structs.replace(tensor, name=spec.name)


def _in_rows(tensor: Tensor, wanted: Wanted) -> Tensor:
    spec = wanted.named(tensor.name)
    if not wanted.batch_axis or spec is None or spec.open or len(tensor.shape) != len(spec.dims):
        return tensor
    return reshaped(tensor, (1, *tensor.shape))
