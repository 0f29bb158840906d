"""Models that give back what they get, of each kind of instance: the identity engine, a handler, and ONNX."""

from pathlib import Path

from onnx import TensorProto, helper
from tests.fixtures import models
from tests.harness.python_models import place

TYPES = {"text": ("STRING", TensorProto.STRING), "real": ("FP32", TensorProto.FLOAT)}
_GIVE_BACK = """
    def execute(self, requests):
        return [answer(y=of(request, "x")) for request in requests]
"""


def write_models(root: Path) -> Path:
    """`identity_text`, `identity_real`, and so on for `handler` and `onnx`: x comes back as y."""
    for name, (datatype, kind) in TYPES.items():
        models.identity(root, f"identity_{name}", datatype=datatype, dims="-1")
        ends = "".join(
            f'{way} {{ name: "{end}" data_type: TYPE_{datatype} dims: -1 }} ' for way, end in _ENDS
        )
        place(root, f"handler_{name}", _GIVE_BACK, "", ends)
        config = root / f"handler_{name}" / "config.pbtxt"
        config.write_text(config.read_text().replace("max_batch_size: 4", "max_batch_size: 0"))
        folder = root / f"onnx_{name}" / "1"
        folder.mkdir(parents=True)
        values = [helper.make_tensor_value_info(end, kind, ["n"]) for _, end in _ENDS]
        graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", values[:1], values[1:])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        (folder / "model.onnx").write_bytes(made.SerializeToString())
        (root / f"onnx_{name}" / "config.pbtxt").write_text(
            f'backend: "onnxruntime" max_batch_size: 0 {ends}'
        )
    return root


_ENDS = (("input", "x"), ("output", "y"))
