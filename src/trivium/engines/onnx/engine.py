"""ONNX Runtime: opens a .onnx file and runs batches of tensors.

Sessions release the interpreter's lock, so they run in threads. Only models with strings run in processes: ONNX Runtime
turns Python's strings into its own, and back, in single calls that hold the lock however many there are. A batch of one
reaches the session uncopied; larger ones are stacked into memory that is kept.
Source of the parameters: the option names of Triton's onnxruntime backend.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trivium.codecs.batched_runner import BatchedRunner, Called
from trivium.engines.onnx.compute import RECORDS, assigned, told
from trivium.engines.onnx.options import KNOWN, register_operators, run_options, session_options
from trivium.engines.onnx.providers import execution_providers, unused
from trivium.machine import extras
from trivium.machine.control_group import threads
from trivium.settings.parameters import unknown_parameters
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.payload import PayloadKind, Tensor, Tensors
from trivium.types.running import Placement
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


class OnnxModel:
    """One session. `options` are those of every run; setting `terminate` on them ends the run in hand."""

    def __init__(self, session: "onnxruntime.InferenceSession", spec: ModelSpec, options: Any) -> None:
        self._options = options
        self._is_interrupted = False
        self._session = session
        self._outputs = [(tensor.name, tensor.datatype) for tensor in spec.outputs]
        if isinstance(spec.scheduling, SequenceRules):
            states = spec.scheduling.states
            self._outputs += [(state.output, state.datatype) for state in states if not state.is_shown]
        self._names = [name for name, _ in self._outputs]
        self._scalars = self._given = frozenset[str]()
        if spec.batching.batch_axis:
            self._scalars = _scalars(session.get_inputs(), spec.inputs)
            self._given = _scalars(session.get_outputs(), spec.outputs)
        self._takes_text = any(tensor.datatype is DataType.BYTES for tensor in spec.inputs)

    def accept(self, payload: Tensors) -> Tensors | ServeError:
        """See `ArrayModel`: BYTES become the text that a session takes."""
        return _as_text(payload) if self._takes_text else payload

    def call(self, arrays: dict[str, Array], datatypes: Mapping[str, DataType], is_alone: bool) -> Called:
        """See `ArrayModel`. What the session refuses of a single item is its client's fault: INVALID."""
        rows = next((len(array) for array in arrays.values()), 1) if self._scalars or self._given else 0
        for name in self._scalars & arrays.keys():
            arrays[name] = _for_all_rows(name, arrays[name])
        ready = time.monotonic()
        if self._is_interrupted:
            self._is_interrupted = self._options.terminate = False
        try:
            results = self._session.run(self._names, arrays, self._options)
        except Exception as error:
            raise _refusal(error, is_alone) from error
        began = time.monotonic()
        for i, name in enumerate(self._names):
            if name in self._given:
                results[i] = np.broadcast_to(results[i], (rows,))
        pairs = zip(self._outputs, results, strict=True)
        return Called(Tensors(tuple(_output(name, kind, one) for (name, kind), one in pairs)), ready, began)

    def interrupt(self) -> None:
        """See `ArrayModel`. The session looks at this between two of its operators."""
        self._is_interrupted = self._options.terminate = True

    def close(self) -> None:
        """Drop the session; its memory goes with its last reference."""
        del self._session


