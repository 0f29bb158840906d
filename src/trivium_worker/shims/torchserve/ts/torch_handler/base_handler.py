"""`BaseHandler`: load weights, then preprocess, inference and postprocess, each to be overridden.

Source: spec sheet `torchserve`, section 8.2. This module defines exactly one class, since archives may name it as
their handler. It imports torch when it is used, not before.
"""

import os
import time
from typing import Any

from ts.torch_handler import compiling, loading
from ts.utils.util import load_label_mapping


class BaseHandler:
    """A handler for models of torch and ONNX Runtime. `mapping` has the labels of index_to_name.json, if any."""

    def __init__(self) -> None:
        self.model: Any = None
        self.mapping: dict[str, str] | None = None
        self.device: Any = None
        self.initialized = False
        self.context: Any = None
        self.model_pt_path: str | None = None
        self.manifest: dict[str, Any] | None = None
        self.map_location: str | None = None
        self.explain = False
        self.target = 0
        self.profiler_args: dict[str, Any] = {}
        self.model_yaml_config: dict[str, Any] = {}

    def initialize(self, context: Any) -> None:
        """Load the model onto the worker's device. RuntimeError where there is nothing that can be loaded."""
        properties = context.system_properties
        self.context = context
        self.manifest = context.manifest
        self.model_yaml_config = context.model_yaml_config or {}
        self.device = loading.device_of(properties.get("gpu_id"))
        self.map_location = self.device.type
        model_dir = properties["model_dir"]
        named = (self.manifest or {}).get("model", {})
        serialized, model_file = named.get("serializedFile"), named.get("modelFile")
        self.model_pt_path = os.path.join(model_dir, serialized) if serialized else None
        self.model = self._load(model_dir, model_file)
        self.model = compiling.compiled(self.model, self.model_yaml_config, self.device.type)
        compiling.warm_up(self.model, self.model_yaml_config, self.device)
        self.mapping = load_label_mapping(os.path.join(model_dir, "index_to_name.json"))
        self.initialized = True

    def _load(self, model_dir: str, model_file: str | None) -> Any:
        path, settings = self.model_pt_path, self.model_yaml_config
        if model_file:
            model = self._load_pickled_model(model_dir, model_file, path)
            return model.to(self.device).eval()
        if path and path.endswith(".pt"):
            return self._load_torchscript_model(path).eval()
        if path and path.endswith(".onnx"):
            return loading.load_onnx(path, self.device)
        if path and path.endswith(".so") and loading.is_compiled_ahead(settings):
            return loading.load_compiled(path, self.device)
        raise RuntimeError(
            f"No model weights could be loaded: the manifest names {path!r} as serializedFile and "
            "no modelFile; expected .pt (TorchScript), .onnx, or .so with pt2.export.aot_compile"
        )

    def _load_pickled_model(self, model_dir: str, model_file: str, model_pt_path: str | None) -> Any:
        """The model of an eager archive. Handlers override it."""
        return loading.load_eager(model_dir, model_file, model_pt_path, self.device, self.model_yaml_config)

    def _load_torchscript_model(self, model_pt_path: str) -> Any:
        """The model of a TorchScript archive. Handlers override it."""
        return loading.load_script(model_pt_path, self.device)

    def preprocess(self, data: Any) -> Any:
        """The batch as a tensor on the device."""
        import torch

        return torch.as_tensor(data, device=self.device)

    def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        """Return what the model makes of a batch."""
        import torch

        with torch.inference_mode():
            if hasattr(self.model, "get_inputs") and not callable(self.model):  # a session of ONNX Runtime
                feed = {self.model.get_inputs()[0].name: data.cpu().numpy()}
                return torch.from_numpy(self.model.run(None, feed)[0])
            return self.model(data.to(self.device), *args, **kwargs)

    def postprocess(self, data: Any) -> list[Any]:
        """An answer for each request."""
        answers: list[Any] = data.tolist()
        return answers

    def handle(self, data: Any, context: Any) -> Any:
        """The whole way of a batch. The first request decides whether the batch is explained."""
        began = time.perf_counter()
        self.context = context
        if os.environ.get("ENABLE_TORCH_PROFILER"):
            output, _ = self._infer_with_profiler(data)
        elif self._is_describe():
            output = [self.describe_handle()]
        else:
            output = self._infer(data)
        spent = (time.perf_counter() - began) * 1000
        context.metrics.add_time("HandlerTime", round(spent, 2), None, "ms")
        return output

    def _infer(self, data: Any) -> Any:
        prepared = self.preprocess(data)
        if self._is_explain():
            return self.explain_handle(prepared, data)
        return self.postprocess(self.inference(prepared))

    def _infer_with_profiler(self, data: Any) -> tuple[Any, Any]:
        """Run the model under torch's profiler, whose traces go below /tmp/pytorch_profiler."""
        from torch import profiler

        arguments = dict(self.profiler_args)
        if "on_trace_ready" not in arguments:
            folder = os.path.join("/tmp/pytorch_profiler", str(self.context.model_name))
            arguments["on_trace_ready"] = profiler.tensorboard_trace_handler(folder)
        with profiler.profile(**arguments) as running:
            output = self._infer(data)
        return output, running

    def explain_handle(self, data_preprocess: Any, raw_data: Any) -> Any:
        """Return what `get_insights`, which the handler defines, says of the first request."""
        row = raw_data[0]
        inputs, target = None, 0
        if isinstance(row, dict):
            inputs = row.get("data") or row.get("body")
            target = row.get("target") or 0
        get_insights = getattr(self, "get_insights", None)
        if get_insights is None:
            raise NotImplementedError(
                f"{type(self).__name__} cannot explain: it has no get_insights(tensor, raw, target)"
            )
        return get_insights(data_preprocess, inputs, target)

    def describe_handle(self) -> Any:
        """Return what the model says of itself; handlers override it."""
        return None

    def get_device(self) -> Any:
        """Return where the model computes."""
        return self.device

    def _is_explain(self) -> bool:
        self.explain = self.context.get_request_header(0, "explain") == "True"
        return self.explain

    def _is_describe(self) -> bool:
        return bool(self.context.get_request_header(0, "describe") == "True")
