"""Chooses the ONNX Runtime execution providers that run a model, and their options: by its placement and accelerators.
Pure.

Source of the names: Triton's onnxruntime backend; the parameter `accelerators` is its
`optimization.execution_accelerators`, as JSON. An accelerator that this build lacks is told of and left out: answers
are the same without it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from trivium.types.errors import Code, ServeError
from trivium.types.running import Placement
from trivium.types.spec import Device, ModelSpec

ACCELERATORS = "accelerators"
CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
Options = dict[str, str]


class Asked(msgspec.Struct, frozen=True):
    """One accelerator, for instances on the device `device`: "cpu" or "gpu"."""

    device: str
    name: str
    parameters: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class _Provider:
    """Names what an accelerator is to ONNX Runtime, and its parameters -> options."""

    name: str
    device: str
    options: Callable[[Mapping[str, str]], Options]


_SEARCH = {"0": "EXHAUSTIVE", "1": "HEURISTIC", "2": "DEFAULT"}
_EXTEND = {"0": "kNextPowerOfTwo", "1": "kSameAsRequested"}
CUDA_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "cudnn_conv_algo_search": _SEARCH,
    "gpu_mem_limit": {},
    "arena_extend_strategy": _EXTEND,
    "do_copy_in_default_stream": {},
}
"""Parameter and option of one name -> its numbers, as ONNX Runtime calls them."""

_PRECISIONS = {
    "FP32": {},
    "FP16": {"trt_fp16_enable": "1"},
    "INT8": {"trt_int8_enable": "1"},
    "BF16": {"trt_bf16_enable": "1"},
}
_TENSORRT = {
    "max_workspace_size_bytes": "trt_max_workspace_size",
    "int8_calibration_table_name": "trt_int8_calibration_table_name",
    "int8_use_native_calibration_table": "trt_int8_use_native_calibration_table",
}


def _cuda(parameters: Mapping[str, str]) -> Options:
    return {name: CUDA_OPTIONS.get(name, {}).get(text, text) for name, text in parameters.items()}


def _tensorrt(parameters: Mapping[str, str]) -> Options:
    options: Options = {}
    for name, text in parameters.items():
        if name == "precision_mode":
            if text not in _PRECISIONS:
                raise ValueError(f"precision_mode {text!r}; expected one of {', '.join(_PRECISIONS)}")
            options |= _PRECISIONS[text]
        else:
            options[_TENSORRT.get(name, name)] = text
    return options


_PROVIDERS = {
    "tensorrt": _Provider("TensorrtExecutionProvider", "gpu", _tensorrt),
    "cuda": _Provider(CUDA, "gpu", _cuda),
    "openvino": _Provider("OpenVINOExecutionProvider", "cpu", dict),
}


def accelerators(spec: ModelSpec) -> tuple[Asked, ...]:
    """Return the providers that the model asks for. LOAD_FAILED for one that there is not, or on another device."""
    text = spec.parameters.get(ACCELERATORS, "[]")
    try:
        asked = msgspec.json.decode(text, type=tuple[Asked, ...])
        for one in asked:
            known = _PROVIDERS.get(one.name)
            if known is None or known.device != one.device:
                raise ValueError(f"unknown Execution Accelerator '{one.name}' is requested")
            known.options(one.parameters)
    except (msgspec.MsgspecError, ValueError) as error:
        names = ", ".join(f"{name} ({known.device})" for name, known in _PROVIDERS.items())
        place = spec.origin.get(f"parameters[{ACCELERATORS}]", "as read")
        raise ServeError(
            Code.LOAD_FAILED, f"Model '{spec.name}': {error} ({place}); expected some of {names}."
        ) from error
    return asked


def lacking(available: Sequence[str], spec: ModelSpec) -> tuple[str, ...]:
    """A note for each accelerator that is asked for and not in this build."""
    return tuple(
        f"the accelerator {one.name} is not in this ONNX Runtime (it has {', '.join(available)}): instances run "
        "without it"
        for one in accelerators(spec)
        if _PROVIDERS[one.name].name not in available
    )


def execution_providers(available: Sequence[str], spec: ModelSpec, placement: Placement) -> list[object]:
    """Those to try, first to last: accelerators, then CUDA on the placement's device where it is a GPU, then the CPU.
    LOAD_FAILED where CUDA is wanted and not to be had.
    """
    is_gpu = placement.device is Device.GPU
    if is_gpu and CUDA not in available:
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': instance {placement.name} is to run on GPU {placement.device_id}, but this ONNX "
            f"Runtime has no CUDA (it has {', '.join(available)}). Install onnxruntime-gpu, or use KIND_CPU.",
        )
    device: dict[str, object] = {"device_id": placement.device_id} if is_gpu else {}
    chosen: dict[str, dict[str, object]] = {}
    for one in accelerators(spec):
        known = _PROVIDERS[one.name]
        if known.device == placement.device.value and known.name in available:
            chosen[known.name] = {**device, **known.options(one.parameters)}
    if is_gpu:
        own = {name: spec.parameters[name].strip() for name in CUDA_OPTIONS if name in spec.parameters}
        chosen[CUDA] = {**chosen.pop(CUDA, device), **_cuda(own)}
    return [*((name, options) if options else name for name, options in chosen.items()), CPU]