class OnnxEngine:
    """The descriptor."""

    name = "onnx"
    takes: frozenset[PayloadKind] = frozenset({PayloadKind.TENSORS})
    isolation: tuple[Isolation, ...] = (Isolation.THREAD, Isolation.PROCESS)
    has_facts = True

    def default_isolation(self, spec: ModelSpec) -> Isolation:
        """Return a process for a model with strings, a thread for all others."""
        has_strings = any(tensor.datatype is DataType.BYTES for tensor in (*spec.inputs, *spec.outputs))
        return Isolation.PROCESS if has_strings else Isolation.THREAD

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Inputs and outputs as the file declares them. Raises as `Engine.facts` says."""
        runtime = _runtime()
        options = runtime.SessionOptions()
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        register_operators(options, spec)
        session = _session(spec, options, ["CPUExecutionProvider"])
        inputs = tuple(_described(spec, node, "input") for node in session.get_inputs())
        outputs = tuple(_described(spec, node, "output") for node in session.get_outputs())
        notes = (
            *unknown_parameters(spec.parameters, "onnx", KNOWN),
            *unused(runtime.get_available_providers(), spec),
        )
        batchable = all(tensor.dims[:1] == (-1,) for tensor in (*inputs, *outputs))
        return ModelFacts(inputs, outputs, batchable, notes)

    def open(self, spec: ModelSpec, placement: Placement) -> BatchedRunner[OnnxModel]:
        """A session of its own for every instance."""
        runtime = _runtime()
        options = register_operators(
            session_options(runtime.SessionOptions(), runtime, spec, threads()), spec
        )
        providers = execution_providers(runtime.get_available_providers(), spec, placement)
        model = OnnxModel(_session(spec, options, providers), spec, run_options(runtime, spec))
        return BatchedRunner(spec, model)

    def compute(self, spec: ModelSpec, placement: Placement) -> str:
        """Name the providers that run the nodes of the graph, with how many each. See `TellsCompute`."""
        runtime = _runtime()
        options = register_operators(
            session_options(runtime.SessionOptions(), runtime, spec, threads()), spec
        )
        options.enable_profiling = False
        options.add_session_config_entry(RECORDS, "1")
        session = _session(
            spec, options, execution_providers(runtime.get_available_providers(), spec, placement)
        )
        nodes = assigned(session)
        providers = session.get_providers()
        if nodes is None:
            names = ", ".join(providers)
            return f"compute: ONNX Runtime {runtime.__version__} tries {names}, and does not tell how much each runs"
        return told(providers, nodes, placement)


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise extras.lacking("ONNX models", error, package="onnxruntime") from error
    return onnxruntime


def _session(spec: ModelSpec, options: Any, providers: Sequence[object]) -> "onnxruntime.InferenceSession":
    path = spec.root / spec.entry
    if not path.exists():
        raise ServeError(Code.LOAD_FAILED, f"Model '{spec.name}': there is no file {path}.")
    try:
        return _runtime().InferenceSession(str(path), options, providers=list(providers))
    except Exception as error:
        raise ServeError(
            Code.LOAD_FAILED, f"Model '{spec.name}': ONNX Runtime cannot open {path}: {said_by(error)}"
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


def _as_text(payload: Tensors) -> Tensors | ServeError:
    """The item with its BYTES as the text that a session takes, or the error that it is none."""
    try:
        return Tensors(tuple(map(_decoded, payload.items)), payload.lease)
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


def _scalars(nodes: Sequence[Any], tensors: Sequence[TensorSpec]) -> frozenset[str]:
    """Name the tensors that have no dimension, not even for a batch, and are to have none."""
    bare = {tensor.name for tensor in tensors if tensor.inner == ()}
    return frozenset(node.name for node in nodes if not node.shape and node.name in bare)


def _for_all_rows(name: str, array: Array) -> Array:
    """The one value that the rows of a request have for an input without a batch dimension."""
    values = array.ravel()
    if not (values == values[0]).all():
        raise ServeError(
            Code.INVALID,
            f"Input '{name}' has several values, and the model takes one for all rows. Send those rows in requests of "
            "their own.",
        )
    return values[:1].reshape(())


def _output(name: str, datatype: DataType, array: Array) -> Tensor:
    if datatype is DataType.BYTES:
        array = _objects([text.encode() for text in array.ravel().tolist()], array.shape)
    return Tensor(name, datatype, array.shape, np.ascontiguousarray(array).reshape(array.shape))


def _refusal(error: Exception, is_alone: bool) -> ServeError:
    is_input = type(error).__name__ == "InvalidArgument" and is_alone
    code = Code.INVALID if is_input else Code.MODEL_FAILED
    return ServeError(code, f"ONNX Runtime did not run the model: {error}")


ENGINE = OnnxEngine()
