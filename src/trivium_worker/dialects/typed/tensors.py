"""Lays out the kinds of a typed handler's hints as tensors of the v2 protocol, and reads them back.

A plain value is one element of shape [1], each list around it one more dimension of any size. A record is one element,
its JSON. An array is what its mark says. numpy is imported for arrays alone.
"""

import math
import struct
from collections.abc import Sequence
from typing import Any

from trivium_worker.dialects.typed.kinds import Kind, Many, Unfit, listed, shown
from trivium_worker.wire.values import NUMPY_TYPES, Tensor

_PACKED = {"INT64": "q", "FP64": "d", "BOOL": "?"}
DATATYPES = (*NUMPY_TYPES, "BYTES")


class Array(Kind):
    """An array of a datatype, with a size for each dimension, -1 for any."""

    def __init__(self, datatype: str, dims: Sequence[int]) -> None:
        self.datatype = datatype
        self.dims = tuple(dims)
        self.said = f"{datatype}[{','.join(map(str, dims))}]"

    def row(self) -> "Array":
        """Return what one row of it is, where its first dimension is the batch."""
        return Array(self.datatype, self.dims[1:])

    def read(self, value: Any, where: str) -> Any:
        """See `Kind`: nested lists. A number may be whole, a whole number has to be."""
        import numpy

        if self.datatype == "BF16":
            raise Unfit(where, shown(value), f"{self.said}, which JSON does not hold: send a tensor")
        try:
            array = numpy.asarray(value, object if self.datatype == "BYTES" else None)
        except (ValueError, OverflowError) as error:
            raise Unfit(where, f"a list that is no array ({error})", self.said) from None
        if self.datatype == "BYTES":
            if any(not isinstance(one, str) for one in array.ravel().tolist()):
                raise Unfit(where, shown(value), f"{self.said}, texts")
            array = _objects([one.encode() for one in array.ravel().tolist()], array.shape)
        else:
            array = self._numbers(array, value, where)
        return self.checked(array, where)

    def _numbers(self, array: Any, value: Any, where: str) -> Any:
        import numpy

        wanted = numpy.dtype(NUMPY_TYPES[self.datatype])
        fits = {"b": "b", "u": "iu", "i": "iu", "f": "iuf"}[wanted.kind]
        if array.dtype.kind not in fits and array.size:
            raise Unfit(where, f"{shown(value)} with an element of another kind", self.said)
        with numpy.errstate(all="ignore"):
            made = array.astype(wanted)
        if wanted.kind in "iu" and not (made == array).all():
            raise Unfit(where, "a number that is too large for it", self.said)
        return made

    def write(self, value: Any, where: str) -> Any:
        """See `Kind`."""
        array = self.array_of(value, where)
        if self.datatype == "BF16":
            raise Unfit(where, "BF16", "a datatype that JSON holds")
        if self.datatype == "BYTES":
            elements = [_text(one, where) for one in array.ravel().tolist()]
            return _objects(elements, array.shape).tolist()
        return array.tolist()

    def array_of(self, value: Any, where: str) -> Any:
        """Return an array of numpy for what user code gave: of this datatype, or one that it can be made of without a
        change of kind. Raises Unfit.
        """
        import numpy

        if callable(getattr(value, "detach", None)):  # PyTorch's
            value = value.detach().cpu().numpy()
        try:
            array = numpy.asarray(value, object if self.datatype == "BYTES" else None)
        except (TypeError, ValueError) as error:
            raise Unfit(where, f"a {type(value).__name__} that is no array ({error})", self.said) from None
        if self.datatype != "BYTES":
            wanted = NUMPY_TYPES[self.datatype]
            if not numpy.can_cast(array.dtype, wanted, "same_kind"):
                raise Unfit(where, f"an array of {array.dtype}", f"{self.said}; convert it by .astype(...)")
            array = array.astype(wanted, copy=False)
        return self.checked(array, where)

    def checked(self, array: Any, where: str) -> Any:
        """Return the array where it has as many dimensions, of these sizes. Raises Unfit."""
        shape = array.shape
        if len(shape) != len(self.dims) or any(
            dim not in (-1, size) for size, dim in zip(shape, self.dims, strict=True)
        ):
            raise Unfit(where, f"of the shape [{','.join(map(str, shape))}]", self.said)
        return array

    def schema(self) -> dict[str, Any]:
        """See `Kind`."""
        kind = "boolean" if self.datatype == "BOOL" else "string" if self.datatype == "BYTES" else "number"
        if self.datatype.lstrip("U").startswith("INT"):
            kind = "integer"
        schema: dict[str, Any] = {"type": kind}
        for dim in reversed(self.dims):
            size = {} if dim < 0 else {"minItems": dim, "maxItems": dim}
            schema = {"type": "array", "items": schema, **size}
        return schema

    def example(self) -> Any:
        """See `Kind`."""
        value: Any = True if self.datatype == "BOOL" else "text" if self.datatype == "BYTES" else 0
        for dim in reversed(self.dims):
            value = [value] * max(1, min(dim, 1024))
        return value


