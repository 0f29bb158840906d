"""Checks a config.pbtxt that can be read: the original's own checks and a few more.

Pure: what depends on the folder (versions, files) is the format's. Each check takes the text, whose message is
whole, and yields findings at the keys concerned (sheet "triton", sections 2.5 and 3.2).
"""

import re
from collections.abc import Iterator, Sequence

from trivium.servers.triton.words.config_text import ConfigText
from trivium.servers.triton.words.ensembles import check_ensemble
from trivium.servers.triton.words.keys import findings_by_role
from trivium.servers.triton.words.requirements import missing
from trivium.servers.triton.words.reshapes import check_reshapes
from trivium.servers.triton.words.sequences import check_sequences
from trivium.types.findings import Change, Finding
from trivium.types.spec import MOST_INSTANCES
from trivium.wires.v2.schema import ENUMS

KIND_AUTO, KIND_GPU, KIND_CPU, KIND_MODEL = ENUMS["ModelInstanceGroup.Kind"].values()


PICTURE_DIMS = 3
_LIBRARY = re.compile(r"libtriton_[a-z0-9_]+\.so")
MAX_LEVELS = 1000


def check(text: ConfigText, gpus: int) -> list[Finding]:
    """Everything there is to say about a file as read, what the reader found first. `gpus`: how many this
    machine has. Faults between keys are looked for only where each key could be read.
    """
    findings = [*text.findings, *missing(text), *findings_by_role(text)]
    if not text.has_errors:
        findings += _tensors(text, "input")
        findings += _tensors(text, "output")
        findings += check_reshapes(text)
        findings += _batching(text)
        findings += _priorities(text)
        findings += _groups(text, gpus)
        findings += _runtime(text)
        findings += _parameters(text)
        findings += check_warmups(text)
        findings += check_ensemble(text)
        findings += check_sequences(text)
        findings += _cache(text)
    return findings


def check_completed(text: ConfigText) -> Iterator[Finding]:
    """Check inputs, outputs and batching that were filled in after the file had been checked."""
    for section in ("input", "output"):
        yield from _tensors(text, section)
    yield from check_reshapes(text)
    yield from _batching(text)
    yield from check_warmups(text)
    yield from check_sequences(text)
    yield from _cache(text)


def _tensors(text: ConfigText, section: str) -> Iterator[Finding]:
    names: set[str] = set()
    for i, tensor in enumerate(text.config.input if section == "input" else text.config.output):
        if tensor.name in names:
            found, expected = f"a second {section} named {tensor.name}", "names that differ"
            yield text.fault(f"{section}[{i}].name", found, expected, "Rename or remove one of the two.")
        names.add(tensor.name)
        if getattr(tensor, "format", 0) and len(tensor.dims) != PICTURE_DIMS:
            found = f"{len(tensor.dims)} dims with a format of pictures"
            expected = "three: height, width and channels, in the order of the format"
            yield text.fault(f"{section}[{i}].format", found, expected, "Correct dims, or remove format.")
        for j, size in enumerate(tensor.dims):
            if size < 1 and size != -1:
                hint = "Write -1 for any size; the batch dimension is not listed here."
                key = f"{section}[{i}].dims[{j}]"
                yield text.fault(key, f"the size {size}", "1 or more, or -1", hint, Change(value="-1"))


def _batching(text: ConfigText) -> Iterator[Finding]:
    rows = text.config.max_batch_size
    if rows < 0:
        hint = "Write 0 for a model whose tensors have no batch dimension."
        yield text.fault("max_batch_size", f"the number {rows}", "0 or more", hint, Change(value="0"))
        return
    for i, preferred in enumerate(text.config.dynamic_batching.preferred_batch_size):
        if not 1 <= preferred <= rows:
            found = f"the preferred size {preferred}, with max_batch_size {rows}"
            hint = "Lower it, or raise max_batch_size."
            key = f"dynamic_batching.preferred_batch_size[{i}]"
            yield text.fault(key, found, "1 up to max_batch_size", hint)


def _priorities(text: ConfigText) -> Iterator[Finding]:
    batching = text.config.dynamic_batching
    levels, default = batching.priority_levels, batching.default_priority_level
    if levels > MAX_LEVELS:
        hint = "Use fewer levels: each has a queue of its own."
        key = "dynamic_batching.priority_levels"
        yield text.fault(key, f"{levels} priority levels", f"at most {MAX_LEVELS}", hint)
    if levels and not 1 <= default <= levels:
        key = "dynamic_batching.default_priority_level"
        found = f"the default level {default} of {levels}" if default else "no default_priority_level"
        hint = "Add or correct default_priority_level; level 1 goes first."
        yield text.fault(key, found, f"a level from 1 to {levels}", hint)
    for block in text.blocks("ModelDynamicBatching.priority_queue_policy"):
        level = text.entries[f"{block}.key"].value if f"{block}.key" in text.entries else None
        if levels and isinstance(level, int) and not 1 <= level <= levels:
            hint = "Correct the key, or raise priority_levels."
            yield text.fault(f"{block}.key", f"the level {level}", f"a level from 1 to {levels}", hint)
    if not levels:
        for name in ("default_priority_level", "priority_queue_policy"):
            if f"dynamic_batching.{name}" in text.entries:
                hint = "Add priority_levels, or remove it."
                found = f"{name} has no effect without priority_levels"
                yield text.notice(f"dynamic_batching.{name}", found, hint=hint)


