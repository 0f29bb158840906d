"""ONNX Runtime: opens a .onnx file and runs batches of tensors.

Sessions release the interpreter's lock, so they run in threads. A batch of one reaches the session uncopied;
larger ones are stacked into memory that is kept.
Source of the parameters: the option names of Triton's onnxruntime backend.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trivium.codecs.ragged import RaggedRules
from trivium.codecs.rows import Stacker, split
from trivium.engines.onnx.options import run_options, session_options, unknown_parameters
from trivium.engines.onnx.providers import execution_providers, lacking
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import PayloadKind, Tensor, Tensors
from trivium.types.running import Batch, Outcome, Placement, Ran
from trivium.types.schedules import Sequence as SequenceRules
from trivium.types.spec import Isolation, ModelFacts, ModelSpec, TensorSpec

if TYPE_CHECKING:
    import onnxruntime

DATATYPES: Mapping[str, DataType] = {
    "tensor(bool)": DataType.BOOL,
    "tensor(uint8)": DataType.UINT8,
    "tensor(uint16)": DataType.UINT16,
    "tensor(uint32)": DataType.UINT32,
    "tensor(uint64)": DataType.UINT64,
    "tensor(int8)": DataType.INT8,
    "tensor(int16)": DataType.INT16,
    "tensor(int32)": DataType.INT32,
    "tensor(int64)": DataType.INT64,
    "tensor(float16)": DataType.FP16,
    "tensor(float)": DataType.FP32,
    "tensor(double)": DataType.FP64,
    "tensor(string)": DataType.BYTES,
}


class OnnxRunner:
    """One session. `run` is called by one thread at a time."""

    def __init__(self, session: "onnxruntime.InferenceSession", spec: ModelSpec, options: Any = None) -> None:
        """`options` are those of every run."""
        self._more = () if options is None else (options,)
        self._session = session
        self._outputs = [(tensor.name, tensor.datatype) for tensor in spec.outputs]
        if isinstance(spec.scheduling, SequenceRules):
            states = spec.scheduling.states
            self._outputs += [(state.output, state.datatype) for state in states if not state.is_shown]
        self._names = [name for name, _ in self._outputs]
        self._splits = spec.batching.batch_axis
        self._takes_text = any(tensor.datatype is DataType.BYTES for tensor in spec.inputs)
        self._stacker = Stacker()
        rules = RaggedRules(spec)
        self._ragged = None if rules.are_none else rules

    def run(self, batch: Batch) -> Ran:
        """An outcome per item. What the session refuses of a single item is its client's fault: INVALID."""
        outcomes: list[Outcome] = [operation.payload for operation in batch.operations]
        if self._takes_text:
            outcomes = [_as_text(outcome) for outcome in outcomes]
        good = [i for i, outcome in enumerate(outcomes) if isinstance(outcome, Tensors)]
        if not good:
            return Ran(outcomes)
        items = [outcome for outcome in outcomes if isinstance(outcome, Tensors)]
        feeds = self._feeds(items)
        ready = time.monotonic()
        try:
            results = self._session.run(self._names, feeds, *self._more)
        except Exception as error:
            raise _refusal(error, len(items)) from error
        began = time.monotonic()
        outputs = Tensors(
            tuple(
                _output(name, kind, array) for (name, kind), array in zip(self._outputs, results, strict=True)
            )
        )
        rows = [batch.rows[i] for i in good]
        if self._ragged is not None:
            answers = self._ragged.divide(outputs, items, rows)
        else:
            answers = split(outputs, rows) if self._splits else [outputs]
        for i, answer in zip(good, answers, strict=True):
            outcomes[i] = answer
        return Ran(outcomes, ready, began)

    def _feeds(self, items: list[Tensors]) -> dict[str, Array]:
        if self._ragged is not None:
            return self._ragged.stack(self._stacker, items)
        return self._stacker.stack(items, [tensor.name for tensor in items[0].items])

    def close(self) -> None:
        """Drop the session; its memory goes with its last reference."""
        del self._session


