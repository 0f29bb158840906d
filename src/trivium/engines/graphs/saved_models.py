"""TensorFlow: opens SavedModels and graphs with their weights in them, by their signatures.

A model has a session of its own, with threads of its own, and runs by one prepared call: what a session or a function
of TensorFlow does in Python around each run takes longer than a small model. TensorFlow lets go of the interpreter's
lock while it runs.
"""

import json
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from trivium.engines.graphs.engine import GraphEngine, OpenedGraph, unopened
from trivium.engines.graphs.tensorflow_operations import Starts, judge
from trivium.files import open_file
from trivium.machine import extras
from trivium.machine.quiet_libraries import without_lines
from trivium.settings.kinds import SWITCH, Whole
from trivium.settings.parameters import place_of, read_parameters
from trivium.settings.setting import Setting
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError
from trivium.types.running import Placement
from trivium.types.spec import Device, ModelSpec, TensorSpec
from trivium.types.trust import OPERATIONS

NAME = "tensorflow"
FILE = "saved_model.pb"
_SERVE, _SERVING = "serve", "serving_default"
SIGNATURE = Setting("signature", default=_SERVING, help="The signature of a SavedModel that is served.")
TAGS = Setting("tags", default=_SERVE, help="The tags of its graph, with commas between; empty for none.")
INTER_OP = Setting(
    "inter_op_threads", Whole(1, 9999), "1", help="Operations of one instance that run at the same time."
)
INIT_OPS = Setting(
    "init_ops_file",
    help="A JSON file whose list `init_ops` names operations that are run once, after loading.",
)
TRUST = Setting(
    OPERATIONS,
    SWITCH,
    "false",
    help="Serve a graph whose operations read or write files, or reach for the network.",
)
_OPTIONS = (SIGNATURE, TAGS, INTER_OP, INIT_OPS, TRUST)
KERAS = (".keras", ".h5", ".hdf5")
"""Ends of the files of Keras."""

GRAPHS = (".pb", ".graphdef")
"""Ends of the files of frozen graphs."""

_KERAS_HINT = (
    "Load it by keras.models.load_model, write a SavedModel by model.export('folder'), and serve that folder."
)
_INIT_KEYS = ("__saved_model_init_op", "__saved_model_train_op")
_EXPORT = (
    "Export the model anew: model.export('folder'), or tf.saved_model.save(model, 'folder', signatures=...)."
)
_GRAPH_HINT = f"Give a frozen graph, or the folder of a SavedModel, whose file is called {FILE}. {_EXPORT}"
_DATATYPES: Mapping[int, DataType] = {
    **{1: DataType.FP32, 2: DataType.FP64, 3: DataType.INT32, 4: DataType.UINT8, 5: DataType.INT16},
    **{6: DataType.INT8, 7: DataType.BYTES, 9: DataType.INT64, 10: DataType.BOOL, 14: DataType.BF16},
    **{17: DataType.UINT16, 19: DataType.FP16, 22: DataType.UINT32, 23: DataType.UINT64},
}
"""TensorFlow's numbers of datatypes."""

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
_IDLE = frozenset({*_PLACEHOLDERS, "PlaceholderWithDefault", "Const", "NoOp", "Assert"})
"""Operations whose results nobody asks for, though nothing else takes them."""

_NOISE = (
    b"WARNING: All log messages before absl",
    *(b"I0000 ", b"W0000 ", b"E0000 "),
    b"To enable the following instructions",
)
"""How lines begin that TensorFlow prints while it is imported, whatever its variables say."""

_ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_OVERRIDE_GLOBAL_THREADPOOL": "1"}
"""Keeps its log to itself, and lets each session have threads of its own: else the first one decides for all."""

_importing = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Tensor:
    """One input or output: its name for clients, and the tensor of the graph."""

    name: str
    tensor: str
    datatype: DataType
    dims: tuple[int, ...] | None


@dataclass(frozen=True, eq=False, slots=True)
class _Loaded:
    """A graph in a session, with what is fed and fetched."""

    session: Any
    inputs: tuple[_Tensor, ...]
    outputs: tuple[_Tensor, ...]
    notes: tuple[str, ...] = ()


