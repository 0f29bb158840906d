"""The type and range of every key of serving.properties that has one, and what is wrong with a value.

Source: spec sheet `djl`, sections 2.6, 3 and 10. As in DJL a number below its least means "not set", and any word but
`true` is false; both are worth a notice. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from trivium.codecs.near_names import near
from trivium.types.running import MOST_IN_FLIGHT
from trivium.types.spec import MOST_INSTANCES

LARGEST = 2**31 - 1


class ValueType(Enum):
    """Names the form of a value."""

    NUMBER = "a number"
    SWITCH = "a truth value"
    WORD = "one of some words"


@dataclass(frozen=True, slots=True)
class ValueFault:
    """Says what is wrong with a value. `is_read` says that it is read all the same, as DJL does."""

    found: str
    expected: str
    hint: str
    is_read: bool = False


@dataclass(frozen=True, slots=True)
class ValueForm:
    """The form of one key's value: a number from `least` to `most`, a truth value, or one of `words`.

    A number may be one of `words`, too. `classes`: the name of a Java class stands for itself.
    """

    kind: ValueType
    least: int = 1
    most: int = LARGEST
    words: Sequence[str] = ()
    classes: bool = False

    @property
    def expected(self) -> str:
        """Return what a value may be, for a sentence."""
        if self.kind is ValueType.SWITCH:
            return "true or false"
        if self.kind is ValueType.WORD:
            return f"one of {', '.join(self.words)}"
        return " or ".join((f"an integer from {self.least} to {self.most}", *self.words))

    def fault(self, key: str, text: str) -> ValueFault | None:
        """Return what is wrong with a value, None for nothing. An empty one is "not set"."""
        text = text.strip()
        if not text or text.lower() in (word.lower() for word in self.words):
            return None
        shown = f"{key}={text[:80]}"
        if self.kind is ValueType.SWITCH:
            return None if text.lower() in ("true", "false") else self._no_truth(shown, text)
        if self.kind is ValueType.WORD:
            return (
                None if self.classes and "." in text else ValueFault(shown, self.expected, self._near(text))
            )
        value = integer(text)
        if value is None or value > self.most:
            hint = "Write digits alone." if value is None else f"Write {self.most} or less."
            return ValueFault(shown, self.expected, hint)
        if value < self.least:
            found = f"{shown} is read as not set, as DJL reads it"
            return ValueFault(found, self.expected, "Remove the line, or correct the number.", True)
        return None

    def _no_truth(self, shown: str, text: str) -> ValueFault:
        meant = near(text.lower(), ("true", "false"))
        meant = meant or ("true" if text.lower() in ("yes", "on", "1", "y", "t") else "")
        hint = f"Did you mean {meant}?" if meant else "Write true or false."
        return ValueFault(f"{shown} is read as false, as DJL reads it", self.expected, hint, True)

    def _near(self, text: str) -> str:
        lower = {word.lower(): word for word in self.words}
        meant = near(text.lower(), lower, 0.5)
        return f"Did you mean {lower[meant]}?" if meant else "Write one of them, or remove the line."


def integer(text: str) -> int | None:
    """Read an integer as Java's 32 bits hold it; None for what is none."""
    digits = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 10:
        return None
    value = int(text)
    return value if abs(value) <= LARGEST else None


def _numbers(least: int, *keys: str, most: int = LARGEST) -> dict[str, ValueForm]:
    return {key: ValueForm(ValueType.NUMBER, least, most) for key in keys}


def _switches(*keys: str) -> dict[str, ValueForm]:
    return {key: ValueForm(ValueType.SWITCH) for key in keys}


def _words(key: str, *words: str, classes: bool = False) -> dict[str, ValueForm]:
    return {key: ValueForm(ValueType.WORD, words=words, classes=classes)}


_DEVICES = ("", "cpu.", "gpu.", "nc.")

FORMS: Mapping[str, ValueForm] = {
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
    **_numbers(1, "option.max_num_sequences", "option.max_num_seqs"),
    **_numbers(1, "option.max_rolling_batch_prefill_tokens", "option.max_num_batched_tokens"),
    **_numbers(1, "option.max_model_len", "option.n_positions", "option.max_tokens"),
    **_numbers(1, "option.max_input_len", "option.max_output_len"),
    **_switches("option.trust_remote_code", "option.tgi_compat"),
    **_numbers(1, "option.pipeline_parallel_degree"),
    **_numbers(1, "trivium_in_flight", most=MOST_IN_FLIGHT),
    "option.tensor_parallel_degree": ValueForm(ValueType.NUMBER, words=("max",)),
    **_switches("option.parallel_loading", "option.enable_venv", "option.mpi_mode", "option.async_mode"),
    **_switches("option.use_passive_workers", "option.enable_lora", "option.enable_stateful_sessions"),
    **_words(
        "option.rolling_batch", "disable", "auto", "scheduler", "lmi-dist", "vllm", "deepspeed", "trtllm"
    ),
    **_words("batchifier", "stack", "padding", "none", classes=True),
    **_switches("option.mapLocation", "option.trainParam"),
    **_numbers(0, "option.interOpNumThreads", "option.intraOpNumThreads"),
    **_words("option.executionMode", "SEQUENTIAL", "PARALLEL"),
    **_words("option.optLevel", "NO_OPT", "BASIC_OPT", "EXTENDED_OPT", "ALL_OPT"),
    **_switches("option.memoryPatternOptimization", "option.cpuArenaAllocator"),
    **_switches("option.disablePerSessionThreads"),
    **_words("option.ortDevice", "TensorRT", "ROCM", "CoreML"),
}
"""Key -> the form of its value. Engine and devices are read by `engines` and `settings`, which know both."""


_ANY_NUMBER = ValueForm(ValueType.NUMBER)


def form_of(key: str) -> ValueForm:
    """Return the form of a key's value; a key that has none is read as a number from 1 on by who asks for one."""
    return FORMS.get(key, _ANY_NUMBER)
