"""PaddlePaddle: opens what paddle.jit.save writes: a program (.json, or .pdmodel before version 3) and its parameters.

It holds the interpreter's lock while it computes, and another library that was loaded before it may end its process:
an instance has a process of its own. What a file has for inputs and outputs is read from the program itself, since a
predictor tells their names alone.
"""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trivium.engines.graphs.engine import GraphEngine, OpenedGraph, unopened
from trivium.files import open_file
from trivium.machine import extras
from trivium.settings.kinds import SWITCH
from trivium.settings.parameters import read_parameters
from trivium.settings.setting import Setting
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError
from trivium.types.hazards import Hazard
from trivium.types.running import Placement
from trivium.types.spec import Device, ModelSpec, TensorSpec

_ONEDNN = Setting("onednn", SWITCH, "true", help="Whether the kernels of oneDNN are used on a processor.")
_PASSES = Setting("ir_optim", SWITCH, "true", help="Whether the program is optimised before it runs.")
_REMOVED = Setting("remove_passes", help="Passes of the optimisation that are left out, by commas.")
OPTIONS = (_ONEDNN, _PASSES, _REMOVED)
"""What a model of Paddle may be told besides its threads."""

PROGRAMS = {"inference.json": "", "inference.pdmodel": "", "__model__": "__params__"}
"""Programs by which a folder is one of Paddle's, the newest first -> its parameters, where they are not called so."""

_PARAMETERS = ".pdiparams"
_SAVE = "Save it anew with Paddle: paddle.jit.save(layer, 'inference', input_spec=[...])."
_NAMES: Mapping[str, DataType] = {
    **{"f32": DataType.FP32, "f64": DataType.FP64, "f16": DataType.FP16, "bf16": DataType.BF16},
    **{"i8": DataType.INT8, "i16": DataType.INT16, "i32": DataType.INT32, "i64": DataType.INT64},
    **{"ui8": DataType.UINT8, "bool": DataType.BOOL},
}
"""Names of datatypes in a program of JSON."""

_NUMBERS: Mapping[int, DataType] = {
    **{0: DataType.BOOL, 1: DataType.INT16, 2: DataType.INT32, 3: DataType.INT64, 4: DataType.FP16},
    **{5: DataType.FP32, 6: DataType.FP64, 20: DataType.UINT8, 21: DataType.INT8, 22: DataType.BF16},
}
"""Numbers of datatypes in a program before version 3."""

_Ends = tuple[list[TensorSpec], list[TensorSpec]]


def _open(spec: ModelSpec, threads: int, placement: Placement | None) -> OpenedGraph:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a compiler's cache that nobody asked for
            from paddle import inference
    except ImportError as error:
        raise extras.lacking("Models of PaddlePaddle", error, "paddle") from error
    program, parameters = _files(spec)
    try:
        inputs, outputs = _ends(spec, program)
        predictor = inference.create_predictor(
            _config(inference, (program, parameters), threads, spec, placement)
        )
    except ServeError:
        raise
    except Exception as error:
        raise unopened(spec, "Paddle", error, _SAVE) from error
    return _prepared(predictor, inputs, outputs)


def _files(spec: ModelSpec) -> tuple[Path, Path]:
    """Return program and parameters. Raises LOAD_FAILED where one of them is missing."""
    place = spec.root / spec.entry
    if place.is_dir():
        found = [place / name for name in PROGRAMS if (place / name).is_file()]
        if not found:
            there = f"Model '{spec.name}': {place} has none of {', '.join(PROGRAMS)}. {_SAVE}"
            raise ServeError(Code.LOAD_FAILED, there)
        place = found[0]
    named = PROGRAMS.get(place.name)
    parameters = place.parent / named if named else place.with_suffix(_PARAMETERS)
    if not parameters.is_file():
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': {place} is a program of Paddle, and there is no {parameters}, which has its "
            "parameters. Put both files into one folder, under one name.",
        )
    return place, parameters


