"""The top-level `parameters` of an infer request: those that the protocol knows, and the model's own.

Source: spec sheet `triton`, section 4.4. Here its units become ours: microseconds become seconds. Knows no
model: whether a priority or a time-out may be asked for is the core's to judge.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from trivium.codecs import data_reasons
from trivium.codecs.error_texts import quoted_json
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.operations import SequenceRef
from trivium.types.payload import Scalar
from trivium.wires.v2 import request_reasons

RESERVED = "triton_"
_MAX_UINT64 = 2**64 - 1
_MIN_INT64 = -(2**63)


class RequestParameters(msgspec.Struct, frozen=True, gc=False):
    """The parameters of a request. `own` goes to the model, `queue_timeout` is in seconds.

    `binary_output` is how outputs are written that do not say so themselves.
    """

    own: Mapping[str, Scalar] = {}
    priority: int = 0
    queue_timeout: float | None = None
    sequence: SequenceRef | None = None
    binary_output: bool = False


_NONE = RequestParameters()
_BINARY = RequestParameters(binary_output=True)
_BINARY_ALONE = {"binary_data_output": True}


def read_parameters(given: dict[str, Any]) -> RequestParameters:
    """Sort out `given`, decoded JSON. INVALID, naming the key, for a value of the wrong type or size."""
    if not given:
        return _NONE
    if given == _BINARY_ALONE and given["binary_data_output"] is True:  # as NVIDIA's client asks by default
        return _BINARY
    rest = dict(given)
    return RequestParameters(
        binary_output=_flag(rest, "binary_data_output"),
        priority=_unsigned(rest, "priority"),
        queue_timeout=_unsigned(rest, "timeout") / 1e6 or None,
        sequence=_sequence(rest),
        own=_own(rest),
    )


def _flag(rest: dict[str, Any], key: str) -> bool:
    value = rest.pop(key, False)
    if not isinstance(value, bool):
        raise _unfit(key, value, "true or false", "boolean")
    return value


def _unsigned(rest: dict[str, Any], key: str) -> int:
    value = rest.pop(key, 0)
    if type(value) is not int or not 0 <= value <= _MAX_UINT64:
        kind = "string" if key == "sequence_id" else "unsigned-integer"
        raise _unfit(key, value, f"an integer from 0 to {_MAX_UINT64}", kind)
    return value


def _sequence(rest: dict[str, Any]) -> SequenceRef | None:
    starts = _flag(rest, "sequence_start")
    ends = _flag(rest, "sequence_end")
    is_text = isinstance(rest.get("sequence_id"), str)
    identity: int | str = rest.pop("sequence_id") if is_text else _unsigned(rest, "sequence_id")
    # Without an id its marks say nothing: a model that keeps sequences refuses the request itself.
    return SequenceRef(identity, starts, ends) if identity else None


def check_scalar(key: str, value: object) -> None:
    """Raise INVALID for a value that no parameter of a model can have."""
    if not isinstance(value, (bool, int, float, str)):
        raise _unfit(key, value, "true or false, a number or a string")
    if isinstance(value, int) and not _MIN_INT64 <= value <= _MAX_UINT64:
        raise _unfit(key, value, "an integer of 64 bits")


def _own(rest: dict[str, Any]) -> Mapping[str, Scalar]:
    for key, value in rest.items():
        if key.startswith(RESERVED):
            raise ServeError(
                Code.INVALID,
                f"The parameter {key!r} is not served: names that begin with {RESERVED!r} are reserved. "
                "Choose another name.",
                info=ErrorInfo.of(request_reasons.RESERVED, key=key),
            )
        check_scalar(key, value)
    return rest


def _unfit(key: str, value: object, expected: str, kind: str = "") -> ServeError:
    """`kind`: what a parameter of the protocol's has to be, in the words of JSON."""
    return ServeError(
        Code.INVALID,
        f"The parameter {key!r} is {quoted_json(value, 40)}, but {expected} was expected. Correct its value.",
        info=ErrorInfo.of(request_reasons.PARAMETER, key=key, expected=kind)
        if kind
        else ErrorInfo.of(data_reasons.NO_SCALAR, key=key),
    )
