"""The ModelConfig message family as compact tables: names, numbers, types, oneofs, enums.

Facts of the public `inference.ModelConfig` (sheet "triton", section 3.1), in the notation of `protobuf_schema`. The
order of the lines is the order in which a configuration is printed. Must not know what the keys mean.
"""

from collections.abc import Mapping

from trivium.codecs.protobuf_schema import Field, Fields, messages_in

ENUMS: Mapping[str, Mapping[str, int]] = {
    name: {value: number for number, value in enumerate(values.split())}
    for name, values in {
        "DataType": "TYPE_INVALID TYPE_BOOL TYPE_UINT8 TYPE_UINT16 TYPE_UINT32 TYPE_UINT64 TYPE_INT8 "
        "TYPE_INT16 TYPE_INT32 TYPE_INT64 TYPE_FP16 TYPE_FP32 TYPE_FP64 TYPE_STRING TYPE_BF16",
        "ModelInput.Format": "FORMAT_NONE FORMAT_NHWC FORMAT_NCHW",
        "ModelInstanceGroup.Kind": "KIND_AUTO KIND_GPU KIND_CPU KIND_MODEL",
        "ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind": "KIND_NVDLA",
        "ModelOptimizationPolicy.ModelPriority": "PRIORITY_DEFAULT PRIORITY_MAX PRIORITY_MIN",
        "ModelQueuePolicy.TimeoutAction": "REJECT DELAY",
        "ModelSequenceBatching.Control.Kind": "CONTROL_SEQUENCE_START CONTROL_SEQUENCE_READY "
        "CONTROL_SEQUENCE_END CONTROL_SEQUENCE_CORRID",
        "BatchInput.Kind": "BATCH_ELEMENT_COUNT BATCH_ACCUMULATED_ELEMENT_COUNT "
        "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO BATCH_MAX_ELEMENT_COUNT_AS_SHAPE BATCH_ITEM_SHAPE "
        "BATCH_ITEM_SHAPE_FLATTEN",
        "BatchOutput.Kind": "BATCH_SCATTER_WITH_INPUT_SHAPE",
    }.items()
}

