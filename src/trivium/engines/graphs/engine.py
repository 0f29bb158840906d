"""The engines of graphs: one class, and a row per library that opens its files.

A library is asked for little: what a file's inputs and outputs are, and to compute outputs from arrays. Batches, names,
datatypes and errors are the same for all of them, and so are here.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trivium.codecs.batched_runner import BatchedRunner, Called
from trivium.files import oddity
from trivium.settings.kinds import Whole
from trivium.settings.parameters import read_parameters, unknown_parameters
from trivium.settings.setting import Setting
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.hazards import Hazard, isolation_by, placed_by
from trivium.types.payload import PayloadKind, Tensor, Tensors
from trivium.types.running import Placement
from trivium.types.spec import ModelFacts, ModelSpec, TensorSpec

THREADS = Setting("threads", Whole(1, 9999), "1", help="Threads of one instance.")


@dataclass(frozen=True, eq=False, slots=True)
class OpenedGraph:
    """A model that a library has opened, with its tensors in whole dims: -1 where a size is open.

    `run` takes an array for each input, by name, and returns one for each of `outputs`, in their order; BYTES are
    arrays of bytes objects both ways. It raises what the library raises. `faults` are those of its errors that mean
    the input of a client. `interrupt` has the run in hand raise soon, where the library can; called from any thread.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    run: Callable[[Mapping[str, Array]], Sequence[Array]]
    faults: tuple[type[Exception], ...] = ()
    interrupt: Callable[[], None] = lambda: None
    notes: tuple[str, ...] = ()


OpenGraph = Callable[[ModelSpec, int, Placement | None], OpenedGraph]
"""Opens a model's file or folder with so many threads; without a placement for its facts alone. Raises ServeError."""


class GraphModel:
    """One graph, with the outputs that its spec names."""

    def __init__(self, library: str, graph: OpenedGraph, spec: ModelSpec) -> None:
        self._library = library
        self._graph = graph
        self._model = spec.name
        places = {tensor.name: place for place, tensor in enumerate(graph.outputs)}
        self._outputs = [(one.name, one.datatype, places[one.name]) for one in spec.outputs]

    def accept(self, payload: Tensors) -> Tensors | ServeError:
        """See `ArrayModel`: what the core has let through is taken as it is."""
        return payload

    def call(self, arrays: dict[str, Array], datatypes: Mapping[str, DataType], is_alone: bool) -> Called:
        """See `ArrayModel`. What the library calls an input's fault is the client's where a request ran alone."""
        ready = time.monotonic()
        try:
            results = self._graph.run(arrays)
        except Exception as error:
            is_input = is_alone and isinstance(error, self._graph.faults)
            code = Code.OUT_OF_MEMORY if isinstance(error, MemoryError) else Code.MODEL_FAILED
            text = f"Model '{self._model}': {self._library} did not run it: {said_by(error)[:800]}"
            raise ServeError(Code.INVALID if is_input else code, text) from error
        began = time.monotonic()
        return Called(Tensors(tuple(self._tensors(results))), ready, began)

    def interrupt(self) -> None:
        """See `ArrayModel`."""
        self._graph.interrupt()

    def close(self) -> None:
        """Drop the graph; its memory goes with its last reference."""
        del self._graph

    def _tensors(self, results: Sequence[Array]) -> Sequence[Tensor]:
        found = []
        for name, datatype, place in self._outputs:
            array = results[place]
            found.append(
                Tensor(name, datatype, array.shape, np.ascontiguousarray(array).reshape(array.shape))
            )
        return found


class GraphEngine:
    """A descriptor of one library, called `library` in errors. `options` are those that its files' models know; of the
    parameters named in `judged` the library's own row says what they mean.
    """

    takes: frozenset[PayloadKind] = frozenset({PayloadKind.TENSORS})
    has_facts = True

    def __init__(
        self,
        name: str,
        library: str,
        opens: OpenGraph,
        hazards: Sequence[Hazard] = (),
        options: Sequence[Setting] = (),
        judged: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.isolation = isolation_by(hazards)
        self.details = placed_by(hazards)
        self.options = (THREADS, *options)
        self._library = library
        self._opens = opens
        self._judged = judged

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Inputs and outputs as the file declares them. Raises as `Engine.facts` says."""
        graph = self._opened(spec, None)
        notes = (
            *unknown_parameters(spec.parameters, self.name, [row.name for row in self.options], self._judged),
            *graph.notes,
        )
        batchable = all(tensor.dims[:1] == (-1,) for tensor in (*graph.inputs, *graph.outputs))
        return ModelFacts(graph.inputs, graph.outputs, batchable, notes, details=self.details)

    def open(self, spec: ModelSpec, placement: Placement) -> BatchedRunner[GraphModel]:
        """A model of its own for every instance. Raises LOAD_FAILED for tensors that the file has not."""
        graph = self._opened(spec, placement)
        for kind, named, there in (
            ("input", spec.inputs, graph.inputs),
            ("output", spec.outputs, graph.outputs),
        ):
            names = [one.name for one in there]
            if lacks := [one.name for one in named if one.name not in names]:
                raise ServeError(
                    Code.LOAD_FAILED,
                    f"Model '{spec.name}': there is no {kind} '{lacks[0]}' in {spec.root / spec.entry}, which has "
                    f"{', '.join(names)}. Name one of those.",
                )
        return BatchedRunner(spec, GraphModel(self._library, graph, spec))

    def _opened(self, spec: ModelSpec, placement: Placement | None) -> OpenedGraph:
        path = spec.root / spec.entry
        if not path.exists():
            raise ServeError(Code.LOAD_FAILED, f"Model '{spec.name}': there is no file {path}.")
        if odd := oddity(path):
            words = (
                f"Model '{spec.name}': {path} is {odd}; expected a file or a folder of {self._library}. Put the model "
                "there."
            )
            raise ServeError(Code.LOAD_FAILED, words)
        told = read_parameters(spec, [THREADS])
        return self._opens(spec, told.get("threads", 1), placement)


def unopened(spec: ModelSpec, library: str, error: Exception, hint: str) -> ServeError:
    """Return the error for a file that a library could not open, with its words and what to do."""
    words = (
        f"Model '{spec.name}': {library} cannot open {spec.root / spec.entry}: {said_by(error)[:800]}. {hint}"
    )
    return ServeError(Code.LOAD_FAILED, words)
