"""Keys of config.pbtxt: each is used, passed on, reported (no effect on results) or refused (wrong results).

One row per field of each message; below a reported or refused block nothing needs a row. The texts say what
happens instead. A value that changes nothing (the default, or `harmless`) is not worth a word.
"""

from collections.abc import Iterator, Mapping

from trivium.codecs.protobuf_schema import Field
from trivium.servers.triton.words.config_text import ConfigEntry, ConfigText
from trivium.settings.setting import Setting, Support
from trivium.types.findings import Finding
from trivium.wires.v2.schema import MESSAGES, is_block

_USED = """
ModelConfig: name platform backend version_policy max_batch_size input output instance_group
ModelConfig: default_model_filename dynamic_batching optimization model_warmup model_operations
ModelConfig: model_transaction_policy model_repository_agents response_cache
ModelConfig: sequence_batching ensemble_scheduling
ModelConfig: metric_tags model_metrics
ModelMetrics: metric_control
ModelMetrics.MetricControl: metric_identifier histogram_options
ModelMetrics.MetricControl.MetricIdentifier: family
ModelMetrics.MetricControl.HistogramOptions: buckets
ModelVersionPolicy: latest all specific
ModelVersionPolicy.Latest: num_versions
ModelVersionPolicy.Specific: versions
ModelInput: name data_type dims optional reshape allow_ragged_batch
ModelOutput: name data_type dims label_filename reshape
ModelTensorReshape: shape
BatchInput: kind target_name data_type source_input
BatchOutput: target_name kind source_input
ModelOptimizationPolicy: graph input_pinned_memory output_pinned_memory
ModelDynamicBatching: preferred_batch_size max_queue_delay_microseconds priority_levels
ModelDynamicBatching: default_priority_level default_queue_policy priority_queue_policy preserve_ordering
ModelQueuePolicy: timeout_action default_timeout_microseconds allow_timeout_override max_queue_size
ModelInstanceGroup: name count kind gpus rate_limiter
ModelRateLimiter: resources priority
ModelRateLimiter.Resource: name global count
ModelSequenceBatching: max_sequence_idle_microseconds control_input direct oldest
ModelSequenceBatching.StrategyDirect: max_queue_delay_microseconds minimum_slot_utilization
ModelSequenceBatching.StrategyOldest: max_candidate_sequences preferred_batch_size max_queue_delay_microseconds
ModelSequenceBatching.StrategyOldest: preserve_ordering
ModelSequenceBatching.State: input_name output_name data_type dims initial_state
ModelSequenceBatching.InitialState: data_type dims zero_data data_file name
ModelResponseCache: enable
ModelSequenceBatching.ControlInput: name control
ModelSequenceBatching.Control: kind int32_false_true fp32_false_true bool_false_true data_type
ModelEnsembling: step
ModelEnsembling.Step: model_name model_version input_map output_map
ModelWarmup: name batch_size inputs count
ModelWarmup.Input: data_type dims zero_data random_data input_data_file
"""

_USED_BY_SOME: Mapping[str, str] = {
    "ModelSequenceBatching.state": "by the backends python and onnxruntime; refused for others",
    "ModelSequenceBatching.iterative_sequence": "by the Python backend; refused for others",
    "ModelConfig.runtime": "the library of a backend (libtriton_NAME.so) changes nothing; anything else is refused",
    "ModelConfig.batch_input": "by the backends onnxruntime and pytorch; reported for others",
    "ModelConfig.batch_output": "by the backends onnxruntime and pytorch; reported for others",
    "ModelTransactionPolicy.decoupled": "by the Python backend; refused for others, which answer a request once",
    "ModelEnsembling.max_inflight_requests": "so many calls of each step are in work at once, over all requests, and "
    "so many parts of a decoupled step behind it, per request; 0: no bound, and 16 parts",
}
"""Used, with a word about where: a check that knows the backend refuses it elsewhere."""

_PASSED_ON = """
ModelConfig: parameters
ModelParameter: string_value
ModelOptimizationPolicy.Graph: level
ModelOptimizationPolicy: execution_accelerators
ModelOptimizationPolicy.ExecutionAccelerators: gpu_execution_accelerator cpu_execution_accelerator
ModelOptimizationPolicy.ExecutionAccelerators.Accelerator: name parameters
"""