_TABLES = {
    "ModelConfig": """
        1 string name
        2 string platform
        17 string backend
        25 string runtime
        3 ModelVersionPolicy version_policy
        4 int32 max_batch_size
        5 repeated ModelInput input
        6 repeated ModelOutput output
        20 repeated BatchInput batch_input
        21 repeated BatchOutput batch_output
        12 ModelOptimizationPolicy optimization
        11 oneof=scheduling_choice ModelDynamicBatching dynamic_batching
        13 oneof=scheduling_choice ModelSequenceBatching sequence_batching
        15 oneof=scheduling_choice ModelEnsembling ensemble_scheduling
        7 repeated ModelInstanceGroup instance_group
        8 string default_model_filename
        9 map<string,string> cc_model_filenames
        10 map<string,string> metric_tags
        14 map<string,ModelParameter> parameters
        16 repeated ModelWarmup model_warmup
        18 ModelOperations model_operations
        19 ModelTransactionPolicy model_transaction_policy
        23 ModelRepositoryAgents model_repository_agents
        24 ModelResponseCache response_cache
        26 ModelMetrics model_metrics""",
    "ModelVersionPolicy": """
        1 oneof=policy_choice ModelVersionPolicy.Latest latest
        2 oneof=policy_choice ModelVersionPolicy.All all
        3 oneof=policy_choice ModelVersionPolicy.Specific specific""",
    "ModelVersionPolicy.Latest": "1 uint32 num_versions",
    "ModelVersionPolicy.All": "",
    "ModelVersionPolicy.Specific": "1 repeated int64 versions",
    "ModelTensorReshape": "1 repeated int64 shape",
    "ModelInput": """
        1 string name
        2 DataType data_type
        3 ModelInput.Format format
        4 repeated int64 dims
        5 ModelTensorReshape reshape
        6 bool is_shape_tensor
        7 bool allow_ragged_batch
        8 bool optional
        9 bool is_non_linear_format_io""",
    "ModelOutput": """
        1 string name
        2 DataType data_type
        3 repeated int64 dims
        5 ModelTensorReshape reshape
        4 string label_filename
        6 bool is_shape_tensor
        7 bool is_non_linear_format_io""",
    "BatchInput": """
        1 BatchInput.Kind kind
        2 repeated string target_name
        3 DataType data_type
        4 repeated string source_input""",
    "BatchOutput": """
        1 repeated string target_name
        2 BatchOutput.Kind kind
        3 repeated string source_input""",
    "ModelOptimizationPolicy": """
        1 ModelOptimizationPolicy.Graph graph
        2 ModelOptimizationPolicy.ModelPriority priority
        3 ModelOptimizationPolicy.Cuda cuda
        4 ModelOptimizationPolicy.ExecutionAccelerators execution_accelerators
        5 ModelOptimizationPolicy.PinnedMemoryBuffer input_pinned_memory
        6 ModelOptimizationPolicy.PinnedMemoryBuffer output_pinned_memory
        7 uint32 gather_kernel_buffer_threshold
        8 bool eager_batching""",
    "ModelOptimizationPolicy.Graph": "1 int32 level",
    "ModelOptimizationPolicy.PinnedMemoryBuffer": "1 bool enable",
    "ModelOptimizationPolicy.Cuda": """
        1 bool graphs
        2 bool busy_wait_events
        3 repeated ModelOptimizationPolicy.Cuda.GraphSpec graph_spec
        4 bool output_copy_stream""",
    "ModelOptimizationPolicy.Cuda.GraphSpec": """
        1 int32 batch_size
        2 map<string,ModelOptimizationPolicy.Cuda.GraphSpec.Shape> input
        3 ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound graph_lower_bound""",
    "ModelOptimizationPolicy.Cuda.GraphSpec.Shape": "1 repeated int64 dim",
    "ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound": """
        1 int32 batch_size
        2 map<string,ModelOptimizationPolicy.Cuda.GraphSpec.Shape> input""",
    "ModelOptimizationPolicy.ExecutionAccelerators": """
        1 repeated ModelOptimizationPolicy.ExecutionAccelerators.Accelerator gpu_execution_accelerator
        2 repeated ModelOptimizationPolicy.ExecutionAccelerators.Accelerator cpu_execution_accelerator""",
    "ModelOptimizationPolicy.ExecutionAccelerators.Accelerator": """
        1 string name
        2 map<string,string> parameters""",
    "ModelQueuePolicy": """
        1 ModelQueuePolicy.TimeoutAction timeout_action
        2 uint64 default_timeout_microseconds
        3 bool allow_timeout_override
        4 uint32 max_queue_size""",
    "ModelDynamicBatching": """
        1 repeated int32 preferred_batch_size
        2 uint64 max_queue_delay_microseconds
        3 bool preserve_ordering
        4 uint64 priority_levels
        5 uint64 default_priority_level
        6 ModelQueuePolicy default_queue_policy
        7 map<uint64,ModelQueuePolicy> priority_queue_policy""",
    "ModelSequenceBatching": """
        3 oneof=strategy_choice ModelSequenceBatching.StrategyDirect direct
        4 oneof=strategy_choice ModelSequenceBatching.StrategyOldest oldest
        1 uint64 max_sequence_idle_microseconds
        2 repeated ModelSequenceBatching.ControlInput control_input
        5 repeated ModelSequenceBatching.State state
        6 bool iterative_sequence""",
    "ModelSequenceBatching.StrategyDirect": """
        1 uint64 max_queue_delay_microseconds
        2 float minimum_slot_utilization""",
    "ModelSequenceBatching.StrategyOldest": """
        1 int32 max_candidate_sequences
        2 repeated int32 preferred_batch_size
        3 uint64 max_queue_delay_microseconds
        4 bool preserve_ordering""",
    "ModelSequenceBatching.ControlInput": """
        1 string name
        2 repeated ModelSequenceBatching.Control control""",
    "ModelSequenceBatching.Control": """
        1 ModelSequenceBatching.Control.Kind kind
        2 repeated int32 int32_false_true
        3 repeated float fp32_false_true
        5 repeated bool bool_false_true
        4 DataType data_type""",
    "ModelSequenceBatching.State": """
        1 string input_name
        2 string output_name
        3 DataType data_type
        4 repeated int64 dims
        5 repeated ModelSequenceBatching.InitialState initial_state
        6 bool use_same_buffer_for_input_output
        7 bool use_growable_memory""",
    "ModelSequenceBatching.InitialState": """
        1 DataType data_type
        2 repeated int64 dims
        3 oneof=state_data bool zero_data
        4 oneof=state_data string data_file
        5 string name""",
    "ModelEnsembling": """
        1 repeated ModelEnsembling.Step step
        2 uint32 max_inflight_requests""",
    "ModelEnsembling.Step": """
        1 string model_name
        2 int64 model_version
        3 map<string,string> input_map
        4 map<string,string> output_map
        5 string model_namespace""",
    "ModelRateLimiter": """
        1 repeated ModelRateLimiter.Resource resources
        2 uint32 priority""",
    "ModelRateLimiter.Resource": """
        1 string name
        2 bool global
        3 uint32 count""",
    "ModelInstanceGroup": """
        1 string name
        4 ModelInstanceGroup.Kind kind
        2 int32 count
        6 ModelRateLimiter rate_limiter
        3 repeated int32 gpus
        8 repeated ModelInstanceGroup.SecondaryDevice secondary_devices
        5 repeated string profile
        7 bool passive
        9 string host_policy""",
    "ModelInstanceGroup.SecondaryDevice": """
        1 ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind kind
        2 int64 device_id""",
    "ModelParameter": "1 string string_value",
    "ModelWarmup": """
        1 string name
        2 uint32 batch_size
        3 map<string,ModelWarmup.Input> inputs
        4 uint32 count""",
    "ModelWarmup.Input": """
        1 DataType data_type
        2 repeated int64 dims
        3 oneof=input_data_type bool zero_data
        4 oneof=input_data_type bool random_data
        5 oneof=input_data_type string input_data_file""",
    "ModelOperations": "1 repeated string op_library_filename",
    "ModelTransactionPolicy": "1 bool decoupled",
    "ModelRepositoryAgents": "1 repeated ModelRepositoryAgents.Agent agents",
    "ModelRepositoryAgents.Agent": """
        1 string name
        2 map<string,string> parameters""",
    "ModelResponseCache": "1 bool enable",
    "ModelMetrics": "1 repeated ModelMetrics.MetricControl metric_control",
    "ModelMetrics.MetricControl": """
        1 ModelMetrics.MetricControl.MetricIdentifier metric_identifier
        2 oneof=metric_options ModelMetrics.MetricControl.HistogramOptions histogram_options""",
    "ModelMetrics.MetricControl.MetricIdentifier": "1 string family",
    "ModelMetrics.MetricControl.HistogramOptions": "1 repeated double buckets",
}


MESSAGES: Mapping[str, Fields] = messages_in(_TABLES)


def is_enum(field: Field) -> bool:
    """Is its value one of the words of `ENUMS`?"""
    return field.type in ENUMS and not field.map_key


def is_block(field: Field) -> bool:
    """Is it written in braces: a message, or an entry of a map?"""
    return bool(field.map_key) or field.type in MESSAGES


def fields_of(message: str, field: Field) -> tuple[str, Fields]:
    """The type and fields of the block that `field` of `message` opens; a map's entry has key and value."""
    if not field.map_key:
        return field.type, MESSAGES[field.type]
    entry = {"key": Field("key", 1, field.map_key), "value": Field("value", 2, field.type)}
    return f"{message}.{field.name}", entry
