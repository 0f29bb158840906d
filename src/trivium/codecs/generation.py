"""Requests to generate as named tensors or fields, and what is generated as tensors.

Source: the names of Triton's vLLM backend: `text_input`, `stream`, `sampling_parameters` in, `text_output` out; with
`input_ids` and `inputs_embeds` in place of the text.
"""

from collections.abc import Mapping

import numpy as np

from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Generate, Generated
from trivium.types.payload import Raw, Scalar, Tensor, Tensors


def to_generate(
    payload: Tensors | Raw, parameters: Mapping[str, Scalar], model: str
) -> tuple[Generate, Mapping[str, Scalar]]:
    """Return what is asked for, and the parameters that are left. INVALID for what is no request to generate."""
    raise ServeError(Code.UNSUPPORTED, f"Model '{model}' generates, and takes no tensors.")


def as_tensors(part: Generated) -> Tensors:
    """One part of an answer: the text of each sequence."""
    texts = np.array([choice.text.encode() for choice in part.choices], dtype=object)
    return Tensors((Tensor("text_output", DataType.BYTES, texts.shape, texts),))
