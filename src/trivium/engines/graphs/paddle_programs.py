"""Reads what a program of Paddle takes and gives: names, datatypes and dims, from both forms that Paddle writes.

The newer form is JSON; the older one, `.pdmodel` and `__model__`, is read by Paddle itself. Raises what the readers
raise.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trivium.types.datatype import DataType
from trivium.types.spec import TensorSpec

_DATATYPES: Mapping[str, DataType] = {
    "bool": DataType.BOOL,
    "uint8": DataType.UINT8,
    "int8": DataType.INT8,
    "int32": DataType.INT32,
    "int64": DataType.INT64,
    "float16": DataType.FP16,
    "float32": DataType.FP32,
    "float64": DataType.FP64,
}
"""A datatype as Paddle calls it -> ours, where a predictor hands it over."""
_SHORT = {
    "t_bool": "bool",
    "t_ui8": "uint8",
    "t_i8": "int8",
    "t_i16": "int16",
    "t_i32": "int32",
    "t_i64": "int64",
    "t_f16": "float16",
    "t_bf16": "bfloat16",
    "t_f32": "float32",
    "t_f64": "float64",
}
"""The newer form's words for them."""
_ENTRIES, _EXIT, _PARAMETER = ("data", "feed"), "fetch", "p"


@dataclass(frozen=True, slots=True)
class Program:
    """Tensors by their names, and the names of parameters. A tensor of a datatype that is not handed over is that
    datatype's name.
    """

    inputs: Mapping[str, TensorSpec | str]
    outputs: Mapping[str, TensorSpec | str]
    parameters: Sequence[str]


def read_program(paddle: Any, path: Path) -> Program:
    """Return what a file tells."""
    data = path.read_bytes()
    if data.lstrip()[:1] == b"{":
        return read_newer(json.loads(data))
    return _older(paddle, data)


def read_newer(told: Any) -> Program:
    """Return what a program in the newer form tells: operations of one block, each with its results' types."""
    inputs: dict[str, TensorSpec | str] = {}
    outputs: dict[str, TensorSpec | str] = {}
    parameters = []
    for one in told["program"]["regions"][0]["blocks"][0]["ops"]:
        kind = one["#"].rpartition(".")[2]
        if kind == _PARAMETER:
            parameters.append(str(one["A"][-1]))
        elif kind in _ENTRIES or kind == _EXIT:
            name = next(each["AT"]["D"] for each in one["A"] if each["N"] == "name")
            element, dims = one["O"][0]["TT"]["D"][:2]
            code = element["#"].rpartition(".")[2]
            side = outputs if kind == _EXIT else inputs
            side[name] = _tensor(name, _SHORT.get(code, code), dims)
    return Program(inputs, outputs, parameters)


def _older(paddle: Any, data: bytes) -> Program:
    with paddle.pir_utils.OldIrGuard():
        block = paddle.static.deserialize_program(data).global_block()
        ends = [(one.type, one.input("X") + one.output("Out")) for one in block.ops]
        named = {
            kind: [names[place] for which, names in ends if which == kind]
            for kind, place in (("feed", 1), ("fetch", 0))
        }
        tensors = [{name: _variable(block.var(name)) for name in named[kind]} for kind in ("feed", "fetch")]
        parameters = [
            name for name, one in block.vars.items() if one.persistable and name not in ("feed", "fetch")
        ]
    return Program(tensors[0], tensors[1], parameters)


def _variable(variable: Any) -> TensorSpec | str:
    return _tensor(variable.name, str(variable.dtype).rpartition(".")[2], variable.shape)


def _tensor(name: str, datatype: str, dims: Sequence[int]) -> TensorSpec | str:
    ours = _DATATYPES.get(datatype)
    return datatype if ours is None else TensorSpec(name, ours, tuple(max(int(dim), -1) for dim in dims))
