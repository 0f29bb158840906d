"""PyTorch: opens a file of TorchScript, torch.export or AOTInductor and runs batches of tensors.

Models release the interpreter's lock, so they run in threads; a process is for one that is not trusted to. A
batch of one reaches the module uncopied. How names become arguments is `call`'s to say.
"""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from trivium.codecs.batched_runner import BatchedRunner, Called
from trivium.engines.torch.arrays import to_array, to_torch
from trivium.engines.torch.call import Arrange, arrange, choose, flatten
from trivium.engines.torch.facts import facts
from trivium.engines.torch.module_file import ModuleFiles, device_of, library
from trivium.engines.torch.options import KNOWN, Options, ProcessSettings, options
from trivium.engines.torch.programs import ExportedProgram
from trivium.settings.parameters import unknown_parameters
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import PayloadKind, Tensor, Tensors
from trivium.types.running import Placement
from trivium.types.spec import Isolation, ModelFacts, ModelSpec

_NAME_SETS = 64  # ways of naming the inputs that are remembered: hostile clients may know many
_NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


class TorchModel:
    """One model on one device."""

    def __init__(
        self, torch: Any, program: ExportedProgram, spec: ModelSpec, device: Any, chosen: Options
    ) -> None:
        self._torch = torch
        self._program = program
        self._model = spec.name
        self._device = device
        self._options = chosen
        self._declared = {tensor.name: tensor.datatype for tensor in spec.outputs if not tensor.open}
        self._outputs = [tensor.name for tensor in spec.outputs]
        self._arguments = program.arguments
        self.arranged: dict[tuple[str, ...], Arrange] = {}
        self._is_written = program.writes
        self._own = program.own
        told = (name for one in spec.batch_shapes.inputs for name in one.names)
        names = (*(tensor.name for tensor in spec.inputs), *told)
        if names:
            self._arrange(names)

    def accept(self, payload: Tensors) -> Tensors:
        """See `ArrayModel`: every item is taken as it is."""
        return payload

    def interrupt(self) -> None:
        """See `ArrayModel`: PyTorch has no way to end a call."""

    def close(self) -> None:
        """Drop the model; its memory goes with its last reference."""
        del self._program

    def call(self, arrays: dict[str, Array], datatypes: Mapping[str, DataType], is_alone: bool) -> Called:
        """See `ArrayModel`."""
        with ExitStack() as modes:
            self._enter(modes)
            is_written = is_alone and self._is_written
            inputs = {
                name: to_torch(self._torch, kind, arrays[name], is_written, self._device)
                for name, kind in datatypes.items()
            }
            by_position, by_name = self._arrange(tuple(inputs))(inputs)
            ready = time.monotonic()
            try:
                result = self._program.call(*by_position, **by_name)
                self._wait()
            except Exception as error:
                raise self._failure(error) from error
            began = time.monotonic()
            outputs = self._answer(result, [] if is_alone else list(arrays.values()))
        if self._options.cleans_cache and self._device.type == "cuda":
            self._torch.cuda.empty_cache()
        return Called(outputs, ready, began)

    def _enter(self, modes: ExitStack) -> None:
        torch = self._torch
        modes.enter_context(torch.inference_mode() if self._options.inference_mode else torch.no_grad())
        if not self._options.optimizes:
            modes.enter_context(torch.jit.optimized_execution(False))
        if self._device.type == "cuda":
            modes.enter_context(torch.cuda.device(self._device))

    def _wait(self) -> None:
        if self._device.type == "cuda":
            self._torch.cuda.synchronize(self._device)

    def _arrange(self, names: tuple[str, ...]) -> Arrange:
        known = self.arranged.get(names)
        if known is None:
            try:
                known = arrange(self._arguments, names)
            except ValueError as error:
                raise ServeError(
                    Code.INVALID,
                    f"Model '{self._model}': {error}. Name them as forward does, or INPUT__0, INPUT__1 and so on.",
                ) from error
            if len(self.arranged) >= _NAME_SETS:
                self.arranged.clear()
            self.arranged[names] = known
        return known

    def _answer(self, result: object, stacked: list[Array]) -> Tensors:
        """The outputs. They share no memory with what the next batch is stacked into, nor with the module."""
        try:
            found = choose(flatten(result, self._torch.is_tensor), self._outputs)
        except ValueError as error:
            raise ServeError(
                Code.MODEL_FAILED, f"Model '{self._model}': {error}. Correct the model, or its outputs."
            ) from error
        tensors: list[Tensor] = []
        for name, value in found:
            datatype, array = to_array(self._torch, name, value, self._declared.get(name))
            if any(np.may_share_memory(array, one) for one in stacked) or self._is_own(value):
                array = array.copy()
            tensors.append(Tensor(name, datatype, array.shape, array))
        return Tensors(tuple(tensors))

    def _is_own(self, value: Any) -> bool:
        return value.untyped_storage().data_ptr() in self._own

    def _failure(self, error: Exception) -> ServeError:
        text = str(error).strip()
        if any(words in text for words in _NO_MEMORY):
            code = Code.OUT_OF_MEMORY
        else:
            code = Code.MODEL_FAILED
        if "Traceback of TorchScript" in text:
            text = text.splitlines()[-1]  # the reason; above it are the model's own lines
        return ServeError(code, f"Model '{self._model}': PyTorch did not run it: {text}")


class TorchEngine:
    """The descriptor, and what instances in one process share: weights, where a model asks for that."""

    name = "torch"
    takes: frozenset[PayloadKind] = frozenset({PayloadKind.TENSORS})
    isolation: tuple[Isolation, ...] = (Isolation.THREAD, Isolation.PROCESS)
    has_facts = True

    def __init__(self) -> None:
        self._files = ModuleFiles()
        self._process = ProcessSettings()

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Return what a traced file or an exported program tells; of others a note alone. Raises as `Engine.facts`
        says.
        """
        return facts(library(), spec, unknown_parameters(spec.parameters, "torch", KNOWN))

    def open(self, spec: ModelSpec, placement: Placement) -> BatchedRunner[TorchModel]:
        """A model of its own for every instance, unless ENABLE_WEIGHT_SHARING says otherwise."""
        chosen = options(spec)
        texts = [one.name for one in (*spec.inputs, *spec.outputs) if one.datatype is DataType.BYTES]
        if texts:
            raise ServeError(
                Code.LOAD_FAILED,
                f"Model '{spec.name}': '{texts[0]}' is BYTES, and PyTorch has tensors of numbers only. Turn text "
                "into numbers in a handler in front of it.",
            )
        torch = library()
        device = device_of(torch, spec, placement)
        self._process.apply(torch, spec)
        program = self._files.load(torch, spec, device, chosen.shares_weights)
        try:
            return BatchedRunner(spec, TorchModel(torch, program, spec, device, chosen))
        except ServeError as error:  # the names that the configuration gives
            raise ServeError(Code.LOAD_FAILED, error.message) from error


ENGINE = TorchEngine()