def _open(spec: ModelSpec, threads: int, placement: Placement | None) -> OpenedGraph:
    told = read_parameters(spec, _OPTIONS)
    place = spec.root / spec.entry
    if place.suffix.lower() in KERAS:
        raise _refused(spec, "it is a file of Keras, which holds layers and no graph", _KERAS_HINT)
    library = _library()
    folder = place if place.is_dir() else place.parent if place.name == FILE else None
    opens = _frozen if folder is None else _saved
    try:
        loaded = opens(
            library, spec, folder or place, told, _session(library, spec, threads, told, placement)
        )
    except ServeError:
        raise
    except Exception as error:
        raise unopened(spec, "TensorFlow", error, _GRAPH_HINT if folder is None else _EXPORT) from error
    run = _prepared(library, loaded)
    outputs = [_described(spec, "output", one) for one in _with_ranks(loaded, run, placement is None)]
    return OpenedGraph(
        tuple(_described(spec, "input", one) for one in loaded.inputs),
        tuple(outputs),
        run,
        (library.errors.InvalidArgumentError, library.errors.OutOfRangeError),
        notes=loaded.notes,
    )


@cache
def _imported() -> Any:
    given = {name: value for name, value in _ENVIRONMENT.items() if name not in os.environ}
    os.environ.update(given)
    with without_lines(_NOISE):
        import tensorflow

        tensorflow.get_logger().setLevel("ERROR")
        with tensorflow.Graph().as_default(), tensorflow.compat.v1.Session() as session:
            session.run(tensorflow.constant(1))
    for name in given:  # both are read once, and concern nobody else's processes
        os.environ.pop(name, None)
    return tensorflow


def _library() -> Any:
    try:
        with _importing:
            return _imported()
    except ImportError as error:
        raise extras.lacking("Models of TensorFlow", error, "tensorflow") from error


_MakeSession = Callable[[Any], Any]
"""Makes a session of a graph."""


def _session(
    library: Any, spec: ModelSpec, threads: int, told: Mapping[str, Any], placement: Placement | None
) -> _MakeSession:
    is_gpu = placement is not None and placement.device is Device.GPU
    if is_gpu and not library.config.list_physical_devices("GPU"):
        raise ServeError(
            Code.UNSUPPORTED,
            f"Model '{spec.name}' is to run on a GPU, and this TensorFlow sees none. Install the package "
            "tensorflow[and-cuda] in place of tensorflow-cpu, or let it run on the CPU.",
        )
    v1 = library.compat.v1
    config = v1.ConfigProto(
        intra_op_parallelism_threads=threads,
        inter_op_parallelism_threads=told.get(INTER_OP.name, 1),
        use_per_session_threads=True,
        allow_soft_placement=True,
        device_count={} if is_gpu else {"GPU": 0},
    )
    config.gpu_options.allow_growth = True
    return lambda graph: v1.Session(graph=graph, config=config)


def _saved(
    library: Any, spec: ModelSpec, folder: Path, told: Mapping[str, Any], session_of: _MakeSession
) -> _Loaded:
    """Load a SavedModel. Raises ServeError for one that is not served, and what the library raises."""
    from tensorflow.core.protobuf import saved_model_pb2

    with open_file(folder / FILE) as file:
        saved = saved_model_pb2.SavedModel.FromString(file.read())
    meta, notes = _meta_graph(spec, saved.meta_graphs, told)
    signature, more = _signature(spec, meta.signature_def, told)
    inputs, outputs = (
        tuple(_of_signature(spec, name, side[name]) for name in sorted(side))
        for side in (signature.inputs, signature.outputs)
    )
    if not outputs:
        raise _refused(spec, "its signature has no outputs", _EXPORT)
    for one in meta.asset_file_def:
        if PurePath(one.filename).name != one.filename:
            raise _refused(spec, f"it names the file {one.filename[:80]} among its own", _EXPORT)
    begins = [one for key in ("saved_model_main_op", "legacy_init_op") for one in _nodes(meta, key)]
    begins += [
        one.name
        for key in _INIT_KEYS[:1]
        if key in meta.signature_def
        for one in meta.signature_def[key].outputs.values()
    ]
    starts = Starts(
        [one.tensor for one in outputs],
        begins,
        [meta.saver_def.restore_op_name],
        [one.tensor_info.name for one in meta.asset_file_def],
    )
    _check_operations(spec, meta.graph_def, starts, told)
    graph = library.Graph()
    session = session_of(graph)
    with graph.as_default():
        library.compat.v1.saved_model.loader.load(session, list(meta.meta_info_def.tags), str(folder))
    _initialise(spec, session, told)
    return _Loaded(session, inputs, outputs, (*notes, *more))


