"""The engines of models of tables: one class, and a row per library that opens its files.

Where one may run follows from what was measured of its library (docs/engines.md): one that a damaged file kills, or
whose files are programs, has a process; the others let go of the interpreter's lock, and run in threads.
"""

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from trivium.codecs.batched_runner import BatchedRunner, Called
from trivium.engines.tabular.estimator import Estimator
from trivium.settings.kinds import OneOf, Whole
from trivium.settings.parameters import read_parameters, unknown_parameters
from trivium.settings.setting import Setting
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.hazards import Hazard, isolation_by, placed_by
from trivium.types.payload import PayloadKind, Tensor, Tensors
from trivium.types.running import Placement
from trivium.types.spec import ModelFacts, ModelSpec, TensorSpec

THREADS = Setting("threads", Whole(1, 9999), "1", help="Threads of one instance.")
DATATYPE = Setting(
    "datatype",
    OneOf(("FP32", "FP64")),
    "FP32",
    help="The datatype of the input; clients of these models send FP32.",
)
COMMON = (THREADS, DATATYPE)
"""What every engine of tables may be told."""

Open = Callable[[ModelSpec, int], Estimator]
"""Opens a model file with so many threads. Raises ServeError."""


class TableModel:
    """One model that has been opened."""

    def __init__(self, estimator: Estimator, spec: ModelSpec) -> None:
        self._estimator = estimator
        self._model = spec.name
        first = 0 if spec.batching.batch_axis else 1
        self._outputs = [
            (tensor.name, estimator.outputs[at].datatype, at, None if tensor.open else tensor.dims[first:])
            for tensor, at in _answered(spec, estimator)
        ]

    def accept(self, payload: Tensors) -> Tensors | ServeError:
        """See `ArrayModel`. One tensor is taken, of rows."""
        if len(payload.items) != 1 or payload.items[0].array.ndim != 2:
            shapes = ", ".join(f"'{one.name}' {list(one.shape)}" for one in payload.items)
            return self._invalid(
                f"a model of tables takes one tensor of rows, [rows, columns], and got {shapes}"
            )
        rows, columns = payload.items[0].array.shape
        features = self._estimator.features
        if not rows:  # a library fails at it in a way of its own
            return self._invalid("the input has no rows")
        if features >= 0 and columns != features:
            return self._invalid(
                f"the model was trained with {features} columns, and the input has {columns}"
            )
        return payload

    def call(self, arrays: dict[str, Array], datatypes: Mapping[str, DataType], is_alone: bool) -> Called:
        """See `ArrayModel`."""
        (rows,) = arrays.values()
        ready = time.monotonic()
        try:
            results = self._estimator.predict(rows)
        except Exception as error:
            is_input = is_alone and isinstance(error, ValueError)  # so scikit-learn says of NaN, for example
            code = Code.OUT_OF_MEMORY if isinstance(error, MemoryError) else Code.MODEL_FAILED
            text = f"Model '{self._model}' did not predict: {said_by(error)}"
            raise ServeError(Code.INVALID if is_input else code, text) from error
        began = time.monotonic()
        return Called(Tensors(tuple(self._tensors(results))), ready, began)

    def interrupt(self) -> None:
        """See `ArrayModel`: none of the libraries has a way to end a call."""

    def close(self) -> None:
        """Drop the model; its memory goes with its last reference."""
        del self._estimator

    def _tensors(self, results: Sequence[Array]) -> Sequence[Tensor]:
        found = []
        for name, datatype, at, dims in self._outputs:
            array = results[at]
            if dims is not None and array.shape[1:] != dims:
                array = array.reshape(len(array), *dims)  # a value per row, or one of a row's values
            if datatype is DataType.BYTES:
                array = _as_bytes(array)
            found.append(
                Tensor(name, datatype, array.shape, np.ascontiguousarray(array).reshape(array.shape))
            )
        return found

    def _invalid(self, why: str) -> ServeError:
        return ServeError(
            Code.INVALID, f"Model '{self._model}': {why}. Send rows as the model was trained with."
        )


