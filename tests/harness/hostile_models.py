"""Models that give back what they get, of each kind of instance: the identity engine, a handler, and ONNX. One of ONNX
makes text of numbers.
"""

from pathlib import Path

from onnx import NodeProto, TensorProto, helper
from tests.fixtures import models
from tests.harness.python_models import place

TYPES = {"text": ("STRING", TensorProto.STRING), "real": ("FP32", TensorProto.FLOAT)}
_GIVE_BACK = """
    def execute(self, requests):
        return [answer(y=of(request, "x")) for request in requests]
"""


def write_models(root: Path) -> Path:
    """`identity_text`, `identity_real`, and so on for `handler` and `onnx`: x comes back as y. From `onnx_spelt` it is
    numbers as text.
    """
    for name, (datatype, kind) in TYPES.items():
        models.identity(root, f"identity_{name}", datatype=datatype, dims="-1")
        ends = "".join(
            f'{way} {{ name: "{end}" data_type: TYPE_{datatype} dims: -1 }} ' for way, end in _ENDS
        )
        place(root, f"handler_{name}", _GIVE_BACK, "", ends)
        config = root / f"handler_{name}" / "config.pbtxt"
        config.write_text(config.read_text().replace("max_batch_size: 4", "max_batch_size: 0"))
        _onnx(root, f"onnx_{name}", helper.make_node("Identity", ["x"], ["y"]), kind, kind)
    spelt = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING)
    _onnx(root, "onnx_spelt", spelt, TensorProto.FLOAT, TensorProto.STRING)
    return root


_ENDS = (("input", "x"), ("output", "y"))


def _onnx(root: Path, model: str, node: NodeProto, takes: int, gives: int) -> None:
    folder = root / model / "1"
    folder.mkdir(parents=True)
    x, y = (helper.make_tensor_value_info(end, kind, ["n"]) for end, kind in (("x", takes), ("y", gives)))
    graph = helper.make_graph([node], "g", [x], [y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    names = {TensorProto.FLOAT: "FP32", TensorProto.STRING: "STRING"}
    (root / model / "config.pbtxt").write_text(
        'backend: "onnxruntime" max_batch_size: 0 '
        f'input {{ name: "x" data_type: TYPE_{names[takes]} dims: -1 }} '
        f'output {{ name: "y" data_type: TYPE_{names[gives]} dims: -1 }}'
    )
