from _typeshed import Incomplete
from c_python_backend_utils.metrics import MetricKind as MetricKind
from c_python_backend_utils.models import is_model_ready as is_model_ready, load_model as load_model, unload_model as unload_model

TRITONSERVER_MEMORY_CPU: Incomplete
TRITONSERVER_MEMORY_GPU: Incomplete
