"""The messages of `inference.GRPCInferenceService` and of the health protocol as compact tables.

Facts of the public protocol (sheet "triton", section 5.2), in the notation of `schema`. Knows nothing of
protobuf's library.
"""

from collections.abc import Mapping

from trivium.codecs.protobuf_schema import Fields, messages_in

_SERVICE = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "1 bool live",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "1 bool ready",
    "ModelReadyRequest": """
        1 string name
        2 string version""",
    "ModelReadyResponse": "1 bool ready",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": """
        1 string name
        2 string version
        3 repeated string extensions""",
    "ModelMetadataRequest": """
        1 string name
        2 string version""",
    "ModelMetadataResponse": """
        1 string name
        2 repeated string versions
        3 string platform
        4 repeated ModelMetadataResponse.TensorMetadata inputs
        5 repeated ModelMetadataResponse.TensorMetadata outputs""",
    "ModelMetadataResponse.TensorMetadata": """
        1 string name
        2 string datatype
        3 repeated int64 shape""",
    "InferParameter": """
        1 oneof=parameter_choice bool bool_param
        2 oneof=parameter_choice int64 int64_param
        3 oneof=parameter_choice string string_param
        4 oneof=parameter_choice double double_param
        5 oneof=parameter_choice uint64 uint64_param""",
    "InferTensorContents": """
        1 repeated bool bool_contents
        2 repeated int32 int_contents
        3 repeated int64 int64_contents
        4 repeated uint32 uint_contents
        5 repeated uint64 uint64_contents
        6 repeated float fp32_contents
        7 repeated double fp64_contents
        8 repeated bytes bytes_contents""",
    "ModelInferRequest": """
        1 string model_name
        2 string model_version
        3 string id
        4 map<string,InferParameter> parameters
        5 repeated ModelInferRequest.InferInputTensor inputs
        6 repeated ModelInferRequest.InferRequestedOutputTensor outputs
        7 repeated bytes raw_input_contents""",
    "ModelInferRequest.InferInputTensor": """
        1 string name
        2 string datatype
        3 repeated int64 shape
        4 map<string,InferParameter> parameters
        5 InferTensorContents contents""",
    "ModelInferRequest.InferRequestedOutputTensor": """
        1 string name
        2 map<string,InferParameter> parameters""",
    "ModelInferResponse": """
        1 string model_name
        2 string model_version
        3 string id
        4 map<string,InferParameter> parameters
        5 repeated ModelInferResponse.InferOutputTensor outputs
        6 repeated bytes raw_output_contents""",
    "ModelInferResponse.InferOutputTensor": """
        1 string name
        2 string datatype
        3 repeated int64 shape
        4 map<string,InferParameter> parameters
        5 InferTensorContents contents""",
    "ModelStreamInferResponse": """
        1 string error_message
        2 ModelInferResponse infer_response""",
    "ModelConfigRequest": """
        1 string name
        2 string version""",
    "ModelConfigResponse": "1 ModelConfig config",
    "ModelStatisticsRequest": """
        1 string name
        2 string version""",
    "StatisticDuration": """
        1 uint64 count
        2 uint64 ns""",
    "InferStatistics": """
        1 StatisticDuration success
        2 StatisticDuration fail
        3 StatisticDuration queue
        4 StatisticDuration compute_input
        5 StatisticDuration compute_infer
        6 StatisticDuration compute_output
        7 StatisticDuration cache_hit
        8 StatisticDuration cache_miss""",
    "InferResponseStatistics": """
        1 StatisticDuration compute_infer
        2 StatisticDuration compute_output
        3 StatisticDuration success
        4 StatisticDuration fail
        5 StatisticDuration empty_response
        6 StatisticDuration cancel""",
    "InferBatchStatistics": """
        1 uint64 batch_size
        2 StatisticDuration compute_input
        3 StatisticDuration compute_infer
        4 StatisticDuration compute_output""",
    "MemoryUsage": """
        1 string type
        2 int64 id
        3 uint64 byte_size""",
    "ModelStatistics": """
        1 string name
        2 string version
        3 uint64 last_inference
        4 uint64 inference_count
        5 uint64 execution_count
        6 InferStatistics inference_stats
        7 repeated InferBatchStatistics batch_stats
        8 repeated MemoryUsage memory_usage
        9 map<string,InferResponseStatistics> response_stats""",
    "ModelStatisticsResponse": "1 repeated ModelStatistics model_stats",
    "ModelRepositoryParameter": """
        1 oneof=parameter_choice bool bool_param
        2 oneof=parameter_choice int64 int64_param
        3 oneof=parameter_choice string string_param
        4 oneof=parameter_choice bytes bytes_param""",
    "RepositoryIndexRequest": """
        1 string repository_name
        2 bool ready""",
    "RepositoryIndexResponse": "1 repeated RepositoryIndexResponse.ModelIndex models",
    "RepositoryIndexResponse.ModelIndex": """
        1 string name
        2 string version
        3 string state
        4 string reason""",
    "RepositoryModelLoadRequest": """
        1 string repository_name
        2 string model_name
        3 map<string,ModelRepositoryParameter> parameters""",
    "RepositoryModelLoadResponse": "",
    "RepositoryModelUnloadRequest": """
        1 string repository_name
        2 string model_name
        3 map<string,ModelRepositoryParameter> parameters""",
    "RepositoryModelUnloadResponse": "",
    "SystemSharedMemoryStatusRequest": "1 string name",
    "SystemSharedMemoryStatusResponse": "1 map<string,SystemSharedMemoryStatusResponse.RegionStatus> regions",
    "SystemSharedMemoryStatusResponse.RegionStatus": """
        1 string name
        2 string key
        3 uint64 offset
        4 uint64 byte_size""",
    "SystemSharedMemoryRegisterRequest": """
        1 string name
        2 string key
        3 uint64 offset
        4 uint64 byte_size""",
    "SystemSharedMemoryRegisterResponse": "",
    "SystemSharedMemoryUnregisterRequest": "1 string name",
    "SystemSharedMemoryUnregisterResponse": "",
    "CudaSharedMemoryStatusRequest": "1 string name",
    "CudaSharedMemoryStatusResponse": "1 map<string,CudaSharedMemoryStatusResponse.RegionStatus> regions",
    "CudaSharedMemoryStatusResponse.RegionStatus": """
        1 string name
        2 uint64 device_id
        3 uint64 byte_size""",
    "CudaSharedMemoryRegisterRequest": """
        1 string name
        2 bytes raw_handle
        3 int64 device_id
        4 uint64 byte_size""",
    "CudaSharedMemoryRegisterResponse": "",
    "CudaSharedMemoryUnregisterRequest": "1 string name",
    "CudaSharedMemoryUnregisterResponse": "",
    "TraceSettingRequest": """
        1 map<string,TraceSettingRequest.SettingValue> settings
        2 string model_name""",
    "TraceSettingRequest.SettingValue": "1 repeated string value",
    "TraceSettingResponse": "1 map<string,TraceSettingResponse.SettingValue> settings",
    "TraceSettingResponse.SettingValue": "1 repeated string value",
    "LogSettingsRequest": "1 map<string,LogSettingsRequest.SettingValue> settings",
    "LogSettingsRequest.SettingValue": """
        1 oneof=parameter_choice bool bool_param
        2 oneof=parameter_choice uint32 uint32_param
        3 oneof=parameter_choice string string_param""",
    "LogSettingsResponse": "1 map<string,LogSettingsResponse.SettingValue> settings",
    "LogSettingsResponse.SettingValue": """
        1 oneof=parameter_choice bool bool_param
        2 oneof=parameter_choice uint32 uint32_param
        3 oneof=parameter_choice string string_param""",
}

_HEALTH = {
    "HealthCheckRequest": "1 string service",
    "HealthCheckResponse": "1 HealthCheckResponse.ServingStatus status",
}

SERVICE: Mapping[str, Fields] = messages_in(_SERVICE)
HEALTH: Mapping[str, Fields] = messages_in(_HEALTH)
HEALTH_ENUMS: Mapping[str, Mapping[str, int]] = {
    "HealthCheckResponse.ServingStatus": {"UNKNOWN": 0, "SERVING": 1, "NOT_SERVING": 2, "SERVICE_UNKNOWN": 3}
}

RPC_NAMES = tuple(
    name.removesuffix("Request")
    for name in _SERVICE
    if name.endswith("Request") and f"{name.removesuffix('Request')}Response" in _SERVICE
)
"""RPCs of one request and one response, which have their names."""