def form_of(kind: Kind) -> tuple[str, tuple[int, ...]]:
    """Return datatype and shape, -1 for any size, of the tensor that a value of the kind is."""
    if isinstance(kind, Array):
        return kind.datatype, kind.dims
    leaf, depth = _leaf(kind)
    return leaf.datatype, (-1,) * depth or (1,)


def tensor_of(name: str, kind: Kind, value: Any) -> Tensor:
    """Return the tensor of a value of user code's. Raises Unfit for what has no form as one."""
    if isinstance(kind, Array):
        made = Tensor.of_array(name, kind.array_of(value, name))
        return Tensor(name, kind.datatype, made.shape, made.data)  # BF16 goes by as its bits
    leaf, depth = _leaf(kind)
    elements, shape = _flat(kind, value, name)
    shape = (*shape, *([0] * (depth - len(shape)))) if depth else (1,)
    code = _PACKED.get(leaf.datatype)
    if code is None:
        return Tensor.of_elements(name, elements, shape)
    return Tensor(name, leaf.datatype, shape, struct.pack(f"<{len(elements)}{code}", *elements))


def value_of(kind: Kind, tensor: Tensor) -> Any:
    """Return what user code gets for a tensor whose datatype and shape have been judged: an array of its own, or a
    value in as many lists as there are dimensions. Raises Unfit.
    """
    if isinstance(kind, Array):
        return kind.checked(tensor.array().copy(), tensor.name)
    leaf, depth = _leaf(kind)
    code = _PACKED.get(tensor.datatype)
    if code is None:
        elements: Sequence[Any] = tensor.elements()
    else:
        elements = struct.unpack(f"<{len(tensor.data) // struct.calcsize(code)}{code}", tensor.data)
    values = [leaf.decode(one, tensor.name) for one in elements]
    return _nested(values, tensor.shape) if depth else values[0]


def bare(kind: Array, data: Any, where: str) -> Any:
    """Return the array whose numbers these bytes are, row-major and little-endian. Raises Unfit."""
    import numpy

    code = NUMPY_TYPES.get(kind.datatype)
    size = 0 if code is None else numpy.dtype(code).itemsize
    if not size or len(data) % size:
        raise Unfit(
            where, f"a body of {len(data)} bytes", f"{kind.said}, as JSON or as a tensor of the v2 protocol"
        )
    array = numpy.frombuffer(bytes(data), code).copy()
    try:
        return array.reshape(kind.dims)
    except ValueError:
        raise Unfit(where, f"a body of {len(array)} numbers of {kind.datatype}", kind.said) from None


def _leaf(kind: Kind) -> tuple[Kind, int]:
    depth = 0
    while isinstance(kind, Many):
        kind, depth = kind.of, depth + 1
    return kind, depth


def _flat(kind: Kind, value: Any, where: str) -> tuple[list[Any], tuple[int, ...]]:
    if not isinstance(kind, Many):
        return [kind.encode(value, where)], ()
    values = listed(value, where, kind.said)
    elements: list[Any] = []
    inner: tuple[int, ...] | None = None
    for at, one in enumerate(values):
        found, shape = _flat(kind.of, one, f"{where}[{at}]")
        if inner is not None and shape != inner:
            raise Unfit(where, "lists of several lengths", "lists of one length, since a tensor has no other")
        inner = shape
        elements += found
    return elements, (len(values), *(inner or ()))


def _nested(values: list[Any], shape: Sequence[int]) -> Any:
    if len(shape) == 1:
        return values
    size = math.prod(shape[1:])
    return [_nested(values[at * size : (at + 1) * size], shape[1:]) for at in range(shape[0])]


def _objects(elements: list[Any], shape: Sequence[int]) -> Any:
    import numpy

    array = numpy.empty(len(elements), object)
    array[:] = elements
    return array.reshape(shape)


def _text(element: Any, where: str) -> str:
    if isinstance(element, str):
        return element
    try:
        return bytes(element).decode("utf-8")
    except (TypeError, UnicodeDecodeError):
        raise Unfit(
            where, f"{type(element).__name__} that is no text", "texts, where JSON is asked for"
        ) from None
