"""OpenVINO: opens its own model.xml with model.bin, and files of ONNX, TensorFlow and Paddle that it converts itself.

Source of the parameters: the option names of Triton's openvino backend. Computing is exact (FP32) unless HINT_BF16 asks
for less. Runs are asynchronous requests that are waited for: only those can be cancelled.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trivium.codecs.openvino_words import plain_words
from trivium.engines.graphs.engine import GraphEngine, OpenedGraph, unopened
from trivium.machine import extras
from trivium.settings.kinds import OneOf, Truth, Whole
from trivium.settings.parameters import place_of, read_parameters
from trivium.settings.setting import Setting
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.hazards import Hazard
from trivium.types.running import Placement
from trivium.types.spec import ModelSpec, TensorSpec

_YES = Truth({"yes": True, "true": True, "no": False, "false": False})
_WORKERS = Setting(
    "INFERENCE_NUM_THREADS",
    Whole(0, 9999),
    help="Threads of one instance, in place of `threads`; 0 is OpenVINO's own choice.",
)
_STREAMS = Setting("NUM_STREAMS", Whole(0, 9999, ("auto", "numa")), "1", help="Streams of one instance.")
_HINT = Setting(
    "PERFORMANCE_HINT",
    OneOf(("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"), any_case=True),
    "LATENCY",
    help="What OpenVINO tunes for.",
)
_BF16 = Setting("HINT_BF16", _YES, "NO", help="Compute in BF16 where the processor can; answers change.")
_RESHAPES = Setting("RESHAPE_IO_LAYERS", _YES, "NO", help="Give the inputs the dims that are configured.")
_DEVICE = Setting("TARGET_DEVICE", default="CPU", help="The device, by OpenVINO's name.")
_OPTIONS = (_WORKERS, _STREAMS, _HINT, _BF16, _RESHAPES, _DEVICE)

_ANY_BATCH = "batches of any size are computed as they are, with nothing to pad"
_IDLE = {
    "SKIP_OV_DYNAMIC_BATCHSIZE": _ANY_BATCH,
    "ENABLE_BATCH_PADDING": _ANY_BATCH,
    "COMPILATION_NUM_THREADS": "it says how fast a model loads, not what it answers",
    "CPU_BIND_THREAD": "threads are not bound to processors, which instances share",
}
"""Parameters of the original that are not needed here, and why."""
_RENAMED = {
    "CPU_THREADS_NUM": _WORKERS.name,
    "CPU_THROUGHPUT_STREAMS": _STREAMS.name,
    "ENFORCE_BF16": _BF16.name,
}
"""Parameters that the original had once, and no longer reads."""
_EXTENSION = "CPU_EXTENSION_PATH"

_CPU, _NPU, _VIRTUAL = "CPU", "NPU", ("AUTO", "MULTI", "HETERO")
"""Devices by OpenVINO's names. An NPU does not compute in FP32; virtual ones choose among the others."""
_UNFIT = ("shape", "could not create a")
"""Words of errors about tensors that do not fit together: all of OpenVINO's are of one type."""
_SAVE = "Save it anew with OpenVINO: openvino.save_model(model, 'model.xml')."
# Not its strings: the interpreter crashed more often behind them than behind numbers (2026.4; ADR 60).
_DATATYPES: Mapping[str, DataType] = {
    "boolean": DataType.BOOL,
    "u8": DataType.UINT8,
    "u16": DataType.UINT16,
    "u32": DataType.UINT32,
    "u64": DataType.UINT64,
    "i8": DataType.INT8,
    "i16": DataType.INT16,
    "i32": DataType.INT32,
    "i64": DataType.INT64,
    "f16": DataType.FP16,
    "f32": DataType.FP32,
    "f64": DataType.FP64,
}


