"""Makes ONNX Runtime's options of a session and of a run from a spec's parameters. Pure.

Source of the names: the parameters of Triton's onnxruntime backend; `graph_level` is its
`optimization.graph.level`.
"""

from collections.abc import Callable
from typing import Any

from trivium.engines.onnx.providers import ACCELERATORS, CUDA_OPTIONS
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.spec import ModelSpec

SHRINKS = "memory.enable_memory_arena_shrinkage"
IN_DEVICE = "session.use_device_allocator_for_initializers"
OPERATORS = "custom_op_library"
"""A library of operators: a path, from the model's folder on where it is relative."""

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


def _entry(name: str) -> Set:
    def put(options: Any, _runtime: Any, text: str) -> None:
        options.add_session_config_entry(name, {"0": "0", "1": "1"}[text])

    return put


def _profile(options: Any, _runtime: Any, text: str) -> None:
    options.enable_profiling, options.profile_file_prefix = True, text


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
    IN_DEVICE: (_entry(IN_DEVICE), "0 or 1"),
    "profile_output": (_profile, "the beginning of a file's name"),
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
            place = spec.origin.get(f"parameters[{name}]", "as read")
            raise ServeError(
                Code.LOAD_FAILED,
                f"Model '{spec.name}': parameter '{name}' is '{text}' ({place}); expected {expected}.",
            ) from error
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


KNOWN = (*OPTIONS, OPERATORS, SHRINKS, ACCELERATORS, *CUDA_OPTIONS)


def unknown_parameters(spec: ModelSpec) -> tuple[str, ...]:
    """A note for each parameter that means nothing to this engine."""
    return tuple(
        f"parameter '{name}' has no meaning to engine 'onnx' and changes nothing; it knows: {', '.join(KNOWN)}"
        for name in spec.parameters
        if name not in KNOWN
    )
