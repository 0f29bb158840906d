"""The trained classifier as an ONNX model: `image` [batch, 1, 8, 8] to `probabilities` [batch, 10], FP32.

Built operator by operator, so that the file holds nothing but the network (ONNX operators, opset 17).
"""

from examples.digits.network import STRIDES, Weights
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

_OPSET = 17
_IR_VERSION = 8  # that of opset 17's release: every ONNX Runtime of the last years reads it


def onnx_model(weights: Weights) -> ModelProto:
    """The whole model, checked."""
    tensors = {"dense": weights.dense, "offset": weights.offset}
    nodes = []
    last = "image"
    for i, stride in enumerate(STRIDES):
        tensors |= {f"kernel{i}": weights.kernels[i], f"bias{i}": weights.biases[i]}
        nodes += [
            helper.make_node(
                "Conv", [last, f"kernel{i}", f"bias{i}"], [f"sum{i}"], pads=[1] * 4, strides=[stride] * 2
            ),
            helper.make_node("Relu", [f"sum{i}"], [f"layer{i}"]),
        ]
        last = f"layer{i}"
    nodes += [
        helper.make_node("Flatten", [last], ["features"]),
        helper.make_node("Gemm", ["features", "dense", "offset"], ["scores"], transB=1),
        helper.make_node("Softmax", ["scores"], ["probabilities"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    model = helper.make_model(
        graph,
        producer_name="trivium examples/digits",
        ir_version=_IR_VERSION,
        opset_imports=[helper.make_opsetid("", _OPSET)],
    )
    checker.check_model(model, full_check=True)
    return model