def _open(spec: ModelSpec, threads: int, placement: Placement | None) -> OpenedGraph:
    told = read_parameters(spec, _OPTIONS)
    if _EXTENSION in spec.parameters:
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': parameter '{_EXTENSION}'{place_of(spec, _EXTENSION)} names a library of layers, and "
            "such are not loaded in this version. Convert the model without them, or run it in a model.py.",
        )
    try:
        import openvino
    except ImportError as error:
        raise extras.lacking("Models of OpenVINO", error, "openvino") from error
    core = openvino.Core()
    device = _device(spec, told.get(_DEVICE.name, "CPU"), core.available_devices)
    model = _shaped(openvino, core, _read(spec, core), spec, bool(told.get(_RESHAPES.name)))
    inputs = _described(spec, model.inputs, "input", spec.inputs)
    outputs = _described(spec, model.outputs, "output", spec.outputs)
    notes = tuple(_notes(spec))
    if placement is None:
        return OpenedGraph(inputs, outputs, lambda _: (), notes=notes)
    try:
        request = core.compile_model(model, device, _properties(told, threads, device)).create_infer_request()
    except Exception as error:
        raise unopened(spec, "OpenVINO", RuntimeError(plain_words(said_by(error))), _SAVE) from error
    call = _Call(request, inputs, outputs)
    return OpenedGraph(inputs, outputs, call.run, (ValueError,), request.cancel, notes)