def _config(
    inference: Any, files: Sequence[Path], threads: int, spec: ModelSpec, placement: Placement | None
) -> Any:
    told = read_parameters(spec, OPTIONS)
    config = inference.Config(*map(str, files))
    config.disable_glog_info()
    if placement is not None and placement.device is Device.GPU:
        config.enable_use_gpu(256, placement.device_id)
    else:
        config.disable_gpu()
        config.set_cpu_math_library_num_threads(threads)
        if not told.get(_ONEDNN.name, True):
            config.disable_onednn()
    config.switch_ir_optim(told.get(_PASSES.name, True))
    for one in str(told.get(_REMOVED.name, "")).split(","):
        if one.strip():
            config.delete_pass(one.strip())
    return config


def _ends(spec: ModelSpec, program: Path) -> _Ends:
    """Return inputs and outputs as the program tells them."""
    with open_file(program) as file:
        text = file.read()
    tell = _of_json(spec, text) if text[:1] == b"{" else _of_message(spec, text)
    ends: _Ends = ([], [])
    for is_input, tensor in tell:
        ends[0 if is_input else 1].append(tensor)
    if not ends[1]:
        raise ServeError(
            Code.LOAD_FAILED, f"Model '{spec.name}': {program} is no program with outputs. {_SAVE}"
        )
    return ends


def _of_json(spec: ModelSpec, text: bytes) -> Iterator[tuple[bool, TensorSpec]]:
    for one in json.loads(text)["program"]["regions"][0]["blocks"][0]["ops"]:
        kind = one["#"].rpartition(".")[2]
        if kind in ("data", "fetch"):
            name = next(each["AT"]["D"] for each in one["A"] if each["N"] == "name")
            (datatype, dims, *_) = one["O"][0]["TT"]["D"]
            word = datatype["#"].rpartition("t_")[2]
            yield kind == "data", _tensor(spec, name, _NAMES.get(word), word, dims)


def _of_message(spec: ModelSpec, text: bytes) -> Iterator[tuple[bool, TensorSpec]]:
    from paddle.base.proto import framework_pb2

    block = framework_pb2.ProgramDesc.FromString(text).blocks[0]
    variables = {one.name: one for one in block.vars}
    for one in block.ops:
        if one.type in ("feed", "fetch"):
            (side,) = one.outputs if one.type == "feed" else one.inputs
            name = side.arguments[0]
            tensor = variables[name].type.dense_tensor.tensor
            found = _NUMBERS.get(tensor.data_type)
            yield one.type == "feed", _tensor(spec, name, found, f"type {tensor.data_type}", tensor.dims)


def _tensor(
    spec: ModelSpec, name: str, datatype: DataType | None, word: str, dims: Sequence[int]
) -> TensorSpec:
    if datatype is None:
        raise ServeError(
            Code.UNSUPPORTED,
            f"Model '{spec.name}': the tensor '{name}' is a {word}; expected one of {', '.join(_NAMES)}. Save it with "
            "such inputs and outputs.",
        )
    return TensorSpec(name, datatype, tuple(-1 if one < 0 else int(one) for one in dims))


def _prepared(predictor: Any, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> OpenedGraph:
    """Return what runs a predictor, which one thread at a time uses; its own names come in its own order."""
    fed = {name: predictor.get_input_handle(name) for name in predictor.get_input_names()}
    given = {one.name: one.datatype.dtype for one in inputs}
    fetched = [predictor.get_output_handle(name) for name in predictor.get_output_names()]
    named = [one for one in inputs if one.name in fed]
    ends = {one.name: one for one in outputs}
    told = [ends.get(name) or outputs[place] for place, name in enumerate(predictor.get_output_names())]

    def run(arrays: Mapping[str, Array]) -> Sequence[Array]:
        for name, handle in fed.items():
            handle.copy_from_cpu(np.ascontiguousarray(arrays[name], given.get(name)))
        predictor.run()
        return [handle.copy_to_cpu() for handle in fetched]

    return OpenedGraph(tuple(named), tuple(told), run, faults=(ValueError,))


ENGINE = GraphEngine("paddle", "Paddle", _open, (Hazard.HOLDS, Hazard.QUARRELS), OPTIONS)
