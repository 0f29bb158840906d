"""Writes tensors as DJL's binary mode does: in the form that the request was in, or that it asks for.

Source: spec sheet `djl`, section 9.2, as the current release has it. What the model file does not name has no name.
"""

from collections.abc import Iterator, Sequence

import msgspec

from trivium.codecs import csv_rows, ndlist, npy, safetensors
from trivium.codecs.binary import Buffer
from trivium.codecs.binding import numbered
from trivium.codecs.header_text import essence
from trivium.codecs.jsontensors import encode_in_pieces
from trivium.codecs.payload_table import MOST_PADDED_BYTES
from trivium.types.payload import Tensor, Tensors

NPZ, SAFETENSORS, NDLIST, CSV, JSON = (
    *("tensor/npz", "tensor/safetensors", "tensor/ndlist"),
    *("text/csv", "application/json"),
)
_UNNAMED = "OUTPUT__"
"""What we call the outputs of files that do not name them, with their number behind it."""


def unnamed(tensors: Tensors) -> Tensors:
    """Return the tensors, those without a name of the model's own with an empty one."""
    if not any(tensor.name == f"{_UNNAMED}{i}" for i, tensor in enumerate(tensors.items)):
        return tensors
    return Tensors(
        tuple(
            Tensor("", one.datatype, one.shape, one.array) if one.name == f"{_UNNAMED}{i}" else one
            for i, one in enumerate(tensors.items)
        ),
        tensors.lease,
    )


def binary_body(tensors: Tensors, accept: str, content_type: str) -> tuple[str, tuple[Buffer, ...]]:
    """Return a content type, empty for none that is said, and the buffers of the body. Raises UNSUPPORTED for what the
    form cannot hold.
    """
    items = unnamed(tensors).items
    asked = (accept.strip(), essence(content_type))
    if NPZ in asked:
        return NPZ, (npy.encode_npz(numbered(items), MOST_PADDED_BYTES),)
    if SAFETENSORS in asked:
        return SAFETENSORS, safetensors.encode(numbered(items))
    if asked[0] == CSV:
        return CSV, tuple(csv_rows.encode(items))
    if JSON in asked:
        return "", (b'{"predictions": ', *_predictions(items), b"}")
    return NDLIST, tuple(ndlist.pieces(items))


def _predictions(items: Sequence[Tensor]) -> Iterator[bytes]:
    """Yield a nested list for one tensor, for several a list of pairs of name and nested list."""
    if len(items) == 1:
        yield from _nested(items[0])
        return
    for i, tensor in enumerate(items):
        yield b", " if i else b"["
        yield b'{"key": %b, "value": ' % msgspec.json.encode(tensor.name)
        yield from _nested(tensor)
        yield b"}"
    yield b"]" if items else b"[]"


def _nested(tensor: Tensor) -> Iterator[bytes]:
    if len(tensor.shape) <= 1:
        text = b"".join(encode_in_pieces(tensor))
        yield text[1:-1] if not tensor.shape else text
        return
    yield b"["
    for i in range(tensor.shape[0]):
        yield b", " if i else b""
        yield from _nested(Tensor(tensor.name, tensor.datatype, tensor.shape[1:], tensor.array[i]))
    yield b"]"
