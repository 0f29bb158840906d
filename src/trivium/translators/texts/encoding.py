"""Texts as the tensors of a model, with what is needed to read its outputs; and checks of those outputs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trivium.translators.arguments import TextArguments
from trivium.translators.long_texts import Encode, LongTexts
from trivium.translators.texts.tokenizer import Text, TextTokenizer, TokenRow
from trivium.types.datatype import Array
from trivium.types.errors import Code, ServeError

Floats = npt.NDArray[np.float32]


class EncodedTexts(NamedTuple):
    """The tensors of some rows, padded together, and the encoding of each row."""

    arrays: dict[str, Array]
    encodings: Sequence[TokenRow]


class TextEncoder:
    """Encodes the rows of one request, or of a batch of them, for a model."""

    def __init__(self, folder: Path, arguments: TextArguments) -> None:
        self.tokenizer = TextTokenizer(folder, arguments.tokenizer)
        self.long = LongTexts(folder, arguments.tokenizer, self.tokenizer)
        self.names = ("input_ids", "attention_mask", *(("token_type_ids",) * arguments.include_token_types))
        self._dtype = np.dtype("<i4" if arguments.int32 else "<i8")

    def encode(self, rows: Sequence[Text], encode: Encode | None = None) -> EncodedTexts:
        """Return the tensors `[rows, tokens]` of texts or pairs, in DJL's order. INVALID for texts that do not fit.
        `encode` does it elsewhere, and raises what it likes to.
        """
        encodings = self.tokenizer.encode(rows) if encode is None else encode(rows)
        columns = (
            [encoding.ids for encoding in encodings],
            [encoding.attention_mask for encoding in encodings],
            [encoding.type_ids for encoding in encodings],
        )
        arrays: dict[str, Array] = {
            name: np.array(column, self._dtype) for name, column in zip(self.names, columns, strict=False)
        }
        return EncodedTexts(arrays, encodings)


class EncodesTexts:
    """Owns the encoder of a model's tokenizer, for those that read requests of texts and make their answers."""

    def __init__(self, folder: Path, arguments: TextArguments) -> None:
        self.encoder = TextEncoder(folder, arguments)

    def encode(self, rows: Sequence[Text], encode: Encode | None = None) -> EncodedTexts:
        """Return the tensors of some rows, padded together. See `TextEncoder.encode`."""
        return self.encoder.encode(rows, encode)


def output_at(outputs: Mapping[str, Array], place: int, rank: int, rows: int) -> Floats:
    """Return an output of `rows` rows as FP32. MODEL_FAILED where there is none of that rank, or NaN in it."""
    arrays = list(outputs.values())
    if place >= len(arrays):
        raise failure(f"The model answered with {len(arrays)} outputs; expected at least {place + 1}.")
    return checked(arrays[place], rank, rows)


def checked(array: Array, rank: int, rows: int) -> Floats:
    """Return an array of `rows` rows as FP32. MODEL_FAILED where it has another rank or number, or NaN in it."""
    if array.ndim != rank or len(array) != rows or 0 in array.shape:
        shape = ", ".join([str(rows), *["n"] * (rank - 1)])
        raise failure(f"The model's output has the shape {list(array.shape)}; expected [{shape}].")
    numbers = array.astype(np.float32)
    if not np.isfinite(numbers).all():
        raise failure("The model answered with NaN or infinity, which JSON cannot hold.")
    return numbers


def failure(message: str) -> ServeError:
    """Return the error of a model whose outputs cannot be read."""
    return ServeError(Code.MODEL_FAILED, message)
