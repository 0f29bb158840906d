"""The classes behind `triton_python_backend_utils`, under the name that the original gives them."""

from c_python_backend_utils.calls import ResponseIterator
from c_python_backend_utils.errors import TritonError, TritonModelException
from c_python_backend_utils.logger import Logger
from c_python_backend_utils.memory import InferenceTrace, MemoryType, PreferredMemory
from c_python_backend_utils.metrics import Metric, MetricFamily, MetricKind
from c_python_backend_utils.models import is_model_ready, load_model, unload_model
from c_python_backend_utils.request import InferenceRequest
from c_python_backend_utils.response import InferenceResponse
from c_python_backend_utils.sender import InferenceResponseSender
from c_python_backend_utils.tensor import Tensor

TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU
TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU

for _known in (
    *(
        InferenceRequest,
        InferenceResponse,
        InferenceResponseSender,
        InferenceTrace,
        Logger,
        Metric,
        MetricFamily,
    ),
    *(PreferredMemory, ResponseIterator, Tensor, TritonError, TritonModelException),
):
    _known.__module__ = __name__  # where the original's are, as texts and pickles tell

__all__ = [
    "TRITONSERVER_MEMORY_CPU",
    "TRITONSERVER_MEMORY_GPU",
    "InferenceRequest",
    "InferenceResponse",
    "InferenceResponseSender",
    "InferenceTrace",
    "Logger",
    "MemoryType",
    "Metric",
    "MetricFamily",
    "MetricKind",
    "PreferredMemory",
    "ResponseIterator",
    "Tensor",
    "TritonError",
    "TritonModelException",
    "is_model_ready",
    "load_model",
    "unload_model",
]
