"""The models that the table asks: one that says what it was given, one that does as it is told, one with tensors."""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

MIRROR = """
from djl_python import Output
def handle(inputs):
    if inputs.is_empty():
        return None
    content = inputs.get_content()
    pairs = [[content.key_at(i), bytes(content.value_at(i)).decode("latin-1")] for i in range(content.size())]
    return Output().add_as_json({"properties": dict(inputs.get_properties()), "content": pairs})
"""

OBEDIENT = """
from djl_python import Output
def parts(fails):
    yield "one"
    yield "two"
    if fails:
        raise ValueError("broken off")
def handle(inputs):
    if inputs.is_empty():
        return None
    word = inputs.get_as_string("data")
    if word == "none":
        return None
    if word == "raise":
        raise ValueError("it went wrong")
    if word == "memory":
        raise MemoryError("all is full")
    if word == "type":
        return 5
    if word == "error":
        return Output().error("no such thing")
    if word == "teapot":
        return Output(418, "I am a teapot").add("short and stout").add_property("X-Pot", "tea")
    if word == "created":
        return Output(201, "Made").add("made")
    if word == "json":
        return Output().add_as_json({"a": [1, 2]}).add_property("Content-Type", "application/json")
    if word == "several":
        return Output().add("first", key="a").add("data wins", key="data")
    if word == "first":
        return Output().add("first", key="a").add("second", key="b")
    if word == "empty":
        return Output()
    if word in ("stream", "breaks"):
        return Output().add_stream_content(parts(word == "breaks"), output_formatter=None)
    if word == "jsonlines":
        return Output().add_stream_content(parts(False)).add_property("Content-Type", "application/jsonlines")
    return Output().add(word)
"""


def lay_out(root: Path) -> Path:
    """Write the model store."""
    for name, code in {"mirror": MIRROR, "obedient": OBEDIENT}.items():
        (root / name).mkdir(parents=True)
        (root / name / "model.py").write_text(code)
        (root / name / "serving.properties").write_text("minWorkers=1\nmaxWorkers=1\n")
    (root / "doubled").mkdir()
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 2]) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "doubled", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, root / "doubled" / "doubled.onnx")
    return root
