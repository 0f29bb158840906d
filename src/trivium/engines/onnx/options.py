"""How a spec's parameters and placement become ONNX Runtime's session options and providers. Pure.

Source of the names: the parameters of Triton's onnxruntime backend; `graph_level` is its
`optimization.graph.level`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from trivium.types.errors import Code, ServeError
from trivium.types.running import Placement
from trivium.types.spec import Device, ModelSpec

Set = Callable[[Any, Any, str], None]
"""Sets one option from its text: (options, the runtime module, text). Raises ValueError, KeyError or TypeError."""


def _count(name: str) -> Set:
    def put(options: Any, _runtime: Any, text: str) -> None:
        value = int(text)
        if value < 0:
            raise ValueError
        setattr(options, name, value)

    return put


def _switch(name: str) -> Set:
    def put(options: Any, _runtime: Any, text: str) -> None:
        setattr(options, name, {"1": True, "true": True, "0": False, "false": False}[text.lower()])

    return put


def _execution_mode(options: Any, runtime: Any, text: str) -> None:
    modes = {"0": runtime.ExecutionMode.ORT_SEQUENTIAL, "1": runtime.ExecutionMode.ORT_PARALLEL}
    options.execution_mode = modes[text]


def _graph_level(options: Any, runtime: Any, text: str) -> None:
    levels = runtime.GraphOptimizationLevel
    named = {-1: levels.ORT_ENABLE_BASIC, 0: levels.ORT_ENABLE_ALL, 1: levels.ORT_ENABLE_EXTENDED}
    named[2] = levels.ORT_DISABLE_ALL
    options.graph_optimization_level = named[int(text)]


OPTIONS: dict[str, tuple[Set, str]] = {
    "intra_op_thread_count": (_count("intra_op_num_threads"), "a number of threads, 0 for the default"),
    "inter_op_thread_count": (_count("inter_op_num_threads"), "a number of threads, 0 for the default"),
    "execution_mode": (_execution_mode, "0 (sequential) or 1 (parallel)"),
    "enable_mem_arena": (_switch("enable_cpu_mem_arena"), "0 or 1"),
    "enable_mem_pattern": (_switch("enable_mem_pattern"), "0 or 1"),
    "graph_level": (_graph_level, "-1 (basic), 0 (all), 1 (extended) or 2 (none)"),
}


def session_options(options: Any, runtime: Any, spec: ModelSpec) -> Any:
    """Set what the spec's parameters ask for. LOAD_FAILED names a value that cannot be."""
    options.log_severity_level = 4
    for name, (put, expected) in OPTIONS.items():
        text = spec.parameters.get(name)
        if text is None:
            continue
        try:
            put(options, runtime, text.strip())
        except (ValueError, KeyError, TypeError) as error:  # a TypeError where a number is too great
            place = spec.origin.get(f"parameters.{name}", "as read")
            raise ServeError(
                Code.LOAD_FAILED,
                f"Model '{spec.name}': parameter '{name}' is '{text}' ({place}); expected {expected}.",
            ) from error
    return options


def execution_providers(available: Sequence[str], spec: ModelSpec, placement: Placement) -> list[object]:
    """CPU, or CUDA on the placement's device with CPU behind it. LOAD_FAILED where CUDA is not to be had."""
    if placement.device is Device.CPU:
        return ["CPUExecutionProvider"]
    if "CUDAExecutionProvider" not in available:
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': instance {placement.name} is to run on GPU {placement.device_id}, but this ONNX "
            f"Runtime has no CUDA (it has {', '.join(available)}). Install onnxruntime-gpu, or use KIND_CPU.",
        )
    return [("CUDAExecutionProvider", {"device_id": placement.device_id}), "CPUExecutionProvider"]


def unknown_parameters(spec: ModelSpec) -> tuple[str, ...]:
    """A note for each parameter that means nothing to this engine."""
    return tuple(
        f"parameter '{name}' has no meaning to engine 'onnx' and changes nothing; it knows: {', '.join(OPTIONS)}"
        for name in spec.parameters
        if name not in OPTIONS
    )
