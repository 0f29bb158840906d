"""NDList for clients: DJL's binary form of a list of tensors, to and from numpy arrays.

    body = trivium.ndlist.encode([pixels])
    (scores,) = trivium.ndlist.decode(answer)

Source: spec sheet `djl`, section 9.3.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from trivium.codecs import ndlist
from trivium.types.errors import ServeError
from trivium.types.payload import Tensor, Tensors


def encode(arrays: Sequence[npt.ArrayLike] | Mapping[str, npt.ArrayLike]) -> bytes:
    """Return the NDList of arrays, in order; of a mapping with its names. Text is UTF-8.

    Raises TypeError for a dtype that an NDList does not have, ValueError for what it cannot hold.
    """
    is_named = isinstance(arrays, Mapping)
    pairs = arrays.items() if isinstance(arrays, Mapping) else enumerate(arrays)
    made = Tensors.of({str(name): np.asarray(array) for name, array in pairs})
    tensors = [one if is_named else Tensor("", one.datatype, one.shape, one.array) for one in made.items]
    try:
        return ndlist.encode(tensors)
    except ServeError as error:
        raise ValueError(error.message) from error


def decode(data: bytes | memoryview) -> list[npt.NDArray[np.generic]]:
    """Return the arrays of an NDList, which may be read-only views of its bytes; text as `bytes` objects, BFLOAT16 as
    its bits in uint16. Raises ValueError for what is no NDList.
    """
    return [one.array for one in _decoded(data)]


def decode_named(data: bytes | memoryview) -> dict[str, npt.NDArray[np.generic]]:
    """Return the arrays of an NDList by their names; one without a name is `arr_` and its place. Raises ValueError as
    `decode`.
    """
    return {one.name or f"arr_{i}": one.array for i, one in enumerate(_decoded(data))}


def _decoded(data: bytes | memoryview) -> tuple[Tensor, ...]:
    try:
        return ndlist.decode(data, len(data))
    except ServeError as error:
        raise ValueError(error.message) from error