def _as_bytes(array: Array) -> Array:
    texts = np.empty(array.size, object)
    texts[:] = [str(one).encode() for one in array.ravel().tolist()]
    return texts.reshape(array.shape)


class TableEngine:
    """A descriptor of one library. `options` are those that its files' models know."""

    takes: frozenset[PayloadKind] = frozenset({PayloadKind.TENSORS})
    has_facts = True

    def __init__(
        self, name: str, opens: Open, hazards: Sequence[Hazard] = (), options: Sequence[Setting] = ()
    ) -> None:
        self.name = name
        self.isolation = isolation_by(hazards)
        self.details = placed_by(hazards)
        self.options = (*COMMON, *options)
        self._opens = opens

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Inputs and outputs as the library tells them. Raises as `Engine.facts` says."""
        told = read_parameters(spec, COMMON)
        estimator = self._opened(spec)
        _check_sizes(spec, estimator)
        notes = unknown_parameters(spec.parameters, self.name, [row.name for row in self.options])
        one = estimator.input(DataType[told.get("datatype", "FP32")])
        return ModelFacts((one,), estimator.outputs, batchable=True, notes=notes, details=self.details)

    def open(self, spec: ModelSpec, placement: Placement) -> BatchedRunner[TableModel]:
        """A model of its own for every instance. Its first prediction, on zeros, is made here."""
        estimator = self._opened(spec)
        _check_sizes(spec, estimator)
        _try(estimator)
        return BatchedRunner(spec, TableModel(estimator, spec))

    def _opened(self, spec: ModelSpec) -> Estimator:
        path = spec.root / spec.entry
        if not path.is_file():
            raise ServeError(Code.LOAD_FAILED, f"Model '{spec.name}': there is no file {path}.")
        return self._opens(spec, read_parameters(spec, COMMON).get("threads", 1))


def _try(estimator: Estimator) -> None:
    """Predict once, on zeros: the first request waits for nothing that the library does once. That zeros raise is no
    fault of the file.
    """
    if estimator.features > 0:
        with contextlib.suppress(Exception):
            estimator.predict(np.zeros((1, estimator.features), np.float32))


def _answered(spec: ModelSpec, estimator: Estimator) -> Sequence[tuple[TensorSpec, int]]:
    """Return the outputs of a spec, each with its place among those of the estimator: by its name, or its own place."""
    own = {tensor.name: place for place, tensor in enumerate(estimator.outputs)}
    found = [(tensor, own.get(tensor.name, place)) for place, tensor in enumerate(spec.outputs)]
    return [(tensor, place) for tensor, place in found if place < len(estimator.outputs)]


def _check_sizes(spec: ModelSpec, estimator: Estimator) -> None:
    """Hold what the spec declares against what the file has, column by column."""
    for kind, declared, dims in (
        *(("inputs", tensor, (estimator.features,)) for tensor in spec.inputs),
        *(("outputs", mine, estimator.outputs[at].dims[1:]) for mine, at in _answered(spec, estimator)),
    ):
        sizes = declared.dims if spec.batching.batch_axis else declared.dims[1:]
        wanted, there = [math.prod(one) for one in (sizes, dims)]
        if not declared.open and wanted >= 0 and there >= 0 and wanted != there:
            at = spec.origin.get(f"{kind}[0].dims")
            raise ServeError(
                Code.LOAD_FAILED,
                f"Model '{spec.name}': {kind[:-1]} '{declared.name}' has dims {list(sizes)}"
                f"{f' ({at})' if at else ''}, and the model file {spec.entry} has {list(dims)}. Write those.",
            )


def unreadable(spec: ModelSpec, library: str, error: Exception, hint: str) -> ServeError:
    """Return the error for a file that a library could not open, with its words and what to do."""
    words = (
        f"Model '{spec.name}': {library} cannot open {spec.root / spec.entry}: {said_by(error)[:800]}. {hint}"
    )
    return ServeError(Code.LOAD_FAILED, words)
