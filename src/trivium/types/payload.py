"""Payloads of requests and answers: named tensors, raw parts, or a request to generate text.

All values here are immutable, hold no cycle and may be shared between threads. On the request path they are
`msgspec.Struct(frozen=True, gc=False)`: a tenth of the cost of a frozen dataclass (`docs/architecture.md`).
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from math import prod
from struct import Struct

import msgspec
import numpy as np
from numpy import ndarray

from trivium.types.buffers import Lease
from trivium.types.datatype import Array, DataType, of_array
from trivium.types.generation import Generate, Generated

Scalar = bool | int | float | str
"""A parameter's value, on every wire."""


COPIED = 1024
"""Bytes of a tensor that are rather copied than viewed."""


class PayloadKind(Enum):
    """Names what an engine takes and gives; `docs/` has the table of conversions between them."""

    TENSORS = "tensors"
    RAW = "raw"
    LISTED = "listed"
    GENERATE = "generate"  # `Generate` in, `Generated` out


class Tensor(msgspec.Struct, frozen=True, gc=False):
    """One named tensor.

    `array` has exactly `shape`, is C-contiguous and of `datatype.dtype`: objects of type `bytes` for BYTES,
    raw bits in uint16 for BF16. It may be a read-only view of a request's body; nobody writes into it.
    """

    name: str
    datatype: DataType
    shape: tuple[int, ...]
    array: Array


class PackedTensor(Tensor, frozen=True, gc=False):
    """A tensor that is `size` bytes of `data` from `at` on, row-major; of BYTES what `packed_strings` reads. `array`
    views them (those of BYTES it copies), and is made when somebody asks for it: what a worker process is asked and
    answers passes through without.
    """

    data: bytes | memoryview
    at: int
    size: int

    @property  # type: ignore[misc]
    def array(self) -> Array:
        """Return the array, as any tensor has one."""
        made: Array | None = _kept(self)
        if made is None:
            if self.datatype.itemsize:
                made = ndarray(self.shape, self.datatype.dtype, self.data, self.at)
            else:
                made = _unpacked(self)
            _keep(self, made)
        return made

    def packed(self) -> bytes | memoryview:
        """The bytes: a copy where there are few, which is then cheaper than a view."""
        data = self.data if self.size <= COPIED else memoryview(self.data)
        return data[self.at : self.at + self.size]


MOST_BESIDE_DATA = 2**21
"""Bytes of a request that hold no data of a tensor, but its names and parameters: as many are read in one call."""

STRINGS_AT_ONCE = 2**14
"""Elements of BYTES that one call works on, so that nobody else waits for it for long."""

_LENGTH = Struct("<I")


def packed_strings(tensor: PackedTensor) -> Iterator[list[bytes]]:
    """The elements of a BYTES tensor, some thousands at a time: each is its length in 4 bytes, little-endian, then its
    bytes. Raises ValueError for data that does not hold as many as the shape says.
    """
    view = memoryview(tensor.data)[tensor.at : tensor.at + tensor.size]
    read, prefix, size, at = _LENGTH.unpack_from, _LENGTH.size, tensor.size, 0
    left = prod(tensor.shape)
    while left:
        elements: list[bytes] = []
        for _ in range(min(left, STRINGS_AT_ONCE)):
            start = at + prefix
            if start > size or (at := start + read(view, at)[0]) > size:
                raise ValueError(f"tensor {tensor.name!r} is cut short")
            elements.append(view[start:at].tobytes())
        left -= len(elements)
        yield elements


def _unpacked(tensor: PackedTensor) -> Array:
    array = np.empty(prod(tensor.shape), object)
    begin = 0
    for elements in packed_strings(tensor):
        array[begin : begin + len(elements)] = elements
        begin += len(elements)
    return array.reshape(tensor.shape)


_kept, _keep = vars(Tensor)["array"].__get__, vars(Tensor)["array"].__set__
NOT_MADE: Array = None  # type: ignore[assignment]
"""The `array` of a `PackedTensor` that nobody has asked for."""


class Tensors(msgspec.Struct, frozen=True, gc=False):
    """Named tensors in the order of the sender. `lease` owns the buffer that they view, if it is lent; `at`, where that
    is known, is how far into it their data begins, one behind the other without a gap.
    """

    items: tuple[Tensor, ...]
    lease: Lease | None = None
    at: int | None = None

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> "Tensors":
        """Make tensors from numpy arrays by name; text becomes UTF-8 bytes. TypeError for a dtype that v2 does not
        have.
        """
        return cls(tuple(_tensor(name, np.asarray(array)) for name, array in arrays.items()))

    def copied(self) -> "Tensors":
        """Copy into memory of its own, which nobody can write to: the original may view a request or a batch."""
        return Tensors(tuple(map(_copied, self.items)))

    def __getitem__(self, name: str) -> Array:
        """The array called `name`; KeyError names those there are."""
        for tensor in self.items:
            if tensor.name == name:
                return tensor.array
        raise KeyError(f"no tensor {name!r}; there are: {', '.join(tensor.name for tensor in self.items)}")


