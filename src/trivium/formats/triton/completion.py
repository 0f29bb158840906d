"""What the model file says, put beside what its configuration says: completed, and checked.

Sheet "triton", section 2.4, step C, for the ONNX Runtime backend. Pure rules on ModelFacts; must not open the
file, nor know the engine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trivium.dialects.triton.backends import BACKENDS
from trivium.dialects.triton.checks import check_warmups, fits
from trivium.dialects.triton.config_text import ConfigText
from trivium.dialects.triton.description import DIALECT, Document, document_of, fill_tensors
from trivium.dialects.triton.descriptor import new_config
from trivium.formats.triton import translation
from trivium.formats.triton.normalisation import fill_preferred
from trivium.formats.triton.own_completion import complete_by_model
from trivium.types.errors import ConfigError
from trivium.types.findings import Finding, Severity
from trivium.types.spec import Foreign, ModelFacts, ModelSpec, Origin, TensorSpec

_FROM_FILE = "auto-completed from the model file"


def complete(spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
    """The spec with inputs, outputs and batching filled in where its configuration left them to the file.

    Raises ConfigError where the two contradict each other. A backend whose model files name no tensors says
    nothing about them: its spec stays as it is, unless the model's own code completed it.
    """
    if facts.document:
        return complete_by_model(spec, facts.document)
    if not any(backend.completes for backend in BACKENDS if backend.engine_name == spec.engine):
        return spec
    document = document_of(spec)
    assert document is not None, "a spec of another format was given to the Triton format to finish"
    config = new_config()
    config.CopyFrom(document.text.config)
    text = replace(document.text, config=config)
    rules: dict[str, str] = {}
    if not (spec.inputs or len(config.batch_input)) or not spec.outputs:
        if config.max_batch_size > 0 and not facts.batchable:
            raise ConfigError((_not_batchable(text, facts),))
        _fill(document.default_rows, text, facts, rules)
    faults = [*_contradictions(text, facts), *(check_warmups(text) if rules else ())]
    if any(finding.severity is Severity.ERROR for finding in faults):
        raise ConfigError((*spec.reports, *faults))
    finished = _respecify(spec, replace(document, text=text), rules) if rules else spec
    return replace(finished, reports=(*spec.reports, *_bare_batches(text, rules)))


def _fill(default_rows: int, text: ConfigText, facts: ModelFacts, rules: dict[str, str]) -> None:
    config = text.config
    if facts.batchable and config.max_batch_size == 0 and default_rows > 0:
        config.max_batch_size = default_rows
        rules["max_batch_size"] = f"{_FROM_FILE}: it can batch (the server's default)"
        if default_rows > 1 and config.WhichOneof("scheduling_choice") is None:
            config.dynamic_batching.SetInParent()
            rules["dynamic_batching"] = f"{_FROM_FILE}: it can batch"
        fill_preferred(config, rules)
    first = 1 if config.max_batch_size else 0
    controls = _control_names(text)
    inputs = tuple(tensor for tensor in facts.inputs if tensor.name not in controls)
    for section, blocks, tensors in (
        ("input", config.input, inputs),
        ("output", config.output, _shown(text, facts.outputs)),
    ):
        if not len(blocks):
            fill_tensors(blocks, tuple(replace(tensor, dims=tensor.dims[first:]) for tensor in tensors))
            for i in range(len(tensors)):
                rules |= {f"{section}[{i}].{part}": _FROM_FILE for part in ("name", "data_type", "dims")}


def _control_names(text: ConfigText) -> set[str]:
    """Inputs of the model file that the server makes itself."""
    batching = text.config.sequence_batching
    return {block.name for block in batching.control_input} | {block.input_name for block in batching.state}


def _shown(text: ConfigText, outputs: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    """Those outputs of the model file that are no state."""
    hidden = {block.output_name for block in text.config.sequence_batching.state}
    return tuple(tensor for tensor in outputs if tensor.name not in hidden)


def _respecify(spec: ModelSpec, document: Document, rules: dict[str, str]) -> ModelSpec:
    text = document.text
    outputs = translation.tensors(iter(text.config.output))
    fresh = translation.origins(text, rules)
    kept = {
        field: origin for field, origin in fresh.items() if _is_filled(origin) or field not in spec.origin
    }
    return replace(
        spec,
        inputs=translation.tensors(iter(text.config.input)),
        outputs=spec.outputs or outputs,
        batching=translation.batching(text),
        scheduling=translation.scheduling(text, spec.root.parent),
        foreign=Foreign(DIALECT, document),
        origin={**spec.origin, **kept},
    )


def _bare_batches(text: ConfigText, rules: dict[str, str]) -> Iterator[Finding]:
    """The original shows such a tensor as [1] and reshapes it; here it has the shape that the file gives it."""
    for section, blocks in (("input", text.config.input), ("output", text.config.output)):
        for i, block in enumerate(blocks):
            if f"{section}[{i}].dims" in rules and not block.dims:
                found = (
                    f"{block.name} has no dimension of its own, and its shape is left so (no reshape to [1])"
                )
                yield text.notice(f"{section}[{i}].dims", found)


def _is_filled(origin: Origin) -> bool:
    return not origin.key


def _contradictions(text: ConfigText, facts: ModelFacts) -> Iterator[Finding]:
    """The configuration against the file: names, types, shapes, and inputs that the file needs."""
    inputs = translation.tensors(iter(text.config.input))
    yield from _compare(text, "input", inputs, facts.inputs)
    yield from _compare(text, "output", translation.tensors(iter(text.config.output)), facts.outputs)
    named = {tensor.name for tensor in inputs} | _control_names(text)
    for tensor in facts.inputs:
        if tensor.name not in named and not tensor.optional:
            found = f"no input {tensor.name}: {len(inputs)} are configured, the model file has {len(facts.inputs)}"
            mend = f'Add input {{ name: "{tensor.name}" ... }}, or remove all inputs to have them filled in.'
            yield text.fault("input", found, f"every input of the model file: {_names(facts.inputs)}", mend)


def _compare(
    text: ConfigText, section: str, configured: Sequence[TensorSpec], there: Sequence[TensorSpec]
) -> Iterator[Finding]:
    by_name = {tensor.name: tensor for tensor in there}
    for i, ours in enumerate(configured):
        key = f"{section}[{i}]"
        theirs = by_name.get(ours.name)
        if theirs is None:
            found = f"the {section} {ours.name}, which the model file does not have"
            yield text.fault(
                f"{key}.name", found, f"one of {_names(there)}", "Name it as the model file does."
            )
            continue
        if ours.datatype is not theirs.datatype:
            found = f"{ours.datatype.wire} for the {section} {ours.name}"
            mend = "Write the type of the model file."
            yield text.fault(f"{key}.data_type", found, f"{theirs.datatype.wire}, as in the model file", mend)
        yield from _compare_shapes(text, key, ours, theirs)


def _compare_shapes(text: ConfigText, key: str, ours: TensorSpec, theirs: TensorSpec) -> Iterator[Finding]:
    batches = text.config.max_batch_size > 0
    whole = [*([-1] if batches else []), *ours.dims]
    wanted = list(theirs.dims)
    if batches and (not wanted or wanted[0] != -1):
        found = f"max_batch_size {text.config.max_batch_size}, while {ours.name} has the shape {wanted}"
        expected = "a first dimension of any size (-1) in the model file"
        mend = "Write max_batch_size: 0 and whole dims, or export the model with a batch dimension."
        yield text.fault("max_batch_size", found, expected, mend)
    elif not fits(whole, wanted):
        how = f" ([-1] for the batch, then dims {list(ours.dims)})" if batches else ""
        found = f"the shape {whole}{how} for {ours.name}"
        expected = f"{wanted}, as in the model file (-1 is any size)"
        yield text.fault(f"{key}.dims", found, expected, f"Write dims: {wanted[1:] if batches else wanted}.")


def _not_batchable(text: ConfigText, facts: ModelFacts) -> Finding:
    fixed = [t for t in (*facts.inputs, *facts.outputs) if not t.dims or t.dims[0] != -1]
    shapes = ", ".join(f"{tensor.name} {list(tensor.dims)}" for tensor in fixed)
    found = f"max_batch_size {text.config.max_batch_size} for a model file that cannot batch"
    expected = f"a first dimension of any size (-1) everywhere, but there is {shapes}"
    return text.fault("max_batch_size", found, expected, "Write max_batch_size: 0, or export the model anew.")


def _names(tensors: Sequence[TensorSpec]) -> str:
    return ", ".join(tensor.name for tensor in tensors)
