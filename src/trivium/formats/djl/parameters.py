"""Options of DJL's native engines -> parameters of ours, each with where it was found.

Source: spec sheet `djl`, section 3.3; the names on our side are those that `engines/onnx/options.py` documents. A value
that cannot be is an error here, where its line is known.
"""

from collections.abc import Mapping

from trivium.dialects.djl.keys import DjlEngine
from trivium.dialects.djl.settings import DjlSettings, Setting

_SWITCH = {"true": "1", "false": "0"}
_CHOICES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "option.executionMode": ("execution_mode", {"sequential": "0", "parallel": "1"}),
    "option.optLevel": (
        "graph_level",
        {"no_opt": "2", "basic_opt": "-1", "extended_opt": "1", "all_opt": "0"},
    ),
    "option.memoryPatternOptimization": ("enable_mem_pattern", _SWITCH),
    "option.cpuArenaAllocator": ("enable_mem_arena", _SWITCH),
}
_THREADS = {
    "option.intraOpNumThreads": "intra_op_thread_count",
    "option.interOpNumThreads": "inter_op_thread_count",
}
_DEVICES = ("tensorrt", "rocm", "coreml")


def parameters(settings: DjlSettings, engine: DjlEngine) -> dict[str, Setting[str]]:
    """What the engine is told. DJL gives each worker one thread and runs more workers instead; torch's threads are
    the whole process's, so that one model does not decide about them.
    """
    if engine is not DjlEngine.ONNX:
        return {}
    made: dict[str, Setting[str]] = {}
    for key, name in _THREADS.items():
        threads = settings.number([key], 1, 0, "DJL's default: one thread per worker")
        made[name] = Setting(str(threads.value), threads.origin)
    for key, (name, choices) in _CHOICES.items():
        written = settings.text([key])
        if not written.value:
            continue
        value = choices.get(written.value.lower())
        if value is None:
            expected = f"one of {', '.join(choices)}"
            settings.fault(key, f"{key}={written.value}", expected, "Write one of them, or remove the line.")
        else:
            made[name] = Setting(value, written.origin)
    _check_device(settings)
    return made


def _check_device(settings: DjlSettings) -> None:
    key = "option.ortDevice"
    device = settings.text([key]).value
    if device and device.lower() not in _DEVICES:
        settings.fault(key, f"{key}={device}", "TensorRT, ROCM or CoreML", "Remove the line.")
