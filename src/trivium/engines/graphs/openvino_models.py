"""OpenVINO: opens its own files (an .xml with the weights in a .bin) and ONNX files, compiled for the processor.

It computes in FP32 unless told otherwise: its own choice on processors with bfloat16 differs in the third digit. An
instance has its own compiled model, with threads that are pinned to no core: several instances would share those.
Source of the names of parameters that Triton's backend has too: its documentation.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trivium.engines.graphs.engine import GraphEngine, OpenedGraph, unopened
from trivium.machine import extras
from trivium.settings.kinds import OneOf, Whole
from trivium.settings.parameters import place_of, read_parameters
from trivium.settings.setting import Setting
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.running import Placement
from trivium.types.spec import Device, ModelSpec, TensorSpec

_PRECISION = Setting(
    "precision",
    OneOf(("f32", "bf16", "f16", "own"), any_case=True),
    "f32",
    help="What it computes in: own leaves it to OpenVINO, which takes bf16 where the processor has it.",
)
_STREAMS = Setting(
    "streams", Whole(1, 9999), "1", help="Runs of one instance that are computed side by side."
)
_HINT = Setting(
    "performance_hint",
    OneOf(("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT", "UNDEFINED"), any_case=True),
    "LATENCY",
    help="What OpenVINO sets the rest by.",
)
_DEVICE = Setting(
    "target_device", default="CPU", help="The device of OpenVINO that compiles it, such as CPU or GPU."
)
OPTIONS = (_PRECISION, _STREAMS, _HINT, _DEVICE)
"""What a model of OpenVINO may be told besides its threads."""

_DATATYPES: Mapping[str, DataType] = {
    **{"f32": DataType.FP32, "f64": DataType.FP64, "f16": DataType.FP16, "bf16": DataType.BF16},
    **{"i8": DataType.INT8, "i16": DataType.INT16, "i32": DataType.INT32, "i64": DataType.INT64},
    **{"u8": DataType.UINT8, "u16": DataType.UINT16, "u32": DataType.UINT32, "u64": DataType.UINT64},
    **{"boolean": DataType.BOOL, "string": DataType.BYTES},
}
"""OpenVINO's names of datatypes."""

_WEIGHTS = ".bin"
_SAVE = "Save it anew with OpenVINO: openvino.save_model(model, 'model.xml')."
_OLD = "Files before version 10 are read no more: convert the model anew with openvino.convert_model."


def _open(spec: ModelSpec, threads: int, placement: Placement | None) -> OpenedGraph:
    try:
        import openvino
    except ImportError as error:
        raise extras.lacking("Models of OpenVINO", error, "openvino") from error
    told = read_parameters(spec, OPTIONS)
    core = openvino.Core()
    path = _file(spec)
    _check_weights(spec, path)
    try:
        model = core.read_model(str(path))
    except Exception as error:
        raise unopened(spec, "OpenVINO", error, _OLD if "version" in said_by(error) else _SAVE) from error
    inputs, outputs = (
        tuple(_described(spec, kind, at, port) for at, port in enumerate(ports))
        for kind, ports in (("input", model.inputs), ("output", model.outputs))
    )
    if placement is None:
        return OpenedGraph(inputs, outputs, _nothing)
    device = _device(spec, core, told, placement)
    try:
        compiled = core.compile_model(model, device, _properties(device, threads, told))
    except Exception as error:
        hint = "Choose another target_device, or save the model anew."
        raise unopened(spec, "OpenVINO", error, hint) from error
    return _prepared(compiled, inputs, outputs)


def _file(spec: ModelSpec) -> Path:
    """Return the file of the graph: the entry, or the one .xml of a folder."""
    place = spec.root / spec.entry
    if not place.is_dir():
        return place
    found = sorted(place.glob("*.xml"))
    if len(found) == 1:
        return found[0]
    there = ", ".join(path.name for path in found) or "none"
    raise ServeError(
        Code.LOAD_FAILED,
        f"Model '{spec.name}': {place} has to have one .xml file of OpenVINO, and has {there}. Name the file itself.",
    )


