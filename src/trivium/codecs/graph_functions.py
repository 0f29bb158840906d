"""Functions that graphs have of their own, from payloads to a payload: short ones, which run on the loop.

Source of `average`: spec sheet `djl`, section 6.2, where classifications of the same classes are averaged.
"""

import json
from collections.abc import Callable, Mapping, Sequence

from trivium.types.buffers import Lease
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Listed, Raw, RawPart, Tensors, Whole

Function = Callable[[Sequence[Whole]], Whole]

MOST_AVERAGED = 2**18
"""Bytes of JSON that are averaged at once."""

ADAPTER = "adapter"
"""Argument of a body by which it names an adapter."""

_CLASS, _PROBABILITY = "className", "probability"


def same(values: Sequence[Whole]) -> Whole:
    """Return the only value as it is."""
    return values[0]


def listed(values: Sequence[Whole]) -> Whole:
    """Return the values as a list."""
    return Listed(tuple(values))


def average(values: Sequence[Whole]) -> Whole:
    """Return the mean of classifications, a list of JSON documents `[{"className", "probability"}]` with the same
    classes, the most probable first. Raises MODEL_FAILED for other things, TOO_LARGE for long ones.
    """
    parts = values[0].payloads if isinstance(values[0], Listed) else tuple(values)
    if sum(len(_body(one)) for one in parts) > MOST_AVERAGED:
        raise ServeError(
            Code.TOO_LARGE,
            f"More than {MOST_AVERAGED} bytes of classes are averaged nowhere. Answer with fewer.",
        )
    found = [_classes(one) for one in parts]
    if not found:
        raise ServeError(Code.MODEL_FAILED, "There is nothing to average. Give it a list of classifications.")
    for other in found[1:]:
        if other.keys() != found[0].keys():
            unlike = ", ".join(sorted(other.keys() ^ found[0].keys())[:5])
            raise ServeError(
                Code.MODEL_FAILED,
                f"Classifications of different classes cannot be averaged; these are not in all: {unlike}.",
            )
    means = {name: sum(one[name] for one in found) / len(found) for name in found[0]}
    rows = [
        {_CLASS: name, _PROBABILITY: mean} for name, mean in sorted(means.items(), key=lambda one: -one[1])
    ]
    return Raw((RawPart(json.dumps(rows, ensure_ascii=False).encode(), "application/json"),))


FUNCTIONS: Mapping[str, Function] = {"same": same, "list": listed, "average": average}


def as_request(value: Whole, lease: Lease | None, adapter: str = "") -> Whole:
    """Return what a step answered as the request of the next one: all of it but its status. A body names the `adapter`
    that it is for, if there is one, and no other, as its last argument.
    """
    if isinstance(value, Raw):
        query = value.query
        if adapter:
            query = (*(pair for pair in query if pair[0] != ADAPTER), (ADAPTER, adapter))
        return Raw(value.parts, value.properties, query, lease=lease, path=value.path, form=value.form)
    if isinstance(value, Tensors):
        return Tensors(value.items, lease)
    return Listed(value.payloads, lease)


def _body(value: Whole) -> bytes | memoryview:
    return value.parts[0].data if isinstance(value, Raw) and value.parts else b""


def _classes(value: Whole) -> dict[str, float]:
    try:
        document = json.loads(bytes(_body(value)))
        return {str(row[_CLASS]): float(row[_PROBABILITY]) for row in document}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ServeError(
            Code.MODEL_FAILED,
            'Only classifications are averaged: JSON like [{"className": "cat", "probability": 0.9}].',
        ) from error