class _Call:
    """Runs one infer request, again and again."""

    def __init__(self, request: Any, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> None:
        self._request = request
        self._inputs = [one.name for one in inputs]
        self._outputs = range(len(outputs))

    def run(self, arrays: Mapping[str, Array]) -> Sequence[Array]:
        """See `OpenedGraph`. What does not fit together by its shape is the input's fault."""
        given = {place: arrays[name] for place, name in enumerate(self._inputs) if name in arrays}
        try:
            self._request.start_async(given, share_inputs=True)
            self._request.wait()
        except RuntimeError as error:
            text = plain_words(said_by(error))
            is_unfit = any(words in text.lower() for words in _UNFIT)
            raise (ValueError if is_unfit else RuntimeError)(text) from error
        return [np.array(self._request.get_output_tensor(place).data) for place in self._outputs]


def _read(spec: ModelSpec, core: Any) -> Any:
    path = spec.root / spec.entry
    try:
        return core.read_model(str(path))
    except Exception as error:
        weights = path.with_suffix(".bin")
        hint = f"Its weights are in {weights}, which is not there: copy that file, too."
        lacks = path.suffix == ".xml" and not weights.exists()
        raise unopened(
            spec, "OpenVINO", RuntimeError(plain_words(said_by(error))), hint if lacks else _SAVE
        ) from error


def _device(spec: ModelSpec, device: str, there: Sequence[str]) -> str:
    """Return the device that is named, if it is there; virtual ones choose among those."""
    first = device.upper().partition(":")[0]
    if first in _VIRTUAL or first.partition(".")[0] in {one.partition(".")[0] for one in there}:
        return device.upper()
    raise ServeError(
        Code.LOAD_FAILED,
        f"Model '{spec.name}': {_DEVICE.name} is '{device}'{place_of(spec, _DEVICE.name)}, and OpenVINO finds "
        f"{', '.join(there)} here. Name one of those, or remove the parameter.",
    )


def _properties(told: Mapping[str, Any], threads: int, device: str) -> dict[str, Any]:
    """Return what a model is compiled with. Without bounds each instance would take all processors."""
    made: dict[str, Any] = {"PERFORMANCE_HINT": told.get(_HINT.name, "LATENCY")}
    if not device.startswith(_NPU):
        made["INFERENCE_PRECISION_HINT"] = "bf16" if told.get(_BF16.name) else "f32"
    streams = told.get(_STREAMS.name, 1)
    bounds = {
        "NUM_STREAMS": streams.upper() if isinstance(streams, str) else streams,
        "INFERENCE_NUM_THREADS": told.get(_WORKERS.name, threads),
        "ENABLE_CPU_PINNING": False,
    }
    if device == _CPU:
        return {**made, **bounds}
    if device.partition(":")[0] in _VIRTUAL:
        made["DEVICE_PROPERTIES"] = {_CPU: bounds}
    return made


def _shaped(library: Any, core: Any, model: Any, spec: ModelSpec, is_told: bool) -> Any:
    """Return the model in the dims that are configured, if that is asked for; else with its first dimension opened
    where the model is configured to batch and its file has a size there. As it was where it cannot be opened.
    """
    ranks = [port.partial_shape.rank for port in model.inputs]
    if is_told:
        shapes = _configured(library, spec, model)
    elif spec.batching.batch_axis and all(rank.is_static and rank.get_length() for rank in ranks):
        shapes = {port: _opened(library, port.partial_shape) for port in model.inputs}
        if all(port.partial_shape[0].is_dynamic for port in model.inputs):
            return model
    else:
        return model
    try:
        model.reshape(shapes)
    except Exception as error:
        if is_told:
            hint = f"Correct the dims, or remove {_RESHAPES.name}."
            raise unopened(spec, "OpenVINO", RuntimeError(plain_words(said_by(error))), hint) from error
        return _read(spec, core)
    if is_told or all(_is_opened(port.partial_shape) for port in model.outputs):
        return model
    return _read(spec, core)


def _configured(library: Any, spec: ModelSpec, model: Any) -> dict[Any, Any]:
    wanted = {one.name: one for one in spec.inputs}
    first = [-1] if spec.batching.batch_axis else []
    shapes = {}
    for port in model.inputs:
        tensor = wanted.get(_name(port, spec.inputs))
        if tensor is not None:
            dims = tensor.dims if tensor.inner is None else tensor.inner
            shapes[port] = library.PartialShape([*first, *dims])
    return shapes


def _opened(library: Any, shape: Any) -> Any:
    return library.PartialShape([library.Dimension(-1), *list(shape)[1:]])


def _is_opened(shape: Any) -> bool:
    return bool(shape.rank.is_static and shape.rank.get_length() and shape[0].is_dynamic)


def _described(
    spec: ModelSpec, ports: Sequence[Any], role: str, named: Sequence[TensorSpec]
) -> tuple[TensorSpec, ...]:
    return tuple(_tensor(spec, port, role, named) for port in ports)


def _tensor(spec: ModelSpec, port: Any, role: str, named: Sequence[TensorSpec]) -> TensorSpec:
    name, kind, shape = _name(port, named), port.element_type.get_type_name(), port.partial_shape
    datatype = _DATATYPES.get(kind)
    if datatype is None or shape.rank.is_dynamic:
        what = "of any number of dimensions" if datatype else kind
        raise ServeError(
            Code.UNSUPPORTED,
            f"Model '{spec.name}': {role} '{name}' of {spec.root / spec.entry} is a tensor {what}; expected one of "
            f"{', '.join(_DATATYPES)} with so many dimensions. Convert the model with such {role}s.",
        )
    return TensorSpec(name, datatype, tuple(-1 if dim.is_dynamic else dim.get_length() for dim in shape))


def _name(port: Any, named: Sequence[TensorSpec]) -> str:
    """Return that of a tensor's names by which it is configured, else the first; its node's where it has none."""
    names = sorted(port.get_names())
    known = [one.name for one in named if one.name in names]
    return str((known or names or [port.node.friendly_name])[0])


def _notes(spec: ModelSpec) -> Sequence[str]:
    idle = [
        f"parameter '{name}'{place_of(spec, name)} changes nothing: {why}"
        for name, why in _IDLE.items()
        if name in spec.parameters
    ]
    renamed = [
        f"parameter '{name}'{place_of(spec, name)} is no longer read by OpenVINO's backend: write {new}"
        for name, new in _RENAMED.items()
        if name in spec.parameters
    ]
    return [*idle, *renamed]


ENGINE = GraphEngine(
    "openvino", "OpenVINO", _open, (Hazard.QUARRELS,), _OPTIONS, (*_IDLE, *_RENAMED, _EXTENSION)
)
