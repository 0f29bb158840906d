"""The module that a Triton model imports as `pb_utils`: the whole public surface of sheet "triton", section 8.3.

Classes come from `c_python_backend_utils`; here are the functions and constants. Must not know the adapter.
"""

import struct
from typing import Any

import numpy as np
from c_python_backend_utils import (
    TRITONSERVER_MEMORY_CPU,
    TRITONSERVER_MEMORY_GPU,
    InferenceRequest,
    InferenceResponse,
    InferenceResponseSender,
    InferenceTrace,
    Logger,
    MemoryType,
    Metric,
    MetricFamily,
    MetricKind,
    PreferredMemory,
    ResponseIterator,
    Tensor,
    TritonError,
    TritonModelException,
    is_model_ready,
    load_model,
    unload_model,
)
from c_python_backend_utils.model_config import ModelConfig
from c_python_backend_utils.models import get_model_dir

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2

TRITON_STRING_TO_NUMPY: dict[str, Any] = {
    "TYPE_BOOL": bool,
    "TYPE_UINT8": np.uint8,
    "TYPE_UINT16": np.uint16,
    "TYPE_UINT32": np.uint32,
    "TYPE_UINT64": np.uint64,
    "TYPE_INT8": np.int8,
    "TYPE_INT16": np.int16,
    "TYPE_INT32": np.int32,
    "TYPE_INT64": np.int64,
    "TYPE_FP16": np.float16,
    "TYPE_FP32": np.float32,
    "TYPE_FP64": np.float64,
    "TYPE_STRING": np.object_,
}

_BY_NUMBER: dict[int, Any] = {**dict(enumerate(TRITON_STRING_TO_NUMPY.values(), start=1)), 1: np.bool_}
_LENGTH = struct.Struct("<I")

__all__ = [
    "TRITONSERVER_MEMORY_CPU",
    "TRITONSERVER_MEMORY_GPU",
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_END",
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_START",
    "TRITONSERVER_REQUEST_RELEASE_ALL",
    "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE",
    "TRITONSERVER_RESPONSE_COMPLETE_FINAL",
    "TRITON_STRING_TO_NUMPY",
    "InferenceRequest",
    "InferenceResponse",
    "InferenceResponseSender",
    "InferenceTrace",
    "Logger",
    "MemoryType",
    "Metric",
    "MetricFamily",
    "MetricKind",
    "ModelConfig",
    "PreferredMemory",
    "ResponseIterator",
    "Tensor",
    "TritonError",
    "TritonModelException",
    "deserialize_bytes_tensor",
    "get_input_config_by_name",
    "get_input_tensor_by_name",
    "get_model_dir",
    "get_output_config_by_name",
    "get_output_tensor_by_name",
    "is_model_ready",
    "load_model",
    "numpy_to_triton_type",
    "serialize_byte_tensor",
    "triton_string_to_numpy",
    "triton_to_numpy_type",
    "unload_model",
    "using_decoupled_model_transaction_policy",
]


def get_input_tensor_by_name(inference_request: InferenceRequest, name: str) -> Tensor | Any:
    """The request's input of that name, or None."""
    for tensor in inference_request.inputs():
        if tensor._name == name:
            return tensor
    return None


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> Tensor | Any:
    """The response's output of that name, or None."""
    for tensor in inference_response.output_tensors():
        if tensor._name == name:
            return tensor
    return None


def get_input_config_by_name(model_config: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The configuration of an input, or None."""
    return _config_by_name(model_config.get("input", ()), name)


def get_output_config_by_name(model_config: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The configuration of an output, or None."""
    return _config_by_name(model_config.get("output", ()), name)


def using_decoupled_model_transaction_policy(model_config: dict[str, Any]) -> bool:
    """Is the model configured to send any number of responses?"""
    return bool(model_config.get("model_transaction_policy", {}).get("decoupled", False))


def triton_string_to_numpy(triton_type_string: str) -> Any:
    """Return numpy's type for a name such as "TYPE_FP32". KeyError for one that numpy does not know."""
    return TRITON_STRING_TO_NUMPY[triton_type_string]


def triton_to_numpy_type(data_type: int) -> Any:
    """numpy's type for a datatype's number, or None."""
    return _BY_NUMBER.get(data_type)


def numpy_to_triton_type(data_type: Any) -> int | None:
    """The number of a datatype for numpy's type or dtype, or None."""
    try:
        dtype = np.dtype(data_type)
    except TypeError:
        return None
    if dtype.kind == "S":
        return 13
    return next((number for number, known in _BY_NUMBER.items() if dtype == known), None)


def serialize_byte_tensor(input_tensor: Any) -> Any:
    """The elements of an array of `bytes` or text, each behind its length in 4 bytes: `bytes`. An empty tuple for
    an empty array, None for one of numbers, as in the original.
    """
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype.kind not in "OS":
        return None
    pieces: list[bytes] = []
    for element in input_tensor.ravel().tolist():
        data = element if isinstance(element, bytes) else str(element).encode("utf-8")
        pieces += (_LENGTH.pack(len(data)), data)
    return b"".join(pieces)


def deserialize_bytes_tensor(encoded_tensor: Any) -> Any:
    """A one-dimensional array of `bytes` objects from what `serialize_byte_tensor` made. TritonModelException where
    the lengths do not fit the data.
    """
    view, at, elements = memoryview(encoded_tensor), 0, []
    while at < len(view):
        start = at + 4
        at = start + (_LENGTH.unpack_from(view, start - 4)[0] if start <= len(view) else len(view))
        if at > len(view):
            raise TritonModelException("The encoded tensor ends within an element.")
        elements.append(view[start:at].tobytes())
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array


def _config_by_name(tensors: Any, name: str) -> dict[str, Any] | None:
    return next((tensor for tensor in tensors if tensor["name"] == name), None)