def _groups(text: ConfigText, gpus: int) -> Iterator[Finding]:
    for i, group in enumerate(text.config.instance_group):
        key = f"instance_group[{i}]"
        if group.count < 0:
            yield text.notice(f"{key}.count", f"the count {group.count} holds as if there were none")
        if group.count > MOST_INSTANCES:
            hint = "Write the number of executions that this machine can run at once."
            expected = f"a count from 1 to {MOST_INSTANCES}"
            yield text.fault(f"{key}.count", f"the count {group.count}", expected, hint)
        if group.kind == KIND_MODEL and text.config.backend != "vllm":
            yield text.notice(
                f"{key}.kind", "KIND_MODEL is not supported in this version: placed as KIND_CPU"
            )
        if group.kind in (KIND_CPU, KIND_MODEL) and group.gpus:
            hint = "Remove gpus, or write kind: KIND_GPU." if gpus else "Remove gpus: this machine has none."
            found = "GPUs for instances that run on the CPU"
            yield text.fault(f"{key}.gpus", found, "no gpus", hint, Change())
        elif group.kind == KIND_GPU and not gpus:
            found, expected = "KIND_GPU on a machine without GPUs", "KIND_CPU or KIND_AUTO"
            hint = "Write kind: KIND_CPU, or serve it where GPUs are."
            yield text.fault(f"{key}.kind", found, expected, hint, Change(value="KIND_CPU"))
        else:
            yield from _devices(text, key, group.gpus, gpus)


def _devices(text: ConfigText, key: str, wanted: Sequence[int], gpus: int) -> Iterator[Finding]:
    for j, device in enumerate(wanted):
        if not 0 <= device < gpus:
            expected = f"one of 0 to {gpus - 1}" if gpus else "no gpus: this machine has none"
            yield text.fault(
                f"{key}.gpus[{j}]", f"the GPU {device}", expected, "Correct or remove the number."
            )


def _runtime(text: ConfigText) -> Iterator[Finding]:
    """A backend's own library is what runs in the original anyway; another one would be another program."""
    runtime = text.config.runtime
    if runtime and not _LIBRARY.fullmatch(runtime):
        hint = "Remove it: engines bring their own runtime. An nn.Module in Python is served by the backend python."
        expected = "a backend's library, libtriton_NAME.so"
        yield text.fault("runtime", f"the runtime {runtime}", expected, hint, Change())


def _cache(text: ConfigText) -> Iterator[Finding]:
    """Refuse a cache for a model that answers several times, or by what came before."""
    config = text.config
    if not config.response_cache.enable:
        return
    for has, what in (
        (config.model_transaction_policy.decoupled, "'decoupled' transaction policy"),
        (config.HasField("sequence_batching"), "sequence batching scheduler"),
    ):
        if has:
            found = f"Response Cache does not currently support model {config.name} with {what}"
            hint = "Please disable the response cache."
            yield text.fault(
                "response_cache.enable", found.replace("  ", " "), "false", hint, Change(value="false")
            )


def _parameters(text: ConfigText) -> Iterator[Finding]:
    if "graph_level" in text.config.parameters and text.config.optimization.HasField("graph"):
        found = "the level of the graph and a parameter graph_level; the former holds"
        yield text.notice("optimization.graph.level", found, hint="Remove one of the two.")


def check_warmups(text: ConfigText) -> Iterator[Finding]:
    """Do the warm-up runs fit the inputs? Looks at names and shapes only where inputs are known."""
    for block in text.blocks("ModelWarmup.inputs"):
        yield from _warmup_input(text, block)
    for i, warmup in enumerate(text.config.model_warmup):
        for tensor in text.config.input:
            if tensor.name not in warmup.inputs and not tensor.optional:
                found = f"no data for the input {tensor.name}"
                hint = f'Add inputs {{ key: "{tensor.name}" value: {{ ... }} }}.'
                key = f'model_warmup[{i}].inputs["{tensor.name}"]'
                yield text.fault(key, found, "data for every input", hint)


def _warmup_input(text: ConfigText, block: str) -> Iterator[Finding]:
    entry = text.entries.get(f"{block}.key")
    name = str(entry.value) if entry else ""
    warmup = text.config.model_warmup[int(block.partition("[")[2].partition("]")[0])]
    data, rows = warmup.inputs[name], warmup.batch_size
    types = list(ENUMS["DataType"])
    if min(data.dims, default=1) < 1:
        yield text.fault(
            f"{block}.value.dims", f"the dims {list(data.dims)}", "sizes of 1 or more", "Name a size."
        )
        return
    tensors = [tensor for tensor in text.config.input if tensor.name == name]
    if not tensors:
        if name and len(text.config.input):
            names = ", ".join(tensor.name for tensor in text.config.input)
            yield text.fault(f"{block}.key", f"the input {name}", f"one of {names}", "Correct the key.")
        return
    tensor = tensors[0]
    if data.data_type and tensor.data_type not in (0, data.data_type):  # of 0 it is said that it lacks
        found, expected = types[data.data_type], types[tensor.data_type]
        yield text.fault(
            f"{block}.value.data_type",
            found,
            f"{expected}, as the input has",
            f"Write {expected}.",
            Change(value=expected),
        )
    most = text.config.max_batch_size
    has_rows = bool(most and rows) or rows > 1  # without batches batch_size is 1, and no dimension
    shape = [*([rows] if has_rows else []), *data.dims]
    wanted = [*([-1] if most else []), *tensor.dims]
    if data.dims and not fits(shape, wanted):
        found = f"the shape {shape} (batch_size {rows}, then dims)"
        yield text.fault(
            f"{block}.value.dims", found, f"{wanted}, -1 being any size", "Correct dims or batch_size."
        )
    elif most and shape and shape[0] > most:
        found = f"{shape[0]} rows"
        yield text.fault(f"{block}.value.dims", found, f"at most {most}", "Lower batch_size.")


def fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Is `shape` of the rank of `wanted`, and of its sizes where they are not -1?"""
    return len(shape) == len(wanted) and all(w in (-1, s) for s, w in zip(shape, wanted, strict=True))
