"""Finds the device of a `BaseHandler` and loads its weights. Source: spec sheet `torchserve`, sections 8.2 and 13.

A pickle may run any code: weights are read with `weights_only`, unless the model's own model-config.yaml says
`handler: {weights_only: false}`.
"""

import importlib
import logging
import os
from typing import Any

from trivium_worker import pickles
from ts.unsupported import refusal
from ts.utils.util import list_classes_from_module


def device_of(gpu_id: int | None) -> Any:
    """The `torch.device` of a worker that has this GPU: CUDA, Intel's or Apple's, whichever is there; else the CPU."""
    import torch

    if gpu_id is not None:
        if torch.cuda.is_available():
            return torch.device(f"cuda:{gpu_id}")
        if getattr(torch, "xpu", None) is not None and torch.xpu.is_available():
            return torch.device(f"xpu:{gpu_id}")
        if torch.backends.mps.is_available():
            return torch.device("mps")
    return torch.device("cpu")


def load_eager(
    model_dir: str, model_file: str, weights: str | None, device: Any, settings: dict[str, Any]
) -> Any:
    """An object of the only class in the model file, with its weights, if there are any. ValueError for another
    number of classes.
    """
    path = os.path.join(model_dir, model_file)
    if not os.path.isfile(path):
        raise RuntimeError(f"{path}, which the manifest names as modelFile, is not there")
    module = importlib.import_module(os.path.splitext(os.path.basename(model_file))[0])
    classes = list_classes_from_module(module)
    if len(classes) != 1:
        names = ", ".join(found.__name__ for found in classes) or "none"
        raise ValueError(f"{path}: expected exactly one class, which is the model; found: {names}")
    model = classes[0]()
    if weights is not None and os.path.isfile(weights):
        model.load_state_dict(pickles.opened_weights(weights, _is_safe(settings), device))
    return model


def load_vocabulary(path: str, settings: dict[str, Any]) -> Any:
    """The vocabulary of a handler for texts: a dict, unless model-config.yaml says `handler: {weights_only: false}`.
    ValueError for anything else.
    """
    try:
        return pickles.opened_weights(path, _is_safe(settings))
    except Exception as error:
        if not _is_safe(settings):
            raise
        raise ValueError(
            f"{path} is no plain dict of numbers by word: {str(error).splitlines()[0]} Save it as one, "
            "torch.save(dict(vocabulary), 'source_vocab.pt'), or let it run code, by handler: {weights_only: false} in "
            "model-config.yaml"
        ) from error


def load_script(weights: str, device: Any) -> Any:
    """A TorchScript file."""
    import torch

    load: Any = torch.jit.load  # torch itself does not say what it takes
    return load(weights, map_location=device)


def load_onnx(weights: str, device: Any) -> Any:
    """An ONNX Runtime session. ImportError where ONNX Runtime is not installed."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    allowed = os.environ.get("OMP_NUM_THREADS", "")  # of a control group that gives less time than there is
    options.intra_op_num_threads = int(allowed) if allowed.isdigit() else os.cpu_count() or 1
    providers = onnx_providers(device.type, onnxruntime.get_available_providers())
    return onnxruntime.InferenceSession(weights, sess_options=options, providers=providers)


def onnx_providers(device: str, available: "list[str]") -> "list[str]":
    """Names the providers to try, first to last: on CUDA TensorRT where this ONNX Runtime has it, then CUDA, then the
    CPU. One without CUDA runs the model on the CPU, with a warning.
    """
    if device != "cuda":
        return ["CPUExecutionProvider"]
    wanted = ["TensorrtExecutionProvider", "CUDAExecutionProvider"]
    if wanted[1] not in available:
        logging.warning(
            "the ONNX model runs on the CPU: this ONNX Runtime has no CUDA (it has %s). Install onnxruntime-gpu in the "
            "handler's environment, in place of onnxruntime",
            ", ".join(available),
        )
    return [*(name for name in wanted if name in available), "CPUExecutionProvider"]


def load_compiled(weights: str, device: Any) -> Any:
    """A library that torch compiled ahead of time."""
    import torch

    load = getattr(torch._export, "aot_load", None)
    if load is None:
        raise refusal(f"a model compiled ahead of time (.so), under torch {torch.__version__},")
    return load(weights, device.type)


def is_compiled_ahead(settings: dict[str, Any]) -> bool:
    """Does the configuration say `pt2: {export: {aot_compile: true}}`?"""
    pt2 = settings.get("pt2")
    export = pt2.get("export") if isinstance(pt2, dict) else None
    return bool(isinstance(export, dict) and export.get("aot_compile"))


def _is_safe(settings: dict[str, Any]) -> bool:
    own = settings.get("handler")
    return not (isinstance(own, dict) and own.get("weights_only") is False)
