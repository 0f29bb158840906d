"""A completed configuration -> ModelSpec, field by field, each with where its value was found.

Foreign words and units end here: microseconds become seconds, 0 for "none" becomes None. Must not judge.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from trivium.servers.triton.repository import sequences
from trivium.servers.triton.repository.limits import RUN_TIMEOUT
from trivium.servers.triton.words.checks import KIND_GPU
from trivium.servers.triton.words.config_text import ConfigText
from trivium.servers.triton.words.datatypes import datatype_of
from trivium.types.batch_shapes import BatchInput, BatchOutput, BatchShapes, ShapeFact
from trivium.types.datatype import DataType
from trivium.types.resources import ResourceNeed, ResourceRequest
from trivium.types.schedules import Graph, Sequence, Step
from trivium.types.spec import (
    Batching,
    Device,
    Dynamic,
    InstanceGroup,
    Isolation,
    OnExpiry,
    Origin,
    QueuePolicy,
    TensorSpec,
)
from trivium.types.warmups import SyntheticFill, Warmup
from trivium.types.warmups import WarmupInput as OurWarmupInput
from trivium.wires.v2.model_config import (
    EnsembleStep,
    ModelInstanceGroup,
    ModelQueuePolicy,
    ModelRateLimiter,
    ModelWarmup,
    WarmupInputMessage,
)
from trivium.wires.v2.tensor_messages import ModelTensor

_DEFAULT = "default"


def tensors(blocks: Iterator[ModelTensor], leaves_open: bool = False) -> tuple[TensorSpec, ...]:
    """Inputs or outputs, without labels; those without a type are open, or left out where the model's own completion
    has yet to tell it.
    """
    return tuple(
        TensorSpec(
            name=block.name,
            datatype=datatype_of(block.data_type) if block.data_type else DataType.FP32,
            dims=tuple(block.dims),
            optional=getattr(block, "optional", False),
            inner=tuple(block.reshape.shape) if block.HasField("reshape") else None,
            ragged=getattr(block, "allow_ragged_batch", False),
            open=not block.data_type,
        )
        for block in blocks
        if block.data_type or leaves_open
    )


def batch_shapes(text: ConfigText) -> BatchShapes:
    """Inputs and outputs that go by how requests lie in a batch."""
    kinds = list(ShapeFact)
    return BatchShapes(
        tuple(
            BatchInput(
                tuple(block.target_name),
                kinds[block.kind],
                datatype_of(block.data_type),
                block.source_input[0],
            )
            for block in text.config.batch_input
        ),
        tuple(
            BatchOutput(tuple(block.target_name), block.source_input[0]) for block in text.config.batch_output
        ),
    )


def batching(text: ConfigText) -> Batching:
    """max_batch_size 0: no batch dimension, nothing is ever merged."""
    config = text.config
    if config.max_batch_size == 0:
        return Batching()
    merges = config.HasField("dynamic_batching") or config.HasField("sequence_batching")
    return Batching(True, config.max_batch_size, merges)


def scheduling(text: ConfigText, folder: Path) -> Dynamic | Sequence | Graph:
    """Return the one scheduler that a configuration may name; without one the dynamic one's defaults. `folder` is the
    model's.
    """
    if text.config.HasField("ensemble_scheduling"):
        steps = tuple(map(_step, text.config.ensemble_scheduling.step))
        most = text.config.ensemble_scheduling.max_inflight_requests
        return Graph(steps, most, step_calls=most) if most else Graph(steps)
    if text.config.HasField("sequence_batching"):
        return sequences.sequence(text.config, folder)
    return _dynamic(text)


def _step(step: EnsembleStep) -> Step:
    """-1 is the latest version; what is not said is version 0, as in the original."""
    version = "" if step.model_version == -1 else str(step.model_version)
    return Step(step.model_name, version, dict(step.input_map), dict(step.output_map))


def _dynamic(text: ConfigText) -> Dynamic:
    """Return the dynamic scheduler; without priority_levels there is one level, whatever else is said about levels."""
    block = text.config.dynamic_batching
    levels = block.priority_levels
    return Dynamic(
        max_delay=block.max_queue_delay_microseconds / 1e6,
        preferred_rows=tuple(block.preferred_batch_size),
        levels=levels or 1,
        default_level=block.default_priority_level if levels else 1,
        default_policy=_queue_policy(block.default_queue_policy),
        level_policies={
            level: _queue_policy(policy) for level, policy in block.priority_queue_policy.items() if levels
        },
    )


def _queue_policy(policy: ModelQueuePolicy) -> QueuePolicy:
    return QueuePolicy(
        on_expiry=OnExpiry.DEMOTE if policy.timeout_action else OnExpiry.REJECT,
        timeout=policy.default_timeout_microseconds / 1e6 or None,
        may_shorten=policy.allow_timeout_override,
        max_items=policy.max_queue_size or None,
    )


def groups(text: ConfigText) -> tuple[InstanceGroup, ...]:
    """`count` is per GPU. An ensemble has one, of no weight: what it does is done by its members."""
    if text.config.HasField("ensemble_scheduling"):
        return (InstanceGroup(text.config.name, isolation=Isolation.INLINE),)
    return tuple(_group(group) for group in text.config.instance_group)


def _group(group: ModelInstanceGroup) -> InstanceGroup:
    is_gpu = group.kind == KIND_GPU
    instances = group.count * (len(group.gpus) if is_gpu else 1)
    return InstanceGroup(
        name=group.name,
        minimum=instances,
        maximum=instances,
        device=Device.GPU if is_gpu else Device.CPU,
        device_ids=tuple(group.gpus),
        claim=_claim(group.rate_limiter),
    )


def _claim(block: ModelRateLimiter) -> ResourceRequest:
    """A priority of 0 is the highest there is, as 1 is."""
    needs = tuple(ResourceNeed(each.name, each.count, getattr(each, "global")) for each in block.resources)
    return ResourceRequest(needs, block.priority or 1)


def parameters(text: ConfigText) -> Mapping[str, str]:
    """The free map; the level of the graph and the accelerators under names of their own."""
    config = text.config
    passed = {name: config.parameters[name].string_value for name in config.parameters if name != RUN_TIMEOUT}
    if config.optimization.HasField("graph"):
        passed["graph_level"] = str(config.optimization.graph.level)
    accelerators = config.optimization.execution_accelerators
    asked = [
        {"device": device, "name": one.name, "parameters": dict(one.parameters)}
        for device, blocks in (
            ("gpu", accelerators.gpu_execution_accelerator),
            ("cpu", accelerators.cpu_execution_accelerator),
        )
        for one in blocks
    ]
    if asked:
        passed["accelerators"] = json.dumps(asked)
    return passed


def warmups(text: ConfigText, folder: Path) -> tuple[Warmup, ...]:
    """Data files lie in the folder `warmup`."""
    batches, data = text.config.max_batch_size > 0, folder / "warmup"
    return tuple(_warmup(warmup, data, batches) for warmup in text.config.model_warmup)


def _warmup(warmup: ModelWarmup, data: Path, batches: bool) -> Warmup:
    inputs = tuple(_warmup_input(name, warmup.inputs[name], data) for name in sorted(warmup.inputs))
    rows = warmup.batch_size if batches else 0  # without batches it is 1, and no dimension
    return Warmup(warmup.name, rows, warmup.count or 1, inputs)


def _warmup_input(name: str, block: WarmupInputMessage, data: Path) -> OurWarmupInput:
    fill = {"random_data": SyntheticFill.RANDOM, "input_data_file": SyntheticFill.FILE}.get(
        block.WhichOneof("input_data_type") or "", SyntheticFill.ZERO
    )
    path = data / block.input_data_file if fill is SyntheticFill.FILE else None
    return OurWarmupInput(name, datatype_of(block.data_type), tuple(block.dims), fill, path)


def origins(text: ConfigText, rules: Mapping[str, str]) -> dict[str, Origin]:
    """Every field of the spec -> the key and line that gave it, or the rule that did."""
    return {field: _origin(text, rules, key) for field, key in _fields(text)}


def _origin(text: ConfigText, rules: Mapping[str, str], key: str) -> Origin:
    if key in rules:
        return Origin(rules[key], "")
    if key in text.entries:
        return Origin(text.file, key, text.entries[key].line)
    return Origin(_DEFAULT, key)


def _fields(text: ConfigText) -> Iterator[tuple[str, str]]:
    config = text.config
    choice = config.WhichOneof("scheduling_choice")
    plain = choice in (None, "dynamic_batching")
    yield from (
        (ours, key) for ours, key in _PLAIN.items() if plain or not key.startswith("dynamic_batching.")
    )
    if choice == "ensemble_scheduling":
        yield from (("scheduling", choice), ("groups", choice), ("scheduling.steps", f"{choice}.step"))
        parts = {"model": "model_name", "inputs": "input_map", "outputs": "output_map"}
        for i in range(len(config.ensemble_scheduling.step)):
            yield from (
                (f"scheduling.steps[{i}].{ours}", f"{choice}.step[{i}].{key}") for ours, key in parts.items()
            )
    elif choice == "sequence_batching":
        yield from sequences.fields(config)
    yield from (("inputs", "input"), ("outputs", "output"))
    for section, blocks in (("input", config.input), ("output", config.output)):
        parts = {"name": "name", "datatype": "data_type", "dims": "dims"}
        parts |= (
            {"optional": "optional", "ragged": "allow_ragged_batch"}
            if section == "input"
            else {"labels": "label_filename"}
        )
        for i, tensor in enumerate(blocks):
            yield from ((f"{section}s[{i}].{ours}", f"{section}[{i}].{key}") for ours, key in parts.items())
            if tensor.HasField("reshape"):
                yield f"{section}s[{i}].inner", f"{section}[{i}].reshape.shape"
    parts = {"name": "name", "minimum": "count", "maximum": "count", "device": "kind", "device_ids": "gpus"}
    parts |= {"claim": "rate_limiter"}
    for i in range(len(config.instance_group)):
        yield from ((f"groups[{i}].{ours}", f"instance_group[{i}].{key}") for ours, key in parts.items())
    for i in range(len(config.model_warmup)):
        yield f"warmups[{i}]", f"model_warmup[{i}]"
    yield from (("metrics.labels", "metric_tags"), ("metrics.first_part_bounds", "model_metrics"))
    for block in text.blocks("ModelConfig.parameters"):
        yield f"parameters[{text.entries[f'{block}.key'].value}]", block
    if config.optimization.HasField("graph"):
        yield "parameters[graph_level]", "optimization.graph.level"
    if config.optimization.HasField("execution_accelerators"):
        yield "parameters[accelerators]", "optimization.execution_accelerators"


_PLAIN = {
    "name": "name",
    "version": "version",
    "root": "root",
    "engine": "backend",
    "entry": "default_model_filename",
    "batching.batch_axis": "max_batch_size",
    "batching.max_rows": "max_batch_size",
    "batching.merge": "dynamic_batching",
    "batching.join": "max_batch_size",
    "scheduling.max_delay": "dynamic_batching.max_queue_delay_microseconds",
    "scheduling.preferred_rows": "dynamic_batching.preferred_batch_size",
    "scheduling.levels": "dynamic_batching.priority_levels",
    "scheduling.default_level": "dynamic_batching.default_priority_level",
    "scheduling.default_policy": "dynamic_batching.default_queue_policy",
    "scheduling.level_policies": "dynamic_batching.priority_queue_policy",
    "version_policy": "version_policy",
    "streams": "model_transaction_policy.decoupled",
    "in_order": "dynamic_batching.preserve_ordering",
    "caches": "response_cache.enable",
    "batch_shapes": "batch_input",
}