_REPORTED: Mapping[str, str] = {
    "ModelConfig.cc_model_filenames": "the default file is opened on every device",
    "ModelInput.format": "the layout of a picture is not checked",
    "ModelOptimizationPolicy.priority": "all models have the same priority",
    "ModelOptimizationPolicy.cuda": "the engine's own settings hold",
    "ModelOptimizationPolicy.gather_kernel_buffer_threshold": "inputs are put together on the host",
    "ModelOptimizationPolicy.eager_batching": "a batch is put together when it is cut",
    "ModelOptimizationPolicy.PinnedMemoryBuffer.enable": "the engine decides about pinned memory",
    "ModelSequenceBatching.State.use_same_buffer_for_input_output": "a state is copied once per request",
    "ModelSequenceBatching.State.use_growable_memory": "a state has the size that the model gave it",
    "ModelInstanceGroup.secondary_devices": "the engine places the model",
    "ModelInstanceGroup.profile": "the engine chooses for itself",
    "ModelInstanceGroup.passive": "the group runs like any other",
    "ModelInstanceGroup.host_policy": "the operating system places the instance's threads",
    "ModelEnsembling.Step.model_namespace": "there is one namespace for all repositories",
}

_REFUSED: Mapping[str, str] = {
    "ModelInput.is_shape_tensor": "Shapes as values exist in TensorRT only; export the model without them.",
    "ModelInput.is_non_linear_format_io": "Export the model with linear tensors.",
    "ModelOutput.is_shape_tensor": "Shapes as values exist in TensorRT only; export the model without them.",
    "ModelOutput.is_non_linear_format_io": "Export the model with linear tensors.",
    "ModelOperations.op_library_filename": "The model could not be opened: express it in standard operators.",
    "ModelRepositoryAgents.agents": "The model may need what they do: apply it to the folder beforehand.",
}


_HARMLESS: Mapping[str, tuple[object, ...]] = {"ModelOptimizationPolicy.PinnedMemoryBuffer.enable": (True,)}
"""Values that change nothing, where those are not the type's default."""


def _named(table: str) -> Iterator[str]:
    for line in table.split("\n"):
        message, _, names = line.partition(":")
        yield from (f"{message}.{name}" for name in names.split())


def _rows(fields: Mapping[str, str], support: Support) -> dict[str, Setting]:
    return {
        name: Setting(name, support=support, how=how, harmless=_HARMLESS.get(name, ()))
        for name, how in fields.items()
    }


ROWS: Mapping[str, Setting] = {
    **_rows(dict.fromkeys(_named(_USED), "") | dict(_USED_BY_SOME), Support.YES),
    **_rows(dict.fromkeys(_named(_PASSED_ON), ""), Support.PASSED_ON),
    **_rows(_REPORTED, Support.REPORTED),
    **_rows(_REFUSED, Support.REFUSED),
}
"""`Message.field` -> its row."""


def findings_by_role(text: ConfigText) -> list[Finding]:
    """A notice for each reported key of the file, an error for each refused one: the outermost of them."""
    findings: list[Finding] = []
    closed: set[str] = set()
    for key, entry in text.entries.items():
        if key.endswith("]"):
            continue
        outer, _, name = key.rpartition(".")
        message = text.entries[outer].type if outer else "ModelConfig"
        row = ROWS.get(f"{message}.{name}")
        if outer.rpartition("[")[0] in closed or outer in closed:
            closed.add(key)
        elif row is not None and row.support in (Support.REPORTED, Support.REFUSED):
            closed.add(key)
            if _matters(entry, row, MESSAGES[message][name]):
                findings.append(_finding(text, key, row))
    return findings


def _matters(entry: ConfigEntry, row: Setting, field: Field) -> bool:
    if field.is_list or is_block(field):
        return True
    return entry.value not in (None, *(row.harmless or (field.default,)))


def _finding(text: ConfigText, key: str, row: Setting) -> Finding:
    name = key.rpartition(".")[2]
    if row.support is Support.REFUSED:
        return text.fault(
            key, f"{name}, which is not supported in this version", f"a model without {name}", row.how
        )
    return text.notice(key, f"{name} is read and has no effect: {row.how}")
