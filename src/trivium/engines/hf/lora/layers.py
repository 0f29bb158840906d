"""Applies adapters to those tokens of a step whose requests named them, behind the modules that they change.

A module gets a hook with the first adapter that changes it, and loses it with the last: without adapters a step costs
what it costs. Each adapter changes its own rows alone, so that those of other requests stay what they are, to the bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from trivium.engines.hf.lora.files import AdapterFiles

Rows = slice | torch.Tensor
_EXPERTS = "experts"
_PROBED = 7
"""Tokens of the pass that shows which modules get a row for each token."""


@dataclass(frozen=True, slots=True)
class AdaptableModule:
    """A module that an adapter may change: it gets a row for each token, or, as the head, for each that is wanted."""

    module: Any
    inputs: int
    outputs: int
    is_head: bool


@dataclass(frozen=True, slots=True)
class ModuleChange:
    """Adds to what a module returns: its input times both matrices, scaled."""

    down: torch.Tensor
    up: torch.Tensor
    scale: float

    def of(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the change of these rows, in the data type of the matrices."""
        return rows.to(self.down.dtype) @ self.down @ self.up * self.scale


@dataclass(eq=False, slots=True)
class LoadedAdapter:
    """An adapter whose weights are there. `key` is another one for each load; one that is `retired` is used by those
    requests alone that began with it.
    """

    files: AdapterFiles
    key: str
    changes: dict[str, ModuleChange]
    bytes: int
    is_retired: bool = False


@dataclass(frozen=True, slots=True)
class AdaptedRows:
    """The rows of a step that are one adapter's."""

    adapter: LoadedAdapter
    begin: int
    end: int


class AdaptedLayers:
    """The modules of one model, with the hooks of those that some adapter changes."""

    def __init__(self, modules: dict[str, AdaptableModule]) -> None:
        self.modules = modules
        self._hooks: dict[str, tuple[Any, int]] = {}
        self._rows: list[tuple[LoadedAdapter, Rows]] = []
        self._wanted: list[tuple[LoadedAdapter, Rows]] = []

    @property
    def hooked(self) -> int:
        """Return how many modules have a hook."""
        return len(self._hooks)

    def install(self, adapter: LoadedAdapter) -> None:
        """Have the modules that an adapter changes look for its rows."""
        for name in adapter.changes:
            handle, users = self._hooks.get(name, (None, 0))
            if handle is None:
                one = self.modules[name]
                handle = one.module.register_forward_hook(self._hook(name, one.outputs, one.is_head))
            self._hooks[name] = handle, users + 1

    def uninstall(self, adapter: LoadedAdapter) -> None:
        """Take an adapter away, which no request has any more."""
        for name in adapter.changes:
            handle, users = self._hooks.pop(name)
            if users > 1:
                self._hooks[name] = handle, users - 1
            else:
                handle.remove()

    def begin(self, adapted: Sequence[AdaptedRows], wanted: Sequence[int], device: torch.device) -> None:
        """Say which rows of the coming pass are whose. `wanted` are the rows that reach the head, in their order."""
        mine: dict[LoadedAdapter, list[int]] = {}
        for one in adapted:
            mine.setdefault(one.adapter, []).extend(range(one.begin, one.end))
        self._rows = [(adapter, _rows(rows, device)) for adapter, rows in mine.items()]
        of_row = {row: adapter for adapter, rows in mine.items() for row in rows}
        heads: dict[LoadedAdapter, list[int]] = {}
        for place, row in enumerate(wanted):
            if row in of_row:
                heads.setdefault(of_row[row], []).append(place)
        self._wanted = [(adapter, _rows(rows, device)) for adapter, rows in heads.items()]

    def end(self) -> None:
        """The pass is over."""
        self._rows, self._wanted = [], []

    def _hook(self, name: str, outputs: int, is_head: bool) -> Callable[[Any, Any, Any], Any]:
        def changed(module: Any, given: Any, output: torch.Tensor) -> torch.Tensor | None:
            users = self._wanted if is_head else self._rows
            if not users:
                return None
            rows = given[0].reshape(-1, given[0].shape[-1])
            made = output.contiguous()
            flat = made.view(-1, outputs)
            for adapter, its in users:
                change = adapter.changes.get(name)
                if change is not None:
                    flat[its] += change.of(rows[its]).to(flat.dtype)
            return made

        return changed


def _rows(numbers: list[int], device: torch.device) -> Rows:
    """Return rows as a slice where they follow one another, which copies nothing."""
    if numbers[-1] - numbers[0] + 1 == len(numbers):
        return slice(numbers[0], numbers[-1] + 1)
    return torch.tensor(numbers, device=device)


def adaptable(model: Any, vocabulary: int, context: int, device: torch.device) -> dict[str, AdaptableModule]:
    """Return the modules that an adapter may change, found by a pass: those that multiply by a matrix and get a row for
    each token. Experts, which get some of them, are none.
    """
    head = model.get_output_embeddings()
    found: dict[str, AdaptableModule] = {}
    calls: dict[str, list[int]] = {}
    handles = []
    for name, module in model.named_modules():
        sizes = _sizes(module)
        if sizes is None or _EXPERTS in name:
            continue
        found[name] = AdaptableModule(module, *sizes, module is head)
        handles.append(module.register_forward_hook(_counting(calls.setdefault(name, []))))
    count = min(_PROBED, context)
    ids = [7919 * (i + 1) % vocabulary for i in range(count)]
    try:
        with torch.inference_mode():
            model(input_ids=torch.tensor([ids], device=device), use_cache=False)
    finally:
        for handle in handles:
            handle.remove()
    return {name: one for name, one in found.items() if calls[name] == [count]}


def _counting(calls: list[int]) -> Callable[[Any, Any, Any], None]:
    def count(module: Any, given: Any, output: Any) -> None:
        is_one = len(given) == 1 and isinstance(given[0], torch.Tensor) and isinstance(output, torch.Tensor)
        calls.append(given[0].shape[:-1].numel() if is_one else 0)

    return count


def _sizes(module: Any) -> tuple[int, int] | None:
    """Return the inputs and outputs of a module that multiplies by a matrix, quantised or not; None for another one."""
    if type(module).__name__ == "Conv1D":
        return int(module.nx), int(module.nf)
    inputs, outputs = getattr(module, "in_features", None), getattr(module, "out_features", None)
    return (inputs, outputs) if isinstance(inputs, int) and isinstance(outputs, int) else None
