"""The type and range of every key of serving.properties that has one, and what is wrong with a value.

Source: spec sheet `djl`, sections 2.6, 3 and 10. As in DJL a number below its least means "not set", and any word but
`true` is false; both are worth a notice. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trivium.servers.djl.words.language_model_keys import FORMS_OF_USED, LMI_OPTIONS
from trivium.settings.judging import meant_by
from trivium.settings.kinds import LARGEST, SWITCH, Kind, OneOf, Whole
from trivium.types.findings import Change
from trivium.types.running import MOST_IN_FLIGHT
from trivium.types.spec import MOST_INSTANCES


@dataclass(frozen=True, slots=True)
class ValueFault:
    """Says what is wrong with a value. `is_read` says that it is read all the same, as DJL does; `change` is what the
    hint says to do with the line, None where that is not one thing.
    """

    found: str
    expected: str
    hint: str
    is_read: bool = False
    change: Change | None = None


def _numbers(least: int, *keys: str, most: int = LARGEST) -> dict[str, Kind]:
    return dict.fromkeys(keys, Whole(least, most))


def _switches(*keys: str) -> dict[str, Kind]:
    return dict.fromkeys(keys, SWITCH)


def _words(key: str, *words: str) -> dict[str, Kind]:
    return {key: OneOf(words, any_case=True)}


_DEVICES = ("", "cpu.", "gpu.", "nc.")

FORMS: Mapping[str, Kind] = {
    **FORMS_OF_USED,
    **_numbers(1, "job_queue_size", "batch_size", "max_dynamic_batch_size", "metrics_aggregation"),
    **_numbers(0, "max_batch_delay", "option.max_batch_delay", "max_idle_time", "option.max_idle_time"),
    **_numbers(
        1, *(f"{of}{count}Workers" for of in _DEVICES for count in ("min", "max")), most=MOST_INSTANCES
    ),
    **_numbers(0, *(f"{of}{kind}_memory_mb" for of in ("", "gpu.") for kind in ("required", "reserved"))),
    **_numbers(0, "retry_threshold"),
    **_switches("log_model_metric", "log_request_metric"),
    **_numbers(1, "option.predict_timeout", "option.model_loading_timeout"),
    **_numbers(1, "option.max_rolling_batch_size", "option.max_output_size", "option.sessions_expiration"),
    **_switches("option.trust_remote_code", "option.tgi_compat"),
    **_numbers(1, "option.pipeline_parallel_degree"),
    **_numbers(1, "trivium_in_flight", most=MOST_IN_FLIGHT),
    "option.tensor_parallel_degree": Whole(1, words=("max",)),
    **_switches("option.parallel_loading", "option.enable_venv", "option.mpi_mode", "option.async_mode"),
    **_switches("option.use_passive_workers", "option.enable_lora", "option.enable_stateful_sessions"),
    "option.rolling_batch": LMI_OPTIONS["option.rolling_batch"].setting.kind,
    **_words("batchifier", "stack", "padding", "none"),
    **_switches("option.mapLocation", "option.trainParam"),
    **_numbers(0, "option.interOpNumThreads", "option.intraOpNumThreads"),
    **_words("option.executionMode", "SEQUENTIAL", "PARALLEL"),
    **_words("option.optLevel", "NO_OPT", "BASIC_OPT", "EXTENDED_OPT", "ALL_OPT"),
    **_numbers(0, "option.epoch", most=9999),
    **_switches("option.hasParameter"),
    **_switches("option.memoryPatternOptimization", "option.cpuArenaAllocator"),
    **_switches("option.disablePerSessionThreads", "option.enableMKLDNN", "option.SwitchIrOptim"),
    **_numbers(1, "option.CMLNumThreads", most=9999),
    **_words("option.ortDevice", "TensorRT", "ROCM", "CoreML"),
    **_words("option.Mode", "DEFAULT", "OUTPUT_MARGIN", "LEAF", "CONTRIB"),
    **_numbers(0, "option.TreeLimit"),
    **_words("option.inference_type", "NORMAL", "RAW_SCORE", "LEAF_INDEX", "CONTRIB"),
}
"""Key -> the form of its value. Engine and devices are read by `engines` and `settings`, which know both."""


_ANY_NUMBER, _JAVAS = Whole(1), Whole(-LARGEST)
_CLASSES = frozenset({"batchifier"})
"""Keys of which the name of a Java class stands for itself."""

_YES = frozenset({"yes", "on", "1", "y", "t"})


def fault_of(key: str, text: str) -> ValueFault | None:
    """Return what is wrong with the value of a key, None for nothing. An empty one is "not set"; of a key without a
    form it is a number from 1 on.
    """
    kind, text = FORMS.get(key, _ANY_NUMBER), text.strip()
    if not text or not kind.refuses(text) or (key in _CLASSES and "." in text):
        return None
    shown = f"{key}={text[:80]}"
    change: Change | None = None
    if isinstance(kind, OneOf):
        meant = meant_by(text, kind.words, 0.5)
        hint = f"Did you mean {meant}?" if meant else "Write one of them, or remove the line."
        change = Change(value=meant) if meant else None
    elif not isinstance(kind, Whole):
        meant = meant_by(text, ("true", "false")) or ("true" if text.lower() in _YES else "")
        hint = f"Did you mean {meant}?" if meant else "Write true or false."
        change = Change(value=meant) if meant else None
        return ValueFault(f"{shown} is read as false, as DJL reads it", kind.expected, hint, True, change)
    elif _JAVAS.refuses(text):
        hint = "Write digits alone."
    elif int(text) > kind.most:
        hint = f"Write {kind.most} or less."
        change = Change(value=str(kind.most))
    else:
        found, hint = (
            f"{shown} is read as not set, as DJL reads it",
            "Remove the line, or correct the number.",
        )
        return ValueFault(found, kind.expected, hint, True, Change())
    return ValueFault(shown, kind.expected, hint, change=change)
