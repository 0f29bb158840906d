"""PaddlePaddle: opens programs that `paddle.jit.save` and its predecessors wrote, with their parameters.

A predictor knows its tensors by name alone, so that datatypes and dims are read from the program, by
`paddle_programs`. Parameters are called as the calls of `paddle.inference.Config` that they become.
"""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trivium.engines.graphs.engine import GraphEngine, OpenedGraph, unopened
from trivium.engines.graphs.paddle_programs import Program, read_program
from trivium.machine import extras
from trivium.settings.kinds import Truth
from trivium.settings.parameters import read_parameters
from trivium.settings.setting import Setting
from trivium.types.datatype import Array
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.hazards import Hazard
from trivium.types.running import Placement
from trivium.types.spec import ModelSpec, TensorSpec

_ONEDNN = Setting("onednn", Truth(), help="Compute with oneDNN; without it as Paddle chooses.")
_IR = Setting("ir_optim", Truth(), "true", help="Optimise the program before it runs.")
_PASSES = Setting("delete_pass", help="Passes of the optimiser to leave out, with commas between them.")
_OPTIONS = (_ONEDNN, _IR, _PASSES)

_BARE, _BARE_PARAMETERS = "__model__", "__params__"
_PARAMETERS = ".pdiparams"
_SAVE = "Save it anew with Paddle: paddle.jit.save(network, 'inference', input_spec=[...])."
_SUMMARY = "Error Message Summary:"


def _open(spec: ModelSpec, threads: int, placement: Placement | None) -> OpenedGraph:
    told = read_parameters(spec, _OPTIONS)
    paddle = _library()
    path = spec.root / spec.entry
    try:
        program = read_program(paddle, path)
    except Exception as error:
        raise unopened(spec, "Paddle", _short(error), _SAVE) from error
    config = _config(paddle, spec, path, program)
    config.disable_gpu()
    config.disable_glog_info()
    config.set_cpu_math_library_num_threads(threads)
    if _ONEDNN.name in told:
        (config.enable_mkldnn if told[_ONEDNN.name] else config.disable_mkldnn)()
    config.switch_ir_optim(bool(told.get(_IR.name, True)))
    for name in filter(None, map(str.strip, told.get(_PASSES.name, "").split(","))):
        config.delete_pass(name)
    try:
        predictor = paddle.inference.create_predictor(config)
        inputs = _tensors(spec, program.inputs, predictor.get_input_names(), "input")
        outputs = _tensors(spec, program.outputs, predictor.get_output_names(), "output")
    except ServeError:
        raise
    except Exception as error:
        raise unopened(spec, "Paddle", _short(error), _SAVE) from error
    handles = {one.name: predictor.get_input_handle(one.name) for one in inputs}
    results = [predictor.get_output_handle(one.name) for one in outputs]

    def run(arrays: Mapping[str, Array]) -> Sequence[Array]:
        try:
            for name, array in arrays.items():
                handles[name].copy_from_cpu(np.ascontiguousarray(array).reshape(array.shape))
            predictor.run()
            return [one.copy_to_cpu() for one in results]
        except ValueError as error:
            raise ValueError(str(_short(error))) from error

    return OpenedGraph(inputs, outputs, run, (ValueError,))


def _library() -> Any:
    """Return the library, whose import would warn of a compiler that nobody needs here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import paddle
            import paddle.inference
    except ImportError as error:
        raise extras.lacking("Models of PaddlePaddle", error, "paddle") from error
    return paddle


def _config(paddle: Any, spec: ModelSpec, path: Path, program: Program) -> Any:
    """Return what a predictor is made from: a program with the file of its parameters, or a folder of those."""
    weights = path.with_name(_BARE_PARAMETERS) if path.name == _BARE else path.with_suffix(_PARAMETERS)
    if weights.is_file() or not program.parameters:
        return paddle.inference.Config(str(path), str(weights) if weights.is_file() else "")
    if path.name == _BARE and all(path.with_name(name).is_file() for name in program.parameters):
        return paddle.inference.Config(str(path.parent))
    raise ServeError(
        Code.LOAD_FAILED,
        f"Model '{spec.name}': {path} has parameters, and there is no file {weights} with them. Copy that file, too.",
    )


def _tensors(
    spec: ModelSpec, described: Mapping[str, TensorSpec | str], names: Sequence[str], role: str
) -> tuple[TensorSpec, ...]:
    """Return the tensors by a predictor's names, in its order. UNSUPPORTED for one that no client could send."""
    found = []
    for name in names:
        one = described.get(name, "unknown")
        if isinstance(one, str):
            raise ServeError(
                Code.UNSUPPORTED,
                f"Model '{spec.name}': {role} '{name}' of {spec.root / spec.entry} is of the datatype {one}, which "
                f"Paddle does not hand over. Save the model with {role}s of another, such as float32.",
            )
        found.append(one)
    return tuple(found)


def _short(error: Exception) -> Exception:
    """Return an error of Paddle without the calls that led to it, several screens of C++."""
    _, _, summary = said_by(error).rpartition(_SUMMARY)
    return ValueError(" ".join(summary.strip(" \n-").split()))


ENGINE = GraphEngine("paddle", "Paddle", _open, (Hazard.HOLDS, Hazard.QUARRELS), _OPTIONS)
