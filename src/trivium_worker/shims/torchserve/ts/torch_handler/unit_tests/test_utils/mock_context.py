"""The context that people's own tests give to a handler, without a server.

Source: `mock_context.py` of TorchServe 0.12, whose arguments, attributes and answers it has.
"""

import os
import uuid
from typing import Any

from ts.metrics.metrics_store import MetricsStore
from ts.utils.util import get_yaml_config

_MODELS = os.path.join("ts", "torch_handler", "unit_tests", "models", "tmp")


class MockContext:
    """Names files of a model's folder, as a manifest does; a file that is None is not named. What is measured is a log
    line, and stays in `metrics.store`.
    """

    def __init__(
        self,
        model_pt_file: "str | None" = "model.pt",
        model_dir: Any = _MODELS,
        model_file: "str | None" = "model.py",
        gpu_id: Any = "0",
        model_name: str = "mnist",
        model_yaml_config_file: "str | None" = None,
    ) -> None:
        files = {"serializedFile": model_pt_file, "modelFile": model_file}
        self.manifest: dict[str, Any] = {"model": {key: file for key, file in files.items() if file}}
        self.system_properties: dict[str, Any] = {"model_dir": model_dir}
        if gpu_id and _has_cuda():
            self.system_properties["gpu_id"] = gpu_id
        self.model_name = model_name
        self.explain = False
        self.metrics = MetricsStore(uuid.uuid4(), model_name)
        self.model_yaml_config: dict[str, Any] = {}
        if model_yaml_config_file:
            self.model_yaml_config = get_yaml_config(os.path.join(model_dir, model_yaml_config_file))

    def get_request_header(self, idx: int, exp: Any) -> bool:
        """Return whether explanations are asked for: for any request but the first, as in the original."""
        return bool(idx and exp and self.explain)


def _has_cuda() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()