def _nodes(meta: Any, key: str) -> Sequence[str]:
    return list(meta.collection_def[key].node_list.value) if key in meta.collection_def else []


def _meta_graph(spec: ModelSpec, graphs: Sequence[Any], told: Mapping[str, Any]) -> tuple[Any, Sequence[str]]:
    """Return the graph with the tags that are asked for; without the word of anybody the only one there is."""
    asked = TAGS.name in told
    wanted = {one.strip() for one in told.get(TAGS.name, _SERVE).split(",")} - {""}
    found = [one for one in graphs if set(one.meta_info_def.tags) == wanted]
    if found:
        return found[0], ()
    there = "; ".join(",".join(one.meta_info_def.tags) or "none" for one in graphs)
    if len(graphs) == 1 and not asked:
        return graphs[0], (f"the graph has no tag {_SERVE}: the only one is served, with the tags: {there}",)
    if not graphs:
        raise _refused(spec, "it holds no graph", _EXPORT)
    words = f"no graph has exactly the tags {','.join(sorted(wanted)) or 'none'}{place_of(spec, TAGS.name)}"
    raise _refused(spec, words, f"Write the tags of one: {there}.")


def _signature(
    spec: ModelSpec, signatures: Mapping[str, Any], told: Mapping[str, Any]
) -> tuple[Any, Sequence[str]]:
    """Return the signature that is asked for; without the word of anybody the only one there is."""
    name = told.get(SIGNATURE.name, _SERVING)
    if name in signatures:
        return signatures[name], ()
    there = sorted(one for one in signatures if one not in _INIT_KEYS)
    if len(there) == 1 and SIGNATURE.name not in told:
        note = f"the model has no signature {_SERVING}: the only one is served, {there[0]}"
        return signatures[there[0]], (note,)
    if not there:
        raise _refused(spec, "it has no signature, and so no inputs and outputs", _EXPORT)
    words = f"it has no signature '{name}'{place_of(spec, SIGNATURE.name)}"
    hint = f"Set {SIGNATURE.name} to one of {', '.join(there)}."
    raise _refused(spec, words, hint)


def _of_signature(spec: ModelSpec, name: str, info: Any) -> _Tensor:
    if not info.name:
        hint = "Export it with plain tensors: tf.sparse.to_dense, RaggedTensor.to_tensor."
        raise _refused(spec, f"the tensor '{name}' of its signature is sparse or ragged", hint)
    shape = info.tensor_shape
    dims = None if shape.unknown_rank else tuple(max(one.size, -1) for one in shape.dim)
    return _Tensor(name, info.name, _datatype(spec, name, info.dtype), dims)


def _datatype(spec: ModelSpec, name: str, number: int) -> DataType:
    found = _DATATYPES.get(number)
    if found is None:
        kinds = ", ".join(one.wire for one in _DATATYPES.values())
        words = f"the tensor '{name}' has TensorFlow's datatype {number}, which no client has a word for"
        raise _refused(spec, words, f"Export it with tensors of {kinds}.")
    return found


def _frozen(
    library: Any, spec: ModelSpec, path: Path, told: Mapping[str, Any], session_of: _MakeSession
) -> _Loaded:
    """Load a graph whose weights are in it. Its outputs are those that nothing in it takes, or that are named."""
    from tensorflow.core.framework import graph_pb2

    with open_file(path) as file:
        definition = graph_pb2.GraphDef.FromString(file.read())
    if not definition.node:
        raise _refused(spec, "it is no graph of TensorFlow, or an empty one", _GRAPH_HINT)
    _check_operations(spec, definition, Starts(), told)
    graph = library.Graph()
    with graph.as_default():
        library.graph_util.import_graph_def(definition, name="")
    operations = graph.get_operations()
    own = _results(operations)
    outputs = {_short(one.name): one for one in own} | _named(graph, spec.outputs)
    named = _named(graph, spec.inputs)
    inputs = _needed(outputs.values(), {one.op.name for one in named.values()}) | named
    if not outputs:
        raise _refused(spec, "its graph has no outputs", _GRAPH_HINT)
    session = session_of(graph)
    _initialise(spec, session, told)
    fed, fetched = (
        tuple(_of_graph(spec, name, one) for name, one in side.items()) for side in (inputs, outputs)
    )
    return _Loaded(session, fed, fetched)


