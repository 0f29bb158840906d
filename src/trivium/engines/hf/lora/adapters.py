"""Keeps the adapters of a model: loads, replaces and removes them while requests run.

A request keeps the adapter that it began with. What is replaced or removed stays until the last such request has ended,
and counts in the budget until then.
"""

import logging
from collections.abc import Collection
from itertools import count
from typing import Any

import safetensors
import torch

from trivium.engines.hf.lora.config import AdapterFault, judge_modules
from trivium.engines.hf.lora.files import WEIGHTS, AdapterFiles, adapter_error, read_adapter, tensor_names
from trivium.engines.hf.lora.layers import AdaptedLayers, LoadedAdapter, ModuleChange
from trivium.engines.hf.lora.limits import AdapterLimits
from trivium.types import reasons
from trivium.types.adapters import FUNCTIONS, NAME, SOURCE, UNREGISTER
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, named, said_by
from trivium.types.payload import Raw
from trivium.types.spec import ModelSpec

log = logging.getLogger(__name__)

UNKNOWN_STATUS = 424
"""HTTP's status for a request that names an adapter that there is not."""


class Adapters:
    """Those of one model, in its data type. Used by the thread that steps."""

    def __init__(
        self,
        spec: ModelSpec,
        layers: AdaptedLayers,
        limits: AdapterLimits,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self._spec = spec
        self.layers = layers
        self._limits = limits
        self._dtype = dtype
        self._device = device
        self._loaded: dict[str, LoadedAdapter] = {}
        self._retired: list[LoadedAdapter] = []
        self._numbers = count(1)

    @property
    def bytes(self) -> int:
        """Return how many bytes the weights take, of those that some request still has, too."""
        return sum(one.bytes for one in (*self._loaded.values(), *self._retired))

    @property
    def held(self) -> int:
        """Return how many there are, of those that some request still has, too."""
        return len(self._loaded) + len(self._retired)

    @property
    def has_retired(self) -> bool:
        """Return whether one was replaced or removed that some request may still have."""
        return bool(self._retired)

    def find(self, name: str) -> LoadedAdapter:
        """Return the adapter of a request that names it. MODEL_FAILED where there is none."""
        found = self._loaded.get(name)
        if found is None:
            raise ServeError(
                Code.MODEL_FAILED,
                f"The adapter {name[:200]} has not been registered",
                status=UNKNOWN_STATUS,
                info=ErrorInfo.of(reasons.UNKNOWN_CALL, model=self._spec.name, topic=name[:200]),
            )
        return found

    def call(self, function: str, payload: Raw) -> LoadedAdapter | None:
        """Register, update or unregister an adapter, as the call of that name does. Returns the one that new requests
        do not get any more. MODEL_FAILED, with the file and the key, for one that cannot be served; OUT_OF_MEMORY.
        """
        if function not in FUNCTIONS:
            raise ServeError(
                Code.INVALID,
                f"Model '{self._spec.name}' has no function {function[:200]!r}; there are: {', '.join(FUNCTIONS)}.",
                info=ErrorInfo.of(reasons.NO_FUNCTION, model=self._spec.name, function=function[:200]),
            )
        name = payload.properties.get(NAME, "")
        before = self._loaded.get(name)
        if function == UNREGISTER:
            self._loaded.pop(name, None)
        else:
            try:
                made = self._load(name, payload.properties.get(SOURCE, ""), before)
            except ServeError as error:
                code = error.code if error.code is Code.OUT_OF_MEMORY else Code.MODEL_FAILED
                raise ServeError(code, error.message) from error
            self.layers.install(made)
            self._loaded[name] = made
            log.info(
                "model '%s': adapter %r of rank %d, %.2f MB",
                self._spec.name,
                name,
                made.files.rank,
                made.bytes / 1e6,
            )
        if before is not None:
            before.is_retired = True
            self._retired.append(before)
        return before

    def sweep(self, used: Collection[LoadedAdapter | None]) -> None:
        """Let those go that were replaced or removed, and that no request has."""
        for one in [one for one in self._retired if one not in used]:
            self._retired.remove(one)
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
