"""Makes ONNX Runtime's options of a session and of a run from a spec's parameters. Pure.

Source of the names: the parameters of Triton's onnxruntime backend; `graph_level` is its
`optimization.graph.level`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from trivium.engines.onnx.providers import ACCELERATORS, CUDA_OPTIONS
from trivium.settings.kinds import DIGIT_SWITCH, Form, OneOf, Whole
from trivium.settings.parameters import read_parameters
from trivium.settings.setting import Setting
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.spec import ModelSpec

SHRINKS = "memory.enable_memory_arena_shrinkage"
IN_DEVICE = "session.use_device_allocator_for_initializers"
OPERATORS = "custom_op_library"
"""A library of operators: a path, from the model's folder on where it is relative."""

Set = Callable[[Any, Any, Any], None]
"""Sets one option to its value: (options, the runtime module, value)."""


def _attribute(name: str) -> Set:
    return lambda options, _runtime, value: setattr(options, name, value)


def _entry(name: str) -> Set:
    return lambda options, _runtime, value: options.add_session_config_entry(name, value)


def _profile(options: Any, _runtime: Any, text: str) -> None:
    options.enable_profiling, options.profile_file_prefix = True, text


def _execution_mode(options: Any, runtime: Any, mode: str) -> None:
    options.execution_mode = getattr(runtime.ExecutionMode, mode)


def _graph_level(options: Any, runtime: Any, level: str) -> None:
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)


_THREADS = Whole()
_MODE = Form("0 (sequential) or 1 (parallel)", {"0": "ORT_SEQUENTIAL", "1": "ORT_PARALLEL"}.get)
_LEVELS = {
    "-1": "ORT_ENABLE_BASIC",
    "0": "ORT_ENABLE_ALL",
    "1": "ORT_ENABLE_EXTENDED",
    "2": "ORT_DISABLE_ALL",
}
_LEVEL = Form("-1 (basic), 0 (all), 1 (extended) or 2 (none)", _LEVELS.get)

OPTIONS: Mapping[Setting, Set] = {
    Setting("intra_op_thread_count", _THREADS): _attribute("intra_op_num_threads"),
    Setting("inter_op_thread_count", _THREADS): _attribute("inter_op_num_threads"),
    Setting("execution_mode", _MODE): _execution_mode,
    Setting("enable_mem_arena", DIGIT_SWITCH): _attribute("enable_cpu_mem_arena"),
    Setting("enable_mem_pattern", DIGIT_SWITCH): _attribute("enable_mem_pattern"),
    Setting(IN_DEVICE, OneOf(("0", "1"))): _entry(IN_DEVICE),
    Setting("profile_output"): _profile,
    Setting("graph_level", _LEVEL): _graph_level,
}
"""What a session may be told -> what sets it."""


def session_options(options: Any, runtime: Any, spec: ModelSpec, threads: int | None = None) -> Any:
    """Set what the spec's parameters ask for; where they do not say how many `threads` compute one operator, these; by
    None ONNX Runtime counts itself. LOAD_FAILED names a value that cannot be.
    """
    options.log_severity_level = 4
    if threads is not None:
        options.intra_op_num_threads = threads
    values = read_parameters(spec, OPTIONS)
    for row, put in OPTIONS.items():
        if row.name in values:
            put(options, runtime, values[row.name])
    return options


def register_operators(options: Any, spec: ModelSpec) -> Any:
    """Load the library of operators that the spec names, if any. LOAD_FAILED where it cannot be loaded."""
    text = spec.parameters.get(OPERATORS)
    if text is None:
        return options
    path = spec.root / text
    try:
        options.register_custom_ops_library(str(path))
    except Exception as error:  # ONNX Runtime's own are plain exceptions
        place = spec.origin.get(f"parameters[{OPERATORS}]", "as read")
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': ONNX Runtime cannot load the library of operators {path} ({place}): "
            f"{said_by(error)}. Give one that was built for this ONNX Runtime and this machine.",
        ) from error
    return options


def run_options(runtime: Any, spec: ModelSpec) -> Any:
    """Return the options that hold for every run of one session."""
    options = runtime.RunOptions()
    text = spec.parameters.get(SHRINKS)
    if text is not None:
        options.add_run_config_entry(SHRINKS, text.strip())
    return options


KNOWN = (*(row.name for row in OPTIONS), OPERATORS, SHRINKS, ACCELERATORS, *CUDA_OPTIONS)