def _check_weights(spec: ModelSpec, path: Path) -> None:
    """A graph whose weights are missing may be read, and says nothing that helps when it is compiled."""
    weights = path.with_suffix(_WEIGHTS)
    if path.suffix.lower() == ".xml" and not weights.is_file() and b'offset="' in path.read_bytes():
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': {path} names weights, and there is no {weights}, which OpenVINO wrote with it. Put "
            "both files into one folder, under one name.",
        )


def _described(spec: ModelSpec, kind: str, at: int, port: Any) -> TensorSpec:
    names = sorted(port.get_names())
    name = port.get_any_name() if names else f"{kind}_{at}"
    told = port.get_element_type().get_type_name()
    datatype = _DATATYPES.get(told)
    if datatype is None:
        raise ServeError(
            Code.UNSUPPORTED,
            f"Model '{spec.name}': {kind} '{name}' is a {told}; expected one of {', '.join(_DATATYPES)}. Convert it "
            "by openvino.preprocess.PrePostProcessor.",
        )
    shape = port.get_partial_shape()
    if shape.rank.is_dynamic:
        return TensorSpec(name, datatype, (-1,), open=True)
    return TensorSpec(name, datatype, tuple(-1 if one.is_dynamic else one.get_length() for one in shape))


def _device(spec: ModelSpec, core: Any, told: Mapping[str, Any], placement: Placement) -> str:
    device = str(told.get(_DEVICE.name, "GPU" if placement.device is Device.GPU else "CPU")).upper()
    there = list(core.available_devices)
    if device.partition(".")[0].partition(":")[0] not in ("AUTO", "MULTI", "HETERO", "BATCH") and not any(
        one == device or one.startswith(f"{device}.") for one in there
    ):
        raise ServeError(
            Code.UNSUPPORTED,
            f"Model '{spec.name}' is to run on OpenVINO's device {device}{place_of(spec, _DEVICE.name)}, and there is "
            f"{', '.join(there) or 'none'}. Name one of those.",
        )
    return device


def _properties(device: str, threads: int, told: Mapping[str, Any]) -> dict[str, Any]:
    precision = str(told.get(_PRECISION.name, "f32")).lower()
    hint = str(told.get(_HINT.name, "LATENCY")).upper()
    found: dict[str, Any] = {} if hint == "UNDEFINED" else {"PERFORMANCE_HINT": hint}
    if precision != "own":
        found["INFERENCE_PRECISION_HINT"] = precision
    if device == "CPU":
        found |= {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": told.get(_STREAMS.name, 1)}
        found["ENABLE_CPU_PINNING"] = False
    return found


def _nothing(arrays: Mapping[str, Array]) -> Sequence[Array]:
    raise AssertionError("it was opened for what it tells of itself")


def _prepared(compiled: Any, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> OpenedGraph:
    """Return what runs a compiled model by one request, which one thread at a time uses."""
    request = compiled.create_infer_request()
    fed = [
        (port, one.name, one.datatype is DataType.BYTES)
        for port, one in zip(compiled.inputs, inputs, strict=True)
    ]
    fetched = [
        (port, one.datatype is DataType.BYTES) for port, one in zip(compiled.outputs, outputs, strict=True)
    ]

    def run(arrays: Mapping[str, Array]) -> Sequence[Array]:
        given = {port: _as_text(arrays[name]) if is_text else arrays[name] for port, name, is_text in fed}
        results = request.infer(given, share_inputs=True)
        return [_as_bytes(results[port]) if is_text else results[port] for port, is_text in fetched]

    return OpenedGraph(tuple(inputs), tuple(outputs), run, interrupt=request.cancel)


def _as_text(array: Array) -> Array:
    texts = [one.decode() if isinstance(one, bytes) else str(one) for one in array.ravel().tolist()]
    return np.array(texts, np.str_).reshape(array.shape)


def _as_bytes(array: Array) -> Array:
    found = np.empty(array.size, object)
    found[:] = [one if isinstance(one, bytes) else str(one).encode() for one in array.ravel().tolist()]
    return found.reshape(array.shape)


ENGINE = GraphEngine("openvino", "OpenVINO", _open, (), OPTIONS)