class RawPart(msgspec.Struct, frozen=True, gc=False):
    """One part of a raw body: a form field or file, or the whole body with an empty name."""

    data: bytes | memoryview
    content_type: str = ""
    name: str = ""
    filename: str = ""


class RawForm(Enum):
    """Names what the only part of a raw body is, where its content type does not say so."""

    BODY = "body"  # what its content type says
    TENSOR = "tensor"  # the bare data of the model's only input
    FIELDS = "fields"  # a JSON object whose keys are inputs of the model, or parameters
    ROWS = "rows"  # a JSON object with a list of rows under `instances`, or tensors by their names under `inputs`
    SIGNED = "signed"  # what its first bytes say, unless its content type is one of text


class Raw(msgspec.Struct, frozen=True, gc=False):
    """A body that the core does not look into: ordered parts, properties (header fields, names as they came), query
    arguments in their order with repeats, and the `path` behind the model's route, None where that route has none. In
    an answer, `status` and `reason` are what its handler wants HTTP to say (0: nothing). `whole` is the body of what
    was called a form and is JSON by its looks, for models that take no form.
    """

    parts: tuple[RawPart, ...]
    properties: Mapping[str, str] = {}
    query: tuple[tuple[str, str], ...] = ()
    status: int = 0
    reason: str = ""
    lease: Lease | None = None
    path: str | None = ""
    form: RawForm = RawForm.BODY
    whole: RawPart | None = None

    def formless(self) -> "Raw":
        """Return it as a model takes it that takes no form."""
        return self if self.whole is None else msgspec.structs.replace(self, parts=(self.whole,))


class Listed(msgspec.Struct, frozen=True, gc=False):
    """Several payloads, or lists of them, as one: what passes between the steps of a graph, and nowhere else."""

    payloads: "tuple[Tensors | Raw | Listed, ...]"
    lease: Lease | None = None


Whole = Tensors | Raw | Listed
"""A payload as it passes between the steps of a graph."""

RequestPayload = Whole | Generate
"""A payload of a request."""

Payload = RequestPayload | Generated


PER_ELEMENT = 64
"""Bytes that each element of BYTES is taken to cost, where it is an object of its own."""


def cover(payload: RequestPayload) -> None:
    """Book what a payload was made of and that lies outside of its lease, which holds the body. Raises as
    `Books.add`.
    """
    lease = payload.lease
    if lease is None or not lease.is_booked:
        return
    if isinstance(payload, Tensors):
        begin, end = _range(lease.view)
        lease.cover(sum(_size_outside(tensor, begin, end) for tensor in payload.items))
    elif isinstance(payload, Generate):
        lease.cover(len(lease.view))


def size_of(tensor: Tensor) -> int:
    """Return the bytes of a tensor, without those of texts that are objects."""
    if type(tensor) is PackedTensor:
        return tensor.size
    array = tensor.array
    return array.size * PER_ELEMENT if array.dtype.hasobject else array.nbytes


def _size_outside(tensor: Tensor, begin: int, end: int) -> int:
    if type(tensor) is PackedTensor:
        at = _range(tensor.data)[0]
    elif tensor.array.dtype.hasobject:
        return size_of(tensor) + end - begin  # its texts are together no longer than the body
    else:
        at = tensor.array.__array_interface__["data"][0]
    return 0 if begin <= at < end else size_of(tensor)


def _range(data: bytes | memoryview) -> tuple[int, int]:
    """Return where a buffer begins and ends, in this process."""
    if not len(data):
        return 0, 0
    begin: int = np.frombuffer(data, np.uint8, 1).__array_interface__["data"][0]
    return begin, begin + len(data)


def reshaped(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the tensor with another shape of as many elements; what is packed stays so."""
    if type(tensor) is PackedTensor:
        data, at, size = tensor.data, tensor.at, tensor.size
        return PackedTensor(tensor.name, tensor.datatype, shape, NOT_MADE, data, at, size)
    return Tensor(tensor.name, tensor.datatype, shape, tensor.array.reshape(shape))


def _copied(tensor: Tensor) -> Tensor:
    if type(tensor) is PackedTensor:
        data = bytes(tensor.packed())
        return PackedTensor(tensor.name, tensor.datatype, tensor.shape, NOT_MADE, data, 0, len(data))
    array = tensor.array.copy()
    array.flags.writeable = False
    return Tensor(tensor.name, tensor.datatype, tensor.shape, array)


def _tensor(name: str, array: Array) -> Tensor:
    datatype = of_array(array)
    if datatype is None:
        raise TypeError(f"tensor {name!r}: dtype {array.dtype} has no v2 datatype; convert it first")
    if datatype is DataType.BYTES:
        flat = [item.encode() if isinstance(item, str) else bytes(item) for item in array.ravel().tolist()]
        data = np.empty(len(flat), dtype=object)
        data[:] = flat
        return Tensor(name, datatype, array.shape, data.reshape(array.shape))
    return Tensor(
        name, datatype, array.shape, np.ascontiguousarray(array, datatype.dtype).reshape(array.shape)
    )
