"""Flattens and nests numbers and texts as NumPy would, also in a worker whose environment has none.

Source: spec sheet `torchserve`, section 4.7. Where NumPy has been loaded it does the work itself, since a handler's
results may be its arrays.
"""

import sys
from collections.abc import Sequence
from typing import Any

_KINDS: dict[str, str] = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
    "object": "BYTES",
    "str": "BYTES",
}
"""NumPy's name of a type -> KServe's."""


def flattened(value: Any) -> tuple[str, list[Any]]:
    """Return the datatype of an array, in KServe's words, and its elements in their order. Raises ValueError for what
    is none.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        array = numpy.array(value).flatten()
        kind = "str" if array.dtype.kind == "U" else str(array.dtype)
        elements: list[Any] = array.tolist()
    else:
        kind, elements = _alike(_elements(value, _shape(value)))
    if kind not in _KINDS:
        raise ValueError(f"an output of the type {kind} is none of {', '.join(sorted(set(_KINDS.values())))}")
    return _KINDS[kind], elements


def reshaped(value: Any, shape: Sequence[Any]) -> Any:
    """Return the elements of an array as nested lists of that shape, in which one length may be -1: whatever is left.
    Raises ValueError where they do not fit.
    """
    _, elements = _alike(_elements(value, _shape(value)))
    lengths = list(shape)
    if not all(isinstance(length, int) and length >= -1 for length in lengths) or lengths.count(-1) > 1:
        raise ValueError(f"{shape!r} is no shape")
    if -1 in lengths:
        known = _product(length for length in lengths if length != -1)
        lengths[lengths.index(-1)] = len(elements) // known if known else 0
    if _product(lengths) != len(elements):
        raise ValueError(f"{len(elements)} elements do not have the shape {list(shape)!r}")
    return _nested(elements, lengths)


def _product(lengths: Any) -> int:
    product = 1
    for length in lengths:
        product *= length
    return product


def _shape(value: Any) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)):
        return ()
    shapes = {_shape(one) for one in value}
    if len(shapes) > 1:
        raise ValueError("the lists of an array are not of one length")
    return (len(value), *(shapes.pop() if shapes else ()))


def _elements(value: Any, shape: tuple[int, ...]) -> list[Any]:
    if not shape:
        return [value]
    return [element for one in value for element in _elements(one, shape[1:])]


def _alike(elements: list[Any]) -> tuple[str, list[Any]]:
    """Return the type that holds all elements, and these as values of it."""
    kinds = {type(element) for element in elements}
    if kinds == {bool}:
        return "bool", elements
    if kinds <= {bool, int} and kinds:
        return _whole([int(element) for element in elements])
    if kinds <= {bool, int, float}:
        return "float64", [float(element) for element in elements]
    if kinds <= {bool, int, float, str}:
        return "str", [str(element) for element in elements]
    return "bytes" if bytes in kinds else "object", elements


def _whole(elements: list[int]) -> tuple[str, list[Any]]:
    if all(-(2**63) <= element < 2**63 for element in elements):
        return "int64", list(elements)
    return "uint64" if all(0 <= element < 2**64 for element in elements) else "object", list(elements)


def _nested(elements: list[Any], shape: list[int]) -> Any:
    if not shape:
        return elements[0]
    size = len(elements) // shape[0] if shape[0] else 0
    return [_nested(elements[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])]
