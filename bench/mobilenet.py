"""A MobileNetV2-shaped ONNX model with seeded random weights: 11 classes, input FP32 [n,3,224,224].

Only its shape matters here: the layers, and so the work and the bytes, are those of a picture classifier that
people serve (Sandler et al. 2018, table 2, with batch normalisation folded into the convolutions).
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CLASSES = 11
BLOCKS = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
]
"""Expansion, channels, repeats, stride of the first repeat."""


class Graph:
    """Collects nodes and weights; each method returns the name of its output."""

    def __init__(self, seed: int = 0) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(seed)

    def node(self, kind: str, inputs: list[str], **attributes: object) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def weight(self, *shape: int, fan_in: int) -> str:
        name = f"w_{len(self.weights)}"
        values = self._random.normal(0, (2 / fan_in) ** 0.5, shape).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, value: float) -> str:
        name = f"c_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(value, np.float32), name))
        return name

    def conv(
        self, source: str, channels: tuple[int, int], kernel: int, stride: int = 1, group: int = 1
    ) -> str:
        into, out = channels
        fan_in = into // group * kernel * kernel
        weight = self.weight(out, into // group, kernel, kernel, fan_in=fan_in)
        bias = self.weight(out, fan_in=fan_in)
        pads = [kernel // 2] * 4
        return self.node("Conv", [source, weight, bias], strides=[stride] * 2, pads=pads, group=group)

    def relu6(self, source: str) -> str:
        return self.node("Clip", [source, self.constant(0.0), self.constant(6.0)])

    def block(self, source: str, into: int, out: int, expansion: int, stride: int) -> str:
        wide = into * expansion
        path = source
        if expansion > 1:
            path = self.relu6(self.conv(path, (into, wide), 1))
        path = self.relu6(self.conv(path, (wide, wide), 3, stride, group=wide))
        path = self.conv(path, (wide, out), 1)
        return self.node("Add", [source, path]) if stride == 1 and into == out else path


def build(path: Path) -> None:
    """Write the model to `path`."""
    graph = Graph()
    last = graph.relu6(graph.conv("input", (3, 32), 3, 2))
    channels = 32
    for expansion, out, repeats, stride in BLOCKS:
        for repeat in range(repeats):
            last = graph.block(last, channels, out, expansion, stride if repeat == 0 else 1)
            channels = out
    last = graph.relu6(graph.conv(last, (channels, 1280), 1))
    last = graph.node("Flatten", [graph.node("GlobalAveragePool", [last])])
    last = graph.node(
        "Gemm", [last, graph.weight(1280, CLASSES, fan_in=1280), graph.weight(CLASSES, fan_in=1280)]
    )
    graph.nodes[-1].output[0] = "output"
    value = helper.make_tensor_value_info
    proto = helper.make_graph(
        graph.nodes,
        "mobilenet_v2",
        [value("input", TensorProto.FLOAT, ["n", 3, 224, 224])],
        [value("output", TensorProto.FLOAT, ["n", CLASSES])],
        graph.weights,
    )
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
