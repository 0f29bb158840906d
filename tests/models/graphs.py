"""ONNX graphs whose answer is known by construction: boxes, masks, and tables of scores for tokens."""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

_OPSET, _IR_VERSION = 17, 8
_FLOAT, _LONG = TensorProto.FLOAT, TensorProto.INT64

Table = tuple[np.ndarray, np.ndarray]
"""A constant and a slope: the output is constant + slope x the picture's mean."""


def picture_tables(outputs: Mapping[str, Table]) -> ModelProto:
    """Return a graph from `image` [rows, channels, height, width] to tables that grow with the picture's mean."""
    nodes = [helper.make_node("ReduceMean", ["image"], ["mean"], axes=[1, 2, 3], keepdims=0)]
    constants = {}
    declared = []
    for name, (constant, slope) in outputs.items():
        rank = constant.ndim
        constants[f"{name}.shape"] = np.array([-1, *[1] * rank])
        constants[f"{name}.constant"] = constant[None].astype(np.float32)
        constants[f"{name}.slope"] = slope[None].astype(np.float32)
        nodes += [
            helper.make_node("Reshape", ["mean", f"{name}.shape"], [f"{name}.mean"]),
            helper.make_node("Mul", [f"{name}.mean", f"{name}.slope"], [f"{name}.grown"]),
            helper.make_node("Add", [f"{name}.grown", f"{name}.constant"], [name]),
        ]
        declared.append(helper.make_tensor_value_info(name, _FLOAT, ["rows", *constant.shape]))
    image = helper.make_tensor_value_info("image", _FLOAT, ["rows", "channels", "height", "width"])
    return _model(nodes, [image], declared, constants)


def planes(weights: np.ndarray, bias: np.ndarray, has_first: bool) -> ModelProto:
    """Return a graph from `image` [rows, 3, height, width] to a plane of scores for each row of the weights.

    With `has_first` another output goes before it.
    """
    nodes = [helper.make_node("Conv", ["image", "weights", "bias"], ["planes"])]
    image = helper.make_tensor_value_info("image", _FLOAT, ["rows", 3, "height", "width"])
    found = helper.make_tensor_value_info("planes", _FLOAT, ["rows", len(weights), "height", "width"])
    outputs = [found]
    if has_first:
        nodes.append(helper.make_node("Neg", ["planes"], ["first"]))
        outputs.insert(
            0, helper.make_tensor_value_info("first", _FLOAT, ["rows", len(weights), "height", "width"])
        )
    constants = {"weights": weights[:, :, None, None].astype(np.float32), "bias": bias.astype(np.float32)}
    return _model(nodes, [image], outputs, constants)


def lookup(table: np.ndarray, is_summed: bool, has_types: bool = False, output: str = "logits") -> ModelProto:
    """Return a graph from ids to the rows of a table `[words, n]`, or, summed, to the sum of those that are there."""
    names = ["input_ids", "attention_mask", *["token_type_ids"] * has_types]
    inputs = [helper.make_tensor_value_info(name, _LONG, ["rows", "tokens"]) for name in names]
    constants = {"table": table.astype(np.float32)}
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["found" if is_summed else output])]
    shape: list[int | str] = ["rows", "tokens", table.shape[1]]
    if is_summed:
        constants |= {"last": np.array([-1]), "tokens": np.array([1])}
        nodes += [
            helper.make_node("Cast", ["attention_mask"], ["present"], to=_FLOAT),
            helper.make_node("Unsqueeze", ["present", "last"], ["column"]),
            helper.make_node("Mul", ["found", "column"], ["kept"]),
            helper.make_node("ReduceSum", ["kept", "tokens"], [output], keepdims=0),
        ]
        shape = ["rows", table.shape[1]]
    return _model(nodes, inputs, [helper.make_tensor_value_info(output, _FLOAT, shape)], constants)


def _model(
    nodes: list[NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    constants: Mapping[str, np.ndarray],
) -> ModelProto:
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "known", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, ir_version=_IR_VERSION, opset_imports=opsets)
    onnx.checker.check_model(model, full_check=True)
    return model