def _results(operations: Sequence[Any]) -> Sequence[Any]:
    """Return the tensors that nothing takes: those that come from an input, where there are such."""
    ends = [
        one
        for one in operations
        if one.type not in _IDLE and not any(tensor.consumers() for tensor in one.outputs)
    ]
    fed: set[str] = set()
    for one in operations:
        if one.type in _PLACEHOLDERS or any(tensor.op.name in fed for tensor in one.inputs):
            fed.add(one.name)
    chosen = [one for one in ends if one.name in fed] or ends
    return [tensor for one in chosen for tensor in one.outputs]


def _needed(outputs: Iterable[Any], given: Collection[str]) -> dict[str, Any]:
    """Return the placeholders that outputs come from, where the operations that are `given` come from nothing."""
    found: dict[str, Any] = {}
    seen, waiting = set(given), [one.op for one in outputs]
    while waiting:
        one = waiting.pop()
        if one.name in seen:
            continue
        seen.add(one.name)
        if one.type in _PLACEHOLDERS:
            found[one.name] = one.outputs[0]
        waiting += [*(tensor.op for tensor in one.inputs), *one.control_inputs]
    return dict(sorted(found.items()))


def _named(graph: Any, tensors: Sequence[TensorSpec]) -> dict[str, Any]:
    """Return the tensors of a graph that a configuration names, wherever they are in it."""
    found = {}
    for one in tensors:
        with suppress(KeyError, ValueError):
            found[one.name] = graph.get_tensor_by_name(one.name if ":" in one.name else f"{one.name}:0")
    return found


def _short(name: str) -> str:
    return name.removesuffix(":0")


def _of_graph(spec: ModelSpec, name: str, tensor: Any) -> _Tensor:
    shape = tensor.shape
    dims = None if shape.rank is None else tuple(-1 if one is None else int(one) for one in shape.as_list())
    return _Tensor(name, tensor.name, _datatype(spec, name, tensor.dtype.as_datatype_enum), dims)


def _check_operations(spec: ModelSpec, graph: Any, starts: Starts, told: Mapping[str, Any]) -> None:
    """Refuse what cannot run here, and what may reach for more than its inputs, unless it is trusted."""
    from tensorflow.python.framework import op_def_registry

    judged = judge(graph, starts, op_def_registry.get)
    if judged.unknown:
        what = _listed(judged.unknown)
        hint = (
            "They are another library's, or of a TensorFlow before 2. Convert the model to ONNX, where its converter "
            "knows them (python -m tf2onnx.convert), or save it without them."
        )
        raise _refused(spec, f"TensorFlow here does not know the operations {what}", hint)
    if judged.code:
        hint = "Write it with TensorFlow's own operations, or serve it by a handler in Python."
        what = _listed(judged.code)
        raise _refused(spec, f"it calls Python functions, which are not in its files: {what}", hint)
    if judged.outside and not told.get(TRUST.name):
        hint = (
            f"If you trust the model, set {TRUST.name}=true: `--engine-parameters {NAME}.{TRUST.name}=true`, or a "
            "parameter of config.pbtxt."
        )
        words = f"its operations may read or write files or reach for the network: {_listed(judged.outside)}"
        raise _refused(spec, words, hint)


def _listed(found: Mapping[str, str]) -> str:
    named = [f"{operation} (node {node})" for operation, node in list(found.items())[:5]]
    return ", ".join(named) + (" and others" if len(found) > 5 else "")


def _initialise(spec: ModelSpec, session: Any, told: Mapping[str, Any]) -> None:
    """Run the operations that a file of the model names: in the version's folder, else in the model's."""
    name = told.get(INIT_OPS.name, "")
    if not name:
        return
    where = place_of(spec, INIT_OPS.name)
    places = [folder / name for folder in (spec.root, spec.root.parent)]
    path = next((one for one in places if one.is_file()), None)
    if PurePath(name).name != name or path is None:
        hint = "Give the name of a file in the version's folder or in the model's."
        raise _refused(spec, f"there is no {INIT_OPS.name} '{name}'{where}", hint)
    try:
        with open_file(path) as file:
            wanted = [str(one) for one in json.load(file)["init_ops"]]
        operations = [session.graph.get_operation_by_name(one) for one in wanted]
    except (ValueError, KeyError, TypeError) as error:
        hint = 'Write {"init_ops": ["NAME", ...]} with operations of the graph.'
        raise _refused(spec, f"{path}{where} does not name operations of the graph: {error}", hint) from error
    session.run(operations)


