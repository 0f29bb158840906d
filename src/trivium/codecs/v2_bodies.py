"""Two bodies of the v2 protocol whose meaning depends on the model: one input's bare data, and a generate request.

Source: spec sheet `triton`, sections 4.6 (raw binary request) and 4.13 (generate). They come as raw payloads
with a `RawForm` of their own; the core has them converted, since it knows the inputs.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import msgspec

from trivium.codecs import binary, data_reasons, json_documents, jsontensors
from trivium.codecs.binary import Buffer
from trivium.codecs.binding import Wanted, one_element
from trivium.codecs.json_groups import has_many_values
from trivium.types import reasons
from trivium.types.datatype import DataType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.payload import RawForm, Tensor
from trivium.types.spec import TensorSpec

MOST_VALUES = 2**17
"""Values in a body whose members are read one by one: it is for texts, and a few numbers beside them."""

Read = Callable[[Buffer, Wanted], tuple[Tensor, ...]]


def read_bare(data: Buffer, wanted: Wanted) -> tuple[Tensor, ...]:
    """The only input from its bare bytes: little-endian and row-major, or the one element of a BYTES input without
    its length. One dim that the model leaves open follows from the size; the batch dimension is 1. INVALID else.
    """
    if len(wanted.specs) != 1:
        raise ServeError(
            Code.INVALID,
            f"A body of raw data alone can only be the input of a model that has one; '{wanted.model}' takes "
            f"{str(wanted) or 'none'}. Send the JSON header with name, shape, datatype and binary_data_size of each "
            "input.",
            info=ErrorInfo.of(data_reasons.RAW_INPUTS, model=wanted.model, count=len(wanted.specs)),
        )
    spec = wanted.specs[0]
    if spec.open:
        told = "raw data say neither datatype nor shape"
        raise _unclear(spec, wanted, told, ErrorInfo.of(data_reasons.RAW_SHAPE, input=spec.name))
    if spec.datatype is DataType.BYTES:
        if any(dim not in (1, -1) for dim in spec.dims):
            many = ErrorInfo.of(data_reasons.RAW_STRINGS, input=spec.name)
            raise _unclear(spec, wanted, "raw data are one element of a BYTES input", many)
        return (one_element(spec, data, wanted.batch_axis),)
    count, rest = divmod(len(data), spec.datatype.itemsize)
    shape = None if rest else _shape(spec.dims, count)
    if shape is None:
        told = f"{len(data)} bytes were sent, from which no shape follows"
        raise _unclear(spec, wanted, told, _other_size(spec, len(data)))
    return (binary.decode(spec.name, spec.datatype, _in_rows(shape, wanted), data),)


def read_generate(data: Buffer, wanted: Wanted) -> tuple[Tensor, ...]:
    """The inputs that the keys of a generate request name: a value, or a list of values. INVALID for an input that
    comes twice, values that do not fit it, and a value that is neither an input nor a parameter.
    """
    fields, repeated = decode_members(data, "generate request")
    specs = {spec.name: spec for spec in wanted.specs}
    tensors: list[Tensor] = []
    for key, value in fields.items():
        spec = specs.get(key)
        if spec is not None:
            tensors.append(_field(spec, value, wanted))
        elif key != "parameters" and not isinstance(value, bool | int | float | str):
            raise ServeError(
                Code.INVALID,
                f"The key {key!r} of the generate request is no input of model '{wanted.model}', which takes "
                f"{str(wanted) or 'none'}, and no parameter: those are true or false, numbers and strings.",
                info=ErrorInfo.of(data_reasons.NO_SCALAR, key=key),
            )
        if spec is not None and key in repeated:
            raise ServeError(
                Code.INVALID,
                f"The generate request has the input {key!r} more than once. Send it once, with a list of its values.",
                info=ErrorInfo.of(reasons.INPUT_TWICE, input=key),
            )
    return tuple(tensors)


def decode_members(data: Buffer, what: str) -> tuple[dict[str, Any], frozenset[str]]:
    """Decode as `decode_object` does, taking the first value of a key that comes twice; the second result names those
    keys of the top that do.
    """
    judge_values(data, what)
    if not decode_object(data, what):
        return {}, frozenset()
    repeated: frozenset[str] = frozenset()

    def keep_first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated  # the object at the top is the last to be made
        kept: dict[str, Any] = {}
        for key, value in pairs:
            kept.setdefault(key, value)
        counts = Counter(key for key, _ in pairs) if len(kept) < len(pairs) else {}
        repeated = frozenset(key for key, count in counts.items() if count > 1)
        return kept

    try:
        return json.loads(str(data, "utf-8"), object_pairs_hook=keep_first), repeated
    except RecursionError as error:
        text = f"The {what} is nested too deeply. Send fewer objects and arrays within others."
        raise ServeError(
            Code.INVALID, text, info=ErrorInfo.of(data_reasons.NO_JSON, found=str(error))
        ) from error


def judge_values(data: Buffer, what: str) -> None:
    """Raise TOO_LARGE for more values than can be read one by one while others wait, and held as objects."""
    if len(data) > MOST_VALUES and has_many_values(bytes(data), MOST_VALUES):
        raise ServeError(
            Code.TOO_LARGE,
            f"The {what} has more than {MOST_VALUES} values. Send long tensors to the model's route `infer`.",
        )


def decode_object(data: Buffer, what: str) -> dict[str, Any]:
    """A body that must be a JSON object; an empty one is an empty object. INVALID, naming `what`."""
    if not data:
        return {}
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = f"The {what} is no valid JSON: {error}. Send an object."
        raise ServeError(
            Code.INVALID, text, info=ErrorInfo.of(data_reasons.NO_JSON, found=str(error))
        ) from error
    if not isinstance(found, dict):
        text = f"The {what} is JSON, but no object. Send one, in braces."
        raise ServeError(Code.INVALID, text, info=ErrorInfo.of(data_reasons.NO_OBJECT))
    return found


READERS: Mapping[RawForm, Read] = {RawForm.TENSOR: read_bare, RawForm.FIELDS: read_generate}


def _field(spec: TensorSpec, value: Any, wanted: Wanted) -> Tensor:
    values = value if isinstance(value, list) else [value]
    if spec.open:
        return json_documents.read_value(spec, json.dumps(values).encode())
    shape = _filled((-1, *spec.dims) if wanted.batch_axis else spec.dims, len(values))
    if shape is None:
        unfit = ErrorInfo.of(data_reasons.UNFIT, input=spec.name)
        raise _unclear(spec, wanted, f"{len(values)} values were sent, from which no shape follows", unfit)
    return jsontensors.decode(spec.name, spec.datatype, shape, msgspec.Raw(json.dumps(values).encode()))


def _filled(dims: tuple[int, ...], count: int) -> tuple[int, ...] | None:
    """The dims of `count` values, filled in from the last to the first: an open one takes all that are left. None where
    some are left over, or one cannot be filled.
    """
    left, found = count, []
    for dim in reversed(dims):
        if dim != -1 and (dim == 0 or left % dim):
            return None
        found.append(left if dim == -1 else dim)
        left = 1 if dim == -1 else left // dim
    return tuple(reversed(found)) if left == 1 else None


def _shape(dims: tuple[int, ...], count: int) -> tuple[int, ...] | None:
    """The dims with the open one filled in so that they make `count`; None where they cannot, or where several are
    open and there is not just one element.
    """
    if count == 1 and all(dim in (1, -1) for dim in dims):
        return (1,) * len(dims)
    if dims.count(-1) > 1:
        return None
    fixed = prod(dim for dim in dims if dim != -1)
    if -1 not in dims:
        return dims if fixed == count else None
    return (
        tuple(count // fixed if dim == -1 else dim for dim in dims) if fixed and count % fixed == 0 else None
    )


def _in_rows(shape: tuple[int, ...], wanted: Wanted) -> tuple[int, ...]:
    return (1, *shape) if wanted.batch_axis else shape


def _unclear(spec: TensorSpec, wanted: Wanted, found: str, facts: ErrorInfo) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"Input '{spec.name}' of model '{wanted.model}' is {wanted}, and {found}. Send it with its shape to /infer.",
        info=facts,
    )


def _other_size(spec: TensorSpec, size: int) -> ErrorInfo:
    if spec.dims.count(-1) > 1:
        return ErrorInfo.of(data_reasons.RAW_SHAPE, input=spec.name)
    expected = prod(dim for dim in spec.dims if dim != -1) * spec.datatype.itemsize
    if -1 in spec.dims and expected:
        expected *= size // expected
    return ErrorInfo.of(data_reasons.RAW_SIZE, expected=expected, found=size)
