"""Tensors whose datatype and shape a configuration leaves to each request, as the configuration that we print does.

The file of a scripted TorchScript module tells names alone; such a tensor is printed as `TYPE_INVALID` with dims [-1],
which in a config.pbtxt is the same as no data_type. Pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from trivium.servers.triton.words.backends import Backend
from trivium.servers.triton.words.config_text import ConfigText
from trivium.servers.triton.words.requirements import unspecified
from trivium.types.findings import Finding
from trivium.types.spec import ModelFacts, ModelSpec, TensorSpec
from trivium.wires.v2.tensor_messages import ModelTensor

_ANY = [-1]


def allowed(text: ConfigText, backend: Backend, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings without those about what may stay open with this backend, which becomes something to know."""
    open_ones = _open_keys(text) if backend.leaves_open and not text.config.max_batch_size else []
    if not open_ones:
        return list(findings)
    untyped = [one for one in unspecified(text) if one.key in open_ones]
    keys = {one.key for one in untyped} | ({"output"} if not len(text.config.output) else set())
    kept = [one for one in findings if one.key not in keys]
    found = "no datatype: datatype and shape are those of each request"
    return [*kept, *(text.notice(one.key, found) for one in untyped)]


def told(spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
    """Return the spec with what the file tells of its open inputs: which may be left out, which stands for many."""
    there = {tensor.name: tensor for tensor in facts.inputs if tensor.open}
    if not there:
        return spec
    return replace(spec, inputs=tuple(_told(tensor, there.get(tensor.name)) for tensor in spec.inputs))


def _told(tensor: TensorSpec, there: TensorSpec | None) -> TensorSpec:
    return there if tensor.open and there is not None else tensor


def _open_keys(text: ConfigText) -> list[str]:
    sections: tuple[tuple[str, Iterable[ModelTensor]], ...] = (
        ("input", text.config.input),
        ("output", text.config.output),
    )
    return [
        f"{section}[{i}].data_type"
        for section, blocks in sections
        for i, block in enumerate(blocks)
        if not block.data_type and list(block.dims) == _ANY and not block.HasField("reshape")
    ]
