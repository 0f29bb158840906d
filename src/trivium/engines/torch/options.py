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

from trivium.types.errors import Code, ServeError
from trivium.types.spec import ModelSpec

log = logging.getLogger(__name__)

_TRUTH = {"1": True, "true": True, "0": False, "false": False}


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
OWN = ("INFERENCE_MODE", "DISABLE_OPTIMIZED_EXECUTION", "ENABLE_WEIGHT_SHARING", "ENABLE_CACHE_CLEANING")
KNOWN = (*OWN, *SWITCHES, *COUNTS)


def options(spec: ModelSpec) -> Options:
    """The model's own options. LOAD_FAILED names a value that cannot be."""
    return Options(
        inference_mode=_switch(spec, "INFERENCE_MODE", True),
        optimizes=not _switch(spec, "DISABLE_OPTIMIZED_EXECUTION", False),
        shares_weights=_switch(spec, "ENABLE_WEIGHT_SHARING", False),
        cleans_cache=_switch(spec, "ENABLE_CACHE_CLEANING", False),
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
        wanted: list[tuple[str, Apply, object]] = []
        for name, put in SWITCHES.items():
            if name in spec.parameters:
                wanted.append((name, put, _switch(spec, name, False)))
        for name, put in COUNTS.items():
            if name in spec.parameters:
                wanted.append((name, put, _count(spec, name)))
        with self._lock:
            for name, put, value in wanted:
                self._apply_one(torch, spec.name, name, put, value)

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


def unknown_parameters(spec: ModelSpec) -> tuple[str, ...]:
    """A note for each parameter that means nothing to this engine."""
    return tuple(
        f"parameter '{name}' has no meaning to engine 'torch' and changes nothing; it knows: {', '.join(KNOWN)}"
        for name in spec.parameters
        if name not in KNOWN
    )


def _switch(spec: ModelSpec, name: str, default: bool) -> bool:
    text = spec.parameters.get(name)
    if text is None:
        return default
    value = _TRUTH.get(text.strip().lower())
    if value is None:
        raise _unfit(spec, name, "true or false")
    return value


def _count(spec: ModelSpec, name: str) -> int:
    text = spec.parameters[name].strip()
    if not text.isascii() or not text.isdigit() or not 0 < len(text) < 5 or not int(text):
        raise _unfit(spec, name, "a number of threads from 1 to 9999")
    return int(text)


def _unfit(spec: ModelSpec, name: str, expected: str) -> ServeError:
    place = spec.origin.get(f"parameters[{name}]", "as read")
    return ServeError(
        Code.LOAD_FAILED,
        f"Model '{spec.name}': parameter '{name}' is '{spec.parameters[name]}' ({place}); expected {expected}.",
    )
