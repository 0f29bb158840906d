"""Checks the `reshape` of an input or output (sheet "triton", sections 2.5 and 3.2). Pure."""

from collections.abc import Iterator, Sequence
from math import prod

from trivium.servers.triton.words.config_text import ConfigText
from trivium.types.findings import Finding


def check_reshapes(text: ConfigText) -> Iterator[Finding]:
    """Is each a shape, and of as many elements as the dims, between the same sizes that vary?"""
    for section, tensors in (("input", text.config.input), ("output", text.config.output)):
        for i, tensor in enumerate(tensors):
            if tensor.HasField("reshape"):
                yield from _one(text, f"{section}[{i}].reshape", tensor.dims, tensor.reshape.shape)


def _one(text: ConfigText, key: str, dims: Sequence[int], shape: Sequence[int]) -> Iterator[Finding]:
    wrong = [size for size in shape if size < 1 and size != -1]
    if wrong:
        hint = "Write -1 for any size; the batch dimension is not listed here."
        yield text.fault(f"{key}.shape", f"the size {wrong[0]}", "1 or more, or -1", hint)
    elif _segments(dims) != _segments(shape):
        found = f"dims {list(dims)} reshaped to {list(shape)}"
        expected = "as many elements in both, before, between and behind each -1"
        yield text.fault(f"{key}.shape", found, expected, "Correct one of the two.")


def _segments(dims: Sequence[int]) -> list[int]:
    """Elements before, between and behind the sizes that vary."""
    parts: list[list[int]] = [[]]
    for size in dims:
        if size == -1:
            parts.append([])
        else:
            parts[-1].append(size)
    return [prod(part) for part in parts]
