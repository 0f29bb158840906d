"""Chooses the ONNX Runtime execution providers that run a model, and their options: by its placement and accelerators.

Source of the names: Triton's onnxruntime backend, whose `optimization.execution_accelerators` the parameter
`accelerators` is, as JSON; DJL's `option.ortDevice` has rocm and coreml besides. One that this build lacks is refused
with the package that has it, as the originals refuse it: who asks for it would not know that it does nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from trivium.machine.extras import exchange_command
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
    """Names what an accelerator is to ONNX Runtime: the first provider that there is among `names`. `devices` are those
    whose instances it may run; `options` translates its parameters; `package` has it, and `needs` something more. One
    that `stands_alone` needs no CUDA on a GPU.
    """

    names: tuple[str, ...]
    devices: tuple[str, ...]
    options: Callable[[Mapping[str, str]], Options]
    package: str
    needs: str = ""
    stands_alone: bool = False

    def among(self, available: Sequence[str]) -> str:
        """Return what this build calls it; empty where it has none."""
        return next((name for name in self.names if name in available), "")


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


_ORT = "onnxruntime"
"""The package whose modules those of `_PROVIDERS` replace."""

_PROVIDERS = {
    "tensorrt": _Provider(
        ("TensorrtExecutionProvider",), ("gpu",), _tensorrt, f"{_ORT}-gpu", "NVIDIA's TensorRT"
    ),
    "cuda": _Provider((CUDA,), ("gpu",), _cuda, f"{_ORT}-gpu", "CUDA and cuDNN"),
    "openvino": _Provider(("OpenVINOExecutionProvider",), ("cpu",), dict, f"{_ORT}-openvino"),
    "rocm": _Provider(
        ("ROCMExecutionProvider", "MIGraphXExecutionProvider"),
        ("gpu", "cpu"),
        dict,
        f"{_ORT}-migraphx",
        "AMD's ROCm",
        stands_alone=True,
    ),
    "coreml": _Provider(("CoreMLExecutionProvider",), ("gpu", "cpu"), dict, _ORT, "macOS", stands_alone=True),
}
"""AMD's and Apple's devices are none that a placement counts: those run on instances of the CPU, too."""


def accelerators(spec: ModelSpec) -> tuple[Asked, ...]:
    """Return the providers that the model asks for. LOAD_FAILED for one that there is not, or on another device."""
    text = spec.parameters.get(ACCELERATORS, "[]")
    try:
        asked = msgspec.json.decode(text, type=tuple[Asked, ...])
        for one in asked:
            known = _PROVIDERS.get(one.name)
            if known is None or one.device not in known.devices:
                raise ValueError(f"unknown Execution Accelerator '{one.name}' is requested")
            known.options(one.parameters)
    except (msgspec.MsgspecError, ValueError) as error:
        names = ", ".join(f"{name} ({' or '.join(known.devices)})" for name, known in _PROVIDERS.items())
        raise ServeError(
            Code.LOAD_FAILED, f"Model '{spec.name}': {error} ({_place(spec)}); expected some of {names}."
        ) from error
    return asked


def unused(available: Sequence[str], spec: ModelSpec) -> tuple[str, ...]:
    """Return a note for each accelerator of a device that no instance runs on. Raises LOAD_FAILED for one that
    instances would run on, and that is not in this build.
    """
    devices = {group.device.value for group in spec.groups}
    asked = accelerators(spec)
    for one in asked:
        if one.device in devices:
            _provider(available, spec, one)
    return tuple(
        f"the accelerator {one.name} is for instances on a {one.device.upper()}, and the model has none: it is not used"
        for one in asked
        if devices and one.device not in devices
    )


def _place(spec: ModelSpec) -> str:
    return str(spec.origin.get(f"parameters[{ACCELERATORS}]", "as read"))


def _provider(available: Sequence[str], spec: ModelSpec, one: Asked) -> str:
    """Return the provider of an accelerator. LOAD_FAILED with the package that has it, where this build does not."""
    known = _PROVIDERS[one.name]
    if name := known.among(available):
        return name
    needs = f" (it needs {known.needs}, too)" if known.needs else ""
    if known.package == _ORT:
        mend = f"It comes with {_ORT} on {known.needs}"
    else:
        mend = f"Install {known.package}{needs}: {exchange_command(_ORT, known.package)}"
    raise ServeError(
        Code.LOAD_FAILED,
        f"Model '{spec.name}': the accelerator {one.name} ({_place(spec)}) is {' or '.join(known.names)}, which this "
        f"ONNX Runtime lacks (it has {', '.join(available)}). {mend}. Or remove the accelerator: answers are the same.",
    )


def execution_providers(available: Sequence[str], spec: ModelSpec, placement: Placement) -> list[object]:
    """Those to try, first to last: accelerators, then CUDA on the placement's device where it is a GPU, then the CPU.
    LOAD_FAILED where one of them is wanted and not to be had.
    """
    is_gpu = placement.device is Device.GPU
    device: dict[str, object] = {"device_id": placement.device_id} if is_gpu else {}
    wanted = [one for one in accelerators(spec) if one.device == placement.device.value]
    chosen: dict[str, dict[str, object]] = {
        _provider(available, spec, one): {**device, **_PROVIDERS[one.name].options(one.parameters)}
        for one in wanted
    }
    if is_gpu and not any(_PROVIDERS[one.name].stands_alone for one in wanted):
        _require_cuda(available, spec, placement)
        own = {name: spec.parameters[name].strip() for name in CUDA_OPTIONS if name in spec.parameters}
        chosen[CUDA] = {**chosen.pop(CUDA, device), **_cuda(own)}
    return [*((name, options) if options else name for name, options in chosen.items()), CPU]


def _require_cuda(available: Sequence[str], spec: ModelSpec, placement: Placement) -> None:
    if CUDA not in available:
        package = _PROVIDERS["cuda"].package
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': instance {placement.name} is to run on GPU {placement.device_id}, but this ONNX "
            f"Runtime has no CUDA (it has {', '.join(available)}). Install {package}, or use KIND_CPU: "
            f"{exchange_command(_ORT, package)}",
        )