class OnnxEngine:
    """The descriptor."""

    name = "onnx"
    takes: frozenset[PayloadKind] = frozenset({PayloadKind.TENSORS})
    isolation: tuple[Isolation, ...] = (Isolation.THREAD,)
    has_facts = True

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Inputs and outputs as the file declares them. Raises as `Engine.facts` says."""
        runtime = _runtime()
        options = runtime.SessionOptions()
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        session = _session(spec, options, ["CPUExecutionProvider"])
        inputs = tuple(_described(spec, node, "input") for node in session.get_inputs())
        outputs = tuple(_described(spec, node, "output") for node in session.get_outputs())
        notes = (*unknown_parameters(spec), *lacking(runtime.get_available_providers(), spec))
        batchable = all(tensor.dims[:1] == (-1,) for tensor in (*inputs, *outputs))
        return ModelFacts(inputs, outputs, batchable, notes)

    def open(self, spec: ModelSpec, placement: Placement) -> OnnxRunner:
        """A session of its own for every instance."""
        runtime = _runtime()
        options = session_options(runtime.SessionOptions(), runtime, spec)
        providers = execution_providers(runtime.get_available_providers(), spec, placement)
        return OnnxRunner(_session(spec, options, providers), spec, run_options(runtime, spec))


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ServeError(
            Code.UNSUPPORTED,
            "ONNX models need ONNX Runtime, which is not installed. Install it with: pip install 'trivium[onnx]'",
        ) from error
    return onnxruntime


def _session(spec: ModelSpec, options: Any, providers: Sequence[object]) -> "onnxruntime.InferenceSession":
    path = spec.root / spec.entry
    if not path.exists():
        raise ServeError(Code.LOAD_FAILED, f"Model '{spec.name}': there is no file {path}.")
    try:
        return _runtime().InferenceSession(str(path), options, providers=list(providers))
    except Exception as error:
        raise ServeError(
            Code.LOAD_FAILED, f"Model '{spec.name}': ONNX Runtime cannot open {path}: {error}"
        ) from error


def _described(spec: ModelSpec, node: Any, role: str) -> TensorSpec:
    datatype = DATATYPES.get(node.type)
    if datatype is None:
        raise ServeError(
            Code.UNSUPPORTED,
            f"Model '{spec.name}': {role} '{node.name}' is a {node.type}; expected a plain tensor of one of "
            f"{', '.join(DATATYPES)}. Export the model with such {role}s (with skl2onnx: zipmap=False).",
        )
    dims = tuple(dim if isinstance(dim, int) and dim >= 0 else -1 for dim in node.shape)
    return TensorSpec(node.name, datatype, dims)


def _as_text(outcome: Outcome) -> Outcome:
    """The item with its BYTES as the text that a session takes, or the error that it is none."""
    assert isinstance(outcome, Tensors)
    try:
        return Tensors(tuple(map(_decoded, outcome.items)), outcome.lease)
    except UnicodeDecodeError as error:
        return ServeError(
            Code.INVALID,
            f"An element of a BYTES input is not UTF-8 text ({error.reason} at byte {error.start}), and strings "
            "of ONNX models are text; encode it, for example as base64, if the model expects that.",
        )


def _decoded(tensor: Tensor) -> Tensor:
    if tensor.datatype is not DataType.BYTES:
        return tensor
    texts = [element.decode() for element in tensor.array.ravel().tolist()]
    return Tensor(tensor.name, tensor.datatype, tensor.shape, _objects(texts, tensor.shape))


def _objects(values: list[object], shape: tuple[int, ...]) -> Array:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)


def _output(name: str, datatype: DataType, array: Array) -> Tensor:
    if datatype is DataType.BYTES:
        array = _objects([text.encode() for text in array.ravel().tolist()], array.shape)
    return Tensor(name, datatype, array.shape, np.ascontiguousarray(array).reshape(array.shape))


def _refusal(error: Exception, items: int) -> ServeError:
    is_input = type(error).__name__ == "InvalidArgument" and items == 1
    code = Code.INVALID if is_input else Code.MODEL_FAILED
    return ServeError(code, f"ONNX Runtime did not run the model: {error}")


ENGINE = OnnxEngine()
