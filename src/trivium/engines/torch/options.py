"""Reads what a spec's parameters mean to TorchScript: a model's own options, and switches of the whole process.

Source of the names: the parameters of Triton's pytorch backend (sheet `triton`, section 2.4, step C). A switch of
the process is set when an instance opens and holds for every TorchScript model there, as in the original; a
second model that wants it otherwise is warned of by name.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from trivium.machine.control_group import bound_threads
from trivium.settings.kinds import DIGIT_SWITCH, Whole
from trivium.settings.parameters import read_parameters
from trivium.settings.setting import Setting
from trivium.types.extra_files import EXTRA_FILES
from trivium.types.spec import ModelSpec

log = logging.getLogger(__name__)

_THREADS = Whole(1, 9999)


@dataclass(frozen=True, slots=True)
class Options:
    """One model's own. `cleans_cache`: give unused GPU memory back after every run."""

    inference_mode: bool = True
    optimizes: bool = True
    shares_weights: bool = False
    cleans_cache: bool = False


def _threads(torch: Any, count: int) -> None:
    torch.set_num_threads(count)


def _threads_between(torch: Any, count: int) -> None:
    torch.set_num_interop_threads(count)  # RuntimeError once work has been done in parallel


def _no_cudnn(torch: Any, is_off: bool) -> None:
    torch.backends.cudnn.enabled = not is_off


Apply = Callable[[Any, Any], None]

SWITCHES: dict[str, Apply] = {
    "DISABLE_CUDNN": _no_cudnn,
    "ENABLE_JIT_EXECUTOR": lambda torch, is_on: torch._C._jit_set_profiling_executor(is_on),
    "ENABLE_JIT_PROFILING": lambda torch, is_on: torch._C._jit_set_profiling_mode(is_on),
    "ENABLE_TENSOR_FUSER": lambda torch, is_on: torch._C._jit_set_texpr_fuser_enabled(is_on),
}
COUNTS: dict[str, Apply] = {
    "INTER_OP_THREAD_COUNT": _threads_between,
    "INTRA_OP_THREAD_COUNT": _threads,
    "NUM_THREADS": _threads,
}
OWN = tuple(
    Setting(name, DIGIT_SWITCH, default)
    for name, default in (
        ("INFERENCE_MODE", True),
        ("DISABLE_OPTIMIZED_EXECUTION", False),
        ("ENABLE_WEIGHT_SHARING", False),
        ("ENABLE_CACHE_CLEANING", False),
    )
)
_OF_PROCESS = (
    *(Setting(name, DIGIT_SWITCH) for name in SWITCHES),
    *(Setting(name, _THREADS) for name in COUNTS),
)
KNOWN = (*(row.name for row in (*OWN, *_OF_PROCESS)), EXTRA_FILES)


def options(spec: ModelSpec) -> Options:
    """The model's own options. LOAD_FAILED names a value that cannot be."""
    values = {row.name: row.default for row in OWN} | read_parameters(spec, OWN)
    return Options(
        inference_mode=values["INFERENCE_MODE"],
        optimizes=not values["DISABLE_OPTIMIZED_EXECUTION"],
        shares_weights=values["ENABLE_WEIGHT_SHARING"],
        cleans_cache=values["ENABLE_CACHE_CLEANING"],
    )


class ProcessSettings:
    """Keeps what models of this process have asked of torch as a whole. Called from any thread."""

    def __init__(self) -> None:
        self._set: dict[str, tuple[object, str]] = {}
        self._lock = Lock()

    def apply(self, torch: Any, spec: ModelSpec) -> None:
        """Set the switches of the process that the spec names. LOAD_FAILED for a value that cannot be; a warning
        where another model had asked for another value, and where torch is past taking one.
        """
        wanted = read_parameters(spec, _OF_PROCESS)
        with self._lock:
            if self._set.keys().isdisjoint(COUNTS):
                bound_threads(torch)
            for name, value in wanted.items():
                self._apply_one(torch, spec.name, name, (SWITCHES | COUNTS)[name], value)

    def _apply_one(self, torch: Any, model: str, name: str, put: Apply, value: object) -> None:
        before = self._set.get(name)
        if before is not None and before[0] == value:
            return
        if before is not None:
            log.warning(
                "parameter %s is %s for model '%s' and was %s for model '%s': it holds for the whole process, and "
                "is now %s for both. Run one of them in a process of its own.",
                *(name, value, model, *before, value),
            )
        try:
            put(torch, value)
        except RuntimeError as error:
            log.warning(
                "parameter %s of model '%s' changes nothing: torch takes it only before its first work in parallel "
                "(%s)",
                *(name, model, error),
            )
            return
        self._set[name] = value, model
