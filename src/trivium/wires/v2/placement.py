"""Tensors that a request places in shared memory of its client, instead of the body.

Source: spec sheet `triton`, sections 4.4 and 4.10. Regions are asked for by name; who opened them is not known here.
"""

import msgspec
from msgspec import UNSET

from trivium.codecs import binary
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import RegionViews
from trivium.types.payload import Tensor
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.infer_header import InputHeader, InputParameters, OutputHeader, OutputParameters


class RegionSlice(msgspec.Struct, frozen=True, gc=False):
    """So many bytes of a region, from an offset within it."""

    region: str
    offset: int
    size: int


Form = bool | RegionSlice
"""How an output is written: in binary, in JSON (False), or into shared memory."""


def place_of(name: str, parameters: InputParameters | OutputParameters) -> RegionSlice | None:
    """Return the region in which the parameters place an input or output, None for the body. INVALID if incomplete."""
    region, size = parameters.shared_memory_region, parameters.shared_memory_byte_size
    if region is UNSET and size is UNSET and not parameters.shared_memory_offset:
        return None
    if region is UNSET or size is UNSET:
        raise ServeError(
            Code.INVALID,
            f"{name!r} is to be in shared memory, which takes shared_memory_region and shared_memory_byte_size, and "
            "shared_memory_offset if it does not begin the region. Give both.",
            info=ErrorInfo.of(request_reasons.NO_REGION_SIZE, tensor=name),
        )
    return RegionSlice(region, parameters.shared_memory_offset, size)


def read(entry: InputHeader, place: RegionSlice, regions: RegionViews | None) -> Tensor:
    """An input from its place, copied: what its client writes there afterwards does not change the request."""
    others = [
        ("data", bool(entry.data)),
        ("binary_data_size", entry.parameters.binary_data_size is not UNSET),
    ]
    if given := [name for name, is_given in others if is_given]:
        raise ServeError(
            Code.INVALID,
            f"Input {entry.name!r} has data of its own and shared_memory_region. Give one of them.",
            info=ErrorInfo.of(
                request_reasons.SEVERAL_DATA, input=entry.name, fields=(*given, "shared_memory_region")
            ),
        )
    view = _served(entry.name, regions).view(place.region, place.offset, place.size)
    return binary.decode(entry.name, entry.datatype, entry.shape, bytes(view))


def check_output(output: OutputHeader) -> None:
    """INVALID for an output in shared memory that shall be in binary data, or classified, as well."""
    other = "classification" if output.parameters.classification else "binary_data"
    if output.parameters.classification or output.parameters.binary_data is True:
        raise ServeError(
            Code.INVALID,
            f"Output {output.name!r} has both shared_memory_region and {other}. Give one of them.",
        )


def write(tensor: Tensor, place: RegionSlice, regions: RegionViews | None) -> int:
    """Put an output where it was asked for; its size in bytes. INVALID where that is too small."""
    blob = binary.encode(tensor)
    size = len(blob)
    if size > place.size:
        raise ServeError(
            Code.INVALID,
            f"Output {tensor.name!r} takes {size} bytes, but its shared_memory_byte_size is {place.size}. Give "
            "it more.",
            info=ErrorInfo.of(
                request_reasons.REGION_OUTPUT, output=tensor.name, expected=size, found=place.size
            ),
        )
    _served(tensor.name, regions).view(place.region, place.offset, place.size)[:size] = blob
    return size


def _served(name: str, regions: RegionViews | None) -> RegionViews:
    if regions is None:
        raise ServeError(
            Code.UNSUPPORTED,
            f"{name!r} is to be in shared memory, which this server does not serve. Send it, or ask for it, "
            "in the body.",
        )
    return regions
