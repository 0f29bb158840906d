"""The steps that a translator of one's own is made of: a picture into a tensor, a tensor into an answer.

They are those of `trivium_worker.pictures`, which a handler of a worker process imports by that name.
"""

from trivium_worker.pictures import (
    center_crop,
    center_fit,
    classifications,
    normalize,
    open_picture,
    pad,
    resize,
    resize_short,
    sigmoid,
    softmax,
    to_array,
    to_tensor,
)

__all__ = [
    "center_crop",
    "center_fit",
    "classifications",
    "normalize",
    "open_picture",
    "pad",
    "resize",
    "resize_short",
    "sigmoid",
    "softmax",
    "to_array",
    "to_tensor",
]