def _refused(spec: ModelSpec, found: str, hint: str) -> ServeError:
    words = f"Model '{spec.name}': {spec.root / spec.entry} is not served by TensorFlow: {found}. {hint}"
    return ServeError(Code.LOAD_FAILED, words)


def _prepared(library: Any, loaded: _Loaded) -> Callable[[Mapping[str, Array]], Sequence[Array]]:
    """Return the run of a graph: inputs by name, one array for each output."""
    from tensorflow.core.protobuf import config_pb2

    feeds, fetches = [[one.tensor for one in side] for side in (loaded.inputs, loaded.outputs)]
    options = config_pb2.CallableOptions(feed=feeds, fetch=fetches)
    make = getattr(loaded.session, "_make_callable_from_options", None)
    call = loaded.session.make_callable(fetches, feeds) if make is None else make(options)
    names = [one.name for one in loaded.inputs]
    brain = library.bfloat16.as_numpy_dtype
    half_inputs = {one.name for one in loaded.inputs if one.datatype is DataType.BF16}
    half_outputs = [at for at, one in enumerate(loaded.outputs) if one.datatype is DataType.BF16]

    def run(arrays: Mapping[str, Array]) -> Sequence[Array]:
        if half_inputs:
            arrays = {name: one.view(brain) if name in half_inputs else one for name, one in arrays.items()}
        found = [np.asarray(one) for one in call(*[arrays[name] for name in names])]
        for at in half_outputs:
            found[at] = found[at].view(np.uint16)
        return [_as_objects(one) if one.dtype.kind in "SU" else one for one in found]

    return run


def _as_objects(array: Array) -> Array:
    """Return single strings, which come as such, as arrays of bytes objects."""
    found = np.empty(array.shape, object)
    found[...] = array.item() if not array.shape else array
    return found


def _with_ranks(
    loaded: _Loaded, run: Callable[[Mapping[str, Array]], Sequence[Array]], is_asked: bool
) -> Sequence[_Tensor]:
    """Return the outputs. Where somebody asks for them, the model runs once, on zeros: what ends the process does so
    there, and the outputs whose shape the file leaves open have as many dims as they had then.
    """
    outputs = loaded.outputs
    if any(one.dims is None for one in loaded.inputs) or not is_asked:
        return outputs
    zeros = {one.name: _zeros(one) for one in loaded.inputs}
    with suppress(Exception):  # an input that was made up may be none
        found = run(zeros)
        outputs = tuple(
            replace(one, dims=(-1,) * array.ndim) if one.dims is None else one
            for one, array in zip(outputs, found, strict=True)
        )
    return outputs


def _zeros(tensor: _Tensor) -> Array:
    shape = [1 if size < 0 else size for size in tensor.dims or ()]
    zeros = np.zeros(shape, tensor.datatype.dtype)
    if tensor.datatype is DataType.BYTES:
        zeros[...] = b""
    return zeros


def _described(spec: ModelSpec, kind: str, tensor: _Tensor) -> TensorSpec:
    """Return the tensor in whole dims. Those that neither the file nor a run tells are the configuration's to say."""
    dims = tensor.dims
    if dims is None:
        declared = spec.inputs if kind == "input" else spec.outputs
        mine = next((one for one in declared if one.name == tensor.name), None)
        if mine is None:
            if kind == "output":
                return TensorSpec(tensor.name, tensor.datatype, (-1,))
            hint = (
                "Save it with an input_signature that says how many dimensions there are, or name them in the "
                "config.pbtxt of a Triton repository."
            )
            words = f"nothing tells how many dimensions the {kind} '{tensor.name}' has"
            raise _refused(spec, words, hint)
        dims = (*([-1] if spec.batching.batch_axis else []), *(mine.inner or mine.dims))
    return TensorSpec(tensor.name, tensor.datatype, dims)


ENGINE = GraphEngine(NAME, "TensorFlow", _open, options=_OPTIONS)
