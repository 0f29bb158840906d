"""Texts of ONNX Runtime's backend about a model file and its configuration that disagree: sheet "triton", 2.4, C.

Texts for clients of a load, beside the sentences of `completion`. Decides nothing.
"""

from collections.abc import Sequence
from dataclasses import replace

from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.findings import Finding
from trivium.types.spec import TensorSpec


def with_fact(finding: Finding, text: str) -> Finding:
    """Return the finding with the text as a fact; model and version are added by `of_version`."""
    return replace(finding, info=ErrorInfo.of(reasons.NOT_LOADED, text=f"Invalid argument: {text}"))


def of_version(findings: Sequence[Finding], model: str, version: str) -> tuple[Finding, ...]:
    """Return the findings, each fact with its model and version."""
    about = {"model": model, "version": version}
    return tuple(
        replace(one, info=ErrorInfo.of(one.info.reason, **{**one.info.metadata, **about}))
        if one.info
        else one
        for one in findings
    )


def count(model: str, configured: int, there: int) -> str:
    """Inputs are too few."""
    return (
        f"unable to load model '{model}', configuration expects {configured} inputs, model provides {there}"
    )


def name(section: str, name: str, there: Sequence[TensorSpec]) -> str:
    """Return the text about a tensor that the file does not have."""
    allowed = ", ".join(tensor.name for tensor in there)
    return f"unexpected inference {section} '{name}', allowed {section}s are: {allowed}"


def datatype(model: str, section: str, ours: TensorSpec, theirs: TensorSpec) -> str:
    """Return the text about a tensor of another type."""
    return (
        f"unable to load model '{model}', configuration expects datatype TYPE_{_type(ours)} for {section} "
        f"'{ours.name}', model provides TYPE_{_type(theirs)}"
    )


def shape(model: str, tensor: str, whole: Sequence[int], wanted: Sequence[int], batches: bool) -> str:
    """Return the text about a tensor of another shape."""
    text = f"model '{model}', tensor '{tensor}': the model expects {len(wanted)} dimensions (shape {_shape(wanted)}) "
    text += f"but the model configuration specifies {len(whole)} dimensions "
    if batches:
        text += "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making "
        return f"{text}complete shape {_shape(whole)})"
    return f"{text}(shape {_shape(whole)})"


def batch(model: str, tensor: str, wanted: Sequence[int]) -> str:
    """Return the text about a tensor without a batch dimension, while there is a max_batch_size."""
    return (
        f"model '{model}', tensor '{tensor}': for the model to support batching the shape should have at least 1 "
        f"dimension and the first dimension must be -1; but shape expected by the model is {_shape(wanted)}"
    )


def scalar(model: str, tensor: str, dims: Sequence[int]) -> str:
    """Return the text about a tensor without dimensions that is configured with several elements."""
    return (
        f"unable to load model '{model}', scalar tensor '{tensor}', should only provide 1 in the model configuration "
        f"when the model doesn't support batching. Model configuration provided: {_shape(dims)}."
    )


def autofill(model: str) -> str:
    """Return the text about a model that cannot batch, and should, whose tensors are not configured."""
    text = "model does not support batching while non-zero max_batch_size is specified"
    return f"autofill failed for model '{model}': {text}"


def _type(tensor: TensorSpec) -> str:
    return "STRING" if tensor.datatype.wire == "BYTES" else tensor.datatype.wire


def _shape(dims: Sequence[int]) -> str:
    return f"[{','.join(map(str, dims))}]"
