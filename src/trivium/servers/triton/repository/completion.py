"""Completes a configuration by its model file, and checks the one against the other.

Sheet "triton", section 2.4, step C, for the ONNX Runtime backend. Pure rules on ModelFacts; must not open the
file, nor know the engine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trivium.servers.triton.repository import disagreements, open_tensors, translation
from trivium.servers.triton.repository.disagreements import of_version, with_fact
from trivium.servers.triton.repository.normalisation import fill_preferred
from trivium.servers.triton.repository.own_completion import complete_by_model
from trivium.servers.triton.words.backends import BACKENDS
from trivium.servers.triton.words.checks import check_warmups, fits
from trivium.servers.triton.words.config_text import ConfigText
from trivium.servers.triton.words.description import DIALECT, Document, document_of, fill_tensors
from trivium.types.errors import ConfigError
from trivium.types.findings import Change, Finding, Severity
from trivium.types.spec import Foreign, ModelFacts, ModelSpec, Origin, TensorSpec
from trivium.wires.v2.descriptor import new_config

_FROM_FILE = "auto-completed from the model file"


def complete(spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
    """The spec with inputs, outputs and batching filled in where its configuration left them to the file.

    Raises ConfigError where the two contradict each other. A backend whose model files name no tensors says
    nothing about them: its spec stays as it is, unless the model's own code completed it.
    """
    if facts.document:
        return complete_by_model(spec, facts.document)
    backends = [backend for backend in BACKENDS if backend.engine_name == spec.engine]
    if not any(backend.completes for backend in backends):
        return open_tensors.told(spec, facts)
    document = document_of(spec)
    assert document is not None, "a spec of another format was given to the Triton format to finish"
    config = new_config()
    config.CopyFrom(document.text.config)
    text = replace(document.text, config=config)
    rules: dict[str, str] = {}
    if not (spec.inputs or len(config.batch_input)) or not spec.outputs:
        if config.max_batch_size > 0 and not facts.batchable:
            fault = with_fact(_not_batchable(text, facts), disagreements.autofill(spec.name))
            raise ConfigError(of_version((fault,), spec.name, spec.version))
        is_whole = any(backend.keeps_dims for backend in backends) and _is_whole(spec, facts)
        _fill(0 if is_whole else document.default_rows, text, facts, rules)
    faults = [*_contradictions(text, facts), *(check_warmups(text) if rules else ())]
    if any(finding.severity is Severity.ERROR for finding in faults):
        raise ConfigError(of_version((*spec.reports, *faults), spec.name, spec.version))
    finished = _respecify(spec, replace(document, text=text), rules) if rules else spec
    return _with_scalars(finished, facts, text)


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
    controls = _made_names(text)
    inputs = tuple(tensor for tensor in facts.inputs if tensor.name not in controls)
    for section, blocks, tensors in (
        ("input", config.input, inputs),
        ("output", config.output, _shown(text, facts.outputs)),
    ):
        if not len(blocks):
            fill_tensors(blocks, tuple(_without_rows(tensor, first) for tensor in tensors))
            for i in range(len(tensors)):
                parts = ("name", "data_type", "dims", "reshape.shape")
                rules |= {f"{section}[{i}].{part}": _FROM_FILE for part in parts}


def _is_whole(spec: ModelSpec, facts: ModelFacts) -> bool:
    """Has a configured tensor as many dims as the file has with its first?"""
    ranks = {tensor.name: len(tensor.dims) for tensor in (*facts.inputs, *facts.outputs)}
    return any(ranks.get(one.name) == len(one.dims) for one in (*spec.inputs, *spec.outputs))


def _without_rows(tensor: TensorSpec, first: int) -> TensorSpec:
    """Show a tensor without any dimension but the batch with one more, of size 1: a configuration has no empty dims,
    nor an empty reshape without a batch.
    """
    dims = tensor.dims[first:]
    return replace(tensor, dims=dims or (1,), inner=() if first and not dims else None)


def _made_names(text: ConfigText) -> set[str]:
    """Inputs of the model file that the server makes itself."""
    batching = text.config.sequence_batching
    told = {name for block in text.config.batch_input for name in block.target_name}
    return (
        told
        | {block.name for block in batching.control_input}
        | {block.input_name for block in batching.state}
    )


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


def _with_scalars(spec: ModelSpec, facts: ModelFacts, text: ConfigText) -> ModelSpec:
    """Return the spec whose clients see a tensor that has no dimension in the file in the shape that is configured.
    Where there is a batch, such a tensor is one for all of its rows, so that no two requests share one.
    """
    bare = {tensor.name for tensor in (*facts.inputs, *facts.outputs) if not tensor.dims}
    if not bare:
        return spec
    inputs, outputs = (
        tuple(replace(one, inner=()) if one.name in bare else one for one in side)
        for side in (spec.inputs, spec.outputs)
    )
    spec = replace(spec, inputs=inputs, outputs=outputs)
    if not spec.batching.batch_axis or not spec.batching.merge:
        return spec
    found = f"{', '.join(sorted(bare))} without a batch dimension in the model file, so that no requests are batched"
    notice = text.notice(
        "dynamic_batching", found, hint="Remove it, or give them a first dimension of any size."
    )
    batching = replace(spec.batching, merge=False)
    return replace(spec, batching=batching, reports=(*spec.reports, notice))


def _is_filled(origin: Origin) -> bool:
    return not origin.key


def _contradictions(text: ConfigText, facts: ModelFacts) -> Iterator[Finding]:
    """The configuration against the file: names, types, shapes, and inputs that the file needs."""
    inputs = translation.tensors(iter(text.config.input))
    yield from _compare(text, "input", inputs, facts.inputs)
    yield from _compare(text, "output", translation.tensors(iter(text.config.output)), facts.outputs)
    named = {tensor.name for tensor in inputs} | _made_names(text)
    for tensor in facts.inputs:
        if tensor.name not in named and not tensor.optional:
            found = f"no input {tensor.name}: {len(inputs)} are configured, the model file has {len(facts.inputs)}"
            hint = f'Add input {{ name: "{tensor.name}" ... }}, or remove all inputs to have them filled in.'
            expected = f"every input of the model file: {_names(facts.inputs)}"
            words = disagreements.count(text.config.name, len(inputs), len(facts.inputs))
            yield with_fact(text.fault("input", found, expected, hint), words)


def _compare(
    text: ConfigText, section: str, configured: Sequence[TensorSpec], there: Sequence[TensorSpec]
) -> Iterator[Finding]:
    by_name = {tensor.name: tensor for tensor in there}
    following = {name for block in text.config.batch_output for name in block.target_name}
    for i, ours in enumerate(configured):
        key = f"{section}[{i}]"
        theirs = by_name.get(ours.name)
        if theirs is None:
            found = f"the {section} {ours.name}, which the model file does not have"
            fault = text.fault(
                f"{key}.name", found, f"one of {_names(there)}", "Name it as the model file does."
            )
            yield with_fact(fault, disagreements.name(section, ours.name, there))
            continue
        if ours.datatype is not theirs.datatype:
            found = f"{ours.datatype.wire} for the {section} {ours.name}"
            typed = "TYPE_STRING" if theirs.datatype.wire == "BYTES" else f"TYPE_{theirs.datatype.wire}"
            expected = f"{theirs.datatype.wire}, as in the model file"
            fault = text.fault(
                f"{key}.data_type", found, expected, f"Write data_type: {typed}.", Change(value=typed)
            )
            yield with_fact(fault, disagreements.datatype(text.config.name, section, ours, theirs))
        if ours.name not in following:  # its elements are divided, whatever shape they come in
            yield from _compare_shapes(text, key, ours, theirs)


def _compare_shapes(text: ConfigText, key: str, ours: TensorSpec, theirs: TensorSpec) -> Iterator[Finding]:
    batches = text.config.max_batch_size > 0
    dims = ours.dims if ours.inner is None else ours.inner
    whole = [*([-1] if batches else []), *dims]
    wanted = list(theirs.dims)
    if ours.ragged:
        if wanted != [-1]:
            found = f"the ragged input {ours.name}, which has the shape {wanted} in the model file"
            expected = "[-1]: the requests of a batch lie there one behind the other"
            hint = "Remove allow_ragged_batch, or export the model with one dimension of any size."
            yield text.fault(f"{key}.allow_ragged_batch", found, expected, hint)
    elif not wanted:
        if any(size != 1 for size in dims):
            found = f"the shape {list(dims)} for {ours.name}"
            words = disagreements.scalar(text.config.name, ours.name, dims)
            expected = "sizes of 1 alone: it has no dimension in the model file, and so one element"
            fault = text.fault(f"{key}.dims", found, expected, "Write dims: 1.", Change(value="1"))
            yield with_fact(fault, words)
    elif batches and wanted[0] != -1:
        found = f"max_batch_size {text.config.max_batch_size}, while {ours.name} has the shape {wanted}"
        expected = "a first dimension of any size (-1) in the model file"
        hint = "Write max_batch_size: 0 and whole dims, or export the model with a batch dimension."
        words = disagreements.batch(text.config.name, ours.name, wanted)
        fault = text.fault("max_batch_size", found, expected, hint, Change(value="0"))
        yield with_fact(fault, words)
    elif not fits(whole, wanted):
        what = "dims" if ours.inner is None else "reshape"
        how = f" ([-1] for the batch, then {what} {list(dims)})" if batches else ""
        found = f"the shape {whole}{how} for {ours.name}"
        expected = f"{wanted}, as in the model file (-1 is any size)"
        words = disagreements.shape(text.config.name, ours.name, whole, wanted, batches)
        hint, change = _as_wanted(wanted[1:] if batches else wanted, ours.inner is not None)
        yield with_fact(text.fault(f"{key}.dims", found, expected, hint, *change), words)


def _as_wanted(dims: list[int], is_reshaped: bool) -> tuple[str, tuple[Change, ...]]:
    """Say how a tensor of these dims is written: none at all are dims of one, reshaped to nothing."""
    value = str(dims) if dims else "[ 1 ] reshape { shape: [ ] }"
    if not is_reshaped:
        return f"Write dims: {value}.", (Change(value=value),)
    return f"Write dims: {value} in place of dims and reshape.", ()


def _not_batchable(text: ConfigText, facts: ModelFacts) -> Finding:
    fixed = [t for t in (*facts.inputs, *facts.outputs) if not t.dims or t.dims[0] != -1]
    shapes = ", ".join(f"{tensor.name} {list(tensor.dims)}" for tensor in fixed)
    found = f"max_batch_size {text.config.max_batch_size} for a model file that cannot batch"
    expected = f"a first dimension of any size (-1) everywhere, but there is {shapes}"
    hint = "Write max_batch_size: 0, or export the model anew."
    return text.fault("max_batch_size", found, expected, hint, Change(value="0"))


def _names(tensors: Sequence[TensorSpec]) -> str:
    return ", ".join(tensor.name for tensor in tensors)
