"""Keeps the adapters of a model: loads, replaces and removes them while requests run.

A request keeps the adapter that it began with. What is replaced or removed stays until the last such request has ended,
and counts in the budget until then.
"""

import logging
from itertools import count
from typing import Any

import safetensors
import torch

from trivium.engines.hf.lora.config import AdapterFault, judge_modules
from trivium.engines.hf.lora.files import WEIGHTS, AdapterFiles, adapter_error, read_adapter, tensor_names
from trivium.engines.hf.lora.layers import AdaptedLayers, LoadedAdapter, ModuleChange
from trivium.engines.hf.lora.limits import AdapterLimits
from trivium.engines.hf.lora.registry import AdapterRegistry
from trivium.types.errors import Code, named, said_by
from trivium.types.spec import ModelSpec

log = logging.getLogger(__name__)


class Adapters(AdapterRegistry[LoadedAdapter]):
    """Those of one model, in its data type. Used by the thread that steps."""

    def __init__(
        self,
        spec: ModelSpec,
        layers: AdaptedLayers,
        limits: AdapterLimits,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        super().__init__(spec)
        self.layers = layers
        self._limits = limits
        self._dtype = dtype
        self._device = device
        self._numbers = count(1)

    @property
    def bytes(self) -> int:
        """Return how many bytes the weights take, of those that some request still has, too."""
        return sum(one.bytes for one in self._all())

    def _registered(self, made: LoadedAdapter) -> None:
        self.layers.install(made)
        log.info(
            "model '%s': adapter %r of rank %d, %.2f MB",
            self._spec.name,
            made.files.name,
            made.files.rank,
            made.bytes / 1e6,
        )

    def _retire(self, one: LoadedAdapter) -> None:
        one.is_retired = True

    def _let_go(self, one: LoadedAdapter) -> None:
        self.layers.uninstall(one)

    def _load(self, name: str, source: str, before: LoadedAdapter | None) -> LoadedAdapter:
        files = read_adapter(self._spec, name, source, self._limits.rank)
        size = files.numbers * self._dtype.itemsize
        self._judge(files)
        held = self.bytes
        if short := self._limits.shortage(len(self._loaded) - (before is not None), held, size):
            raise adapter_error(self._spec, name, short, Code.OUT_OF_MEMORY)
        try:
            with torch.inference_mode():
                changes = self._read(files)
        except Exception as error:
            is_memory = isinstance(error, MemoryError) or "out of memory" in said_by(error)
            code = Code.OUT_OF_MEMORY if is_memory else Code.LOAD_FAILED
            raise adapter_error(
                self._spec, name, f"{WEIGHTS} cannot be read: {named(error)[:500]}", code
            ) from error
        return LoadedAdapter(files, f"{name}\0{next(self._numbers)}", changes, size)

    def _judge(self, files: AdapterFiles) -> None:
        """Hold an adapter against the modules that the model has."""
        try:
            for name, (_, inputs, outputs) in files.shapes.items():
                module = self.layers.modules.get(name)
                if module is None:
                    some = ", ".join(list(self.layers.modules)[:3]) or "none"
                    raise AdapterFault(
                        f"{WEIGHTS} changes '{name[:200]}', and the model has no such module that an adapter can "
                        f"change; it has {len(self.layers.modules)}, such as {some}. Train it for this model."
                    )
                if (inputs, outputs) != (module.inputs, module.outputs):
                    raise AdapterFault(
                        f"{WEIGHTS}: the matrices of '{name}' are for {inputs} inputs and {outputs} outputs, and the "
                        f"model's module has {module.inputs} and {module.outputs}. It was trained for another model."
                    )
            judge_modules(files.config, list(files.shapes), list(self.layers.modules))
        except AdapterFault as fault:
            raise adapter_error(self._spec, files.name, str(fault)) from fault

    def _read(self, files: AdapterFiles) -> dict[str, ModuleChange]:
        changes: dict[str, ModuleChange] = {}
        with safetensors.safe_open(files.folder / WEIGHTS, "pt") as opened:
            reader: Any = opened
            for module in files.shapes:
                down, up = (reader.get_tensor(key) for key in tensor_names(module))
                changes[module] = ModuleChange(
                    self._placed(down.t()), self._placed(up.t()), files.config.scale_of(module)
                )
        return changes

    def _placed(self, matrix: torch.Tensor) -> torch.Tensor:
        """Return a copy that does not view the file, which may be written anew while requests run."""
        copied = torch.empty(matrix.shape, dtype=self._dtype, device=self._device)
        return copied.copy_(matrix)
