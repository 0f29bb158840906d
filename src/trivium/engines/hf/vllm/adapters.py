"""Keeps the adapters of a model that vLLM computes: each of its weights is a number of vLLM's, and a folder.

The folder is judged here before vLLM opens it, as it is for the engine of our own.
"""

import logging
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol, TypeVar

from trivium.engines.hf.lora.files import adapter_error, read_adapter
from trivium.engines.hf.lora.limits import AdapterLimits
from trivium.engines.hf.lora.registry import AdapterRegistry
from trivium.types.errors import Code, named
from trivium.types.spec import ModelSpec

log = logging.getLogger(__name__)

SECONDS = 120.0
"""Within which vLLM has opened an adapter, or let go of one."""

T = TypeVar("T")


class AsksEngine(Protocol):
    """Has vLLM's engine do something between two of its steps."""

    @property
    def engine(self) -> Any:
        """Return vLLM's engine."""
        ...

    def ask(self, asked: Coroutine[Any, Any, T], seconds: float) -> T:
        """Return the answer. Raises what the engine raises, and TimeoutError."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class VllmAdapter:
    """One adapter as vLLM knows it: `request` is what names it there."""

    name: str
    number: int
    request: Any


class VllmAdapters(AdapterRegistry[VllmAdapter]):
    """Those of one model. Used by the thread that steps."""

    def __init__(self, spec: ModelSpec, core: AsksEngine, limits: AdapterLimits) -> None:
        super().__init__(spec)
        self._core = core
        self._limits = limits
        self._numbers = count(1)

    def _load(self, name: str, source: str, before: VllmAdapter | None) -> VllmAdapter:
        from vllm.lora.request import LoRARequest

        files = read_adapter(self._spec, name, source, self._limits.rank)
        if short := self._limits.shortage(self.held - (before is not None), 0, 0):
            raise adapter_error(self._spec, name, short, Code.OUT_OF_MEMORY)
        number = next(self._numbers)
        request = LoRARequest(f"{name}#{number}", number, str(files.folder.absolute()))
        try:
            is_there = self._core.ask(self._core.engine.add_lora(request), SECONDS)
        except (Exception, CancelledError) as error:
            raise adapter_error(self._spec, name, f"vLLM cannot open it: {named(error)[:500]}") from error
        if not is_there:
            raise adapter_error(self._spec, name, "vLLM did not take it, and does not say why.")
        log.info("model '%s': adapter %r of rank %d", self._spec.name, name, files.rank)
        return VllmAdapter(name, number, request)

    def _let_go(self, one: VllmAdapter) -> None:
        try:
            self._core.ask(self._core.engine.remove_lora(one.number), SECONDS)
        except (Exception, CancelledError) as error:
            log.warning(
                "model '%s': vLLM did not let go of adapter %r: %s", self._spec.name, one.name, named(error)
            )
