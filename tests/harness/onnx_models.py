"""Tiny ONNX models, written to a folder, and the specs that serve them."""

from dataclasses import replace

import onnx
from onnx import TensorProto, helper
from tests.harness.virtual_models import make_spec

from trivium.engines.onnx.engine import ENGINE
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.running import Batch, Placement
from trivium.types.spec import Batching, Isolation

FLOAT, TEXT = TensorProto.FLOAT, TensorProto.STRING
HERE = Placement("m_0", Isolation.THREAD)
ROWS = Batching(batch_axis=True, max_rows=8, merge=True)


def tensor(name, kind=FLOAT, *dims):
    return helper.make_tensor_value_info(name, kind, list(dims))


def save(folder, nodes, inputs, outputs):
    """Write model.onnx and return the spec of what it says itself."""
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return described(folder)


def described(folder, **fields):
    spec = replace(make_spec(inputs=(), outputs=(), **fields), root=folder, engine="onnx", entry="model.onnx")
    facts = ENGINE.facts(spec)
    return replace(spec, inputs=facts.inputs, outputs=facts.outputs)


def identity(folder, kind, *dims):
    node = helper.make_node("Identity", ["x"], ["y"])
    return save(folder, [node], [tensor("x", kind, *dims)], [tensor("y", kind, *dims)])


def batched(spec, batching=ROWS):
    """The spec as a format finishes it for a model with a batch axis."""
    inputs, outputs = (
        tuple(replace(one, dims=one.dims[1:]) for one in side) for side in (spec.inputs, spec.outputs)
    )
    return replace(spec, inputs=inputs, outputs=outputs, batching=batching)


def run(spec, *asked, runner=None):
    """The outcomes of one batch of items, each given as arrays by name."""
    runner = runner or ENGINE.open(spec, HERE)
    rows = [len(next(iter(arrays.values()))) if spec.batching.batch_axis else 1 for arrays in asked]
    operations = [Infer(model="m", payload=Tensors.of(arrays)) for arrays in asked]
    return runner.run(Batch(list(range(len(asked))), operations, rows)).outcomes


def looping(folder, gives=TensorProto.INT64):
    """Save a model that counts to its input x, one by one: an int64 of shape [1] in, one out, or its text."""
    one = helper.make_node(
        "Constant", [], ["one"], value=helper.make_tensor("v", TensorProto.INT64, [1], [1])
    )
    body = helper.make_graph(
        [
            one,
            helper.make_node("Add", ["sum_in", "one"], ["sum_out"]),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body",
        [
            tensor("i", TensorProto.INT64),
            tensor("go", TensorProto.BOOL),
            tensor("sum_in", TensorProto.INT64, 1),
        ],
        [tensor("on", TensorProto.BOOL), tensor("sum_out", TensorProto.INT64, 1)],
    )
    nodes = [
        helper.make_node(
            "Constant", [], ["zero"], value=helper.make_tensor("z", TensorProto.INT64, [1], [0])
        ),
        helper.make_node(
            "Constant", [], ["yes"], value=helper.make_tensor("c", TensorProto.BOOL, [], [True])
        ),
        helper.make_node("Loop", ["x", "yes", "zero"], ["sum"], body=body),
        helper.make_node("Cast", ["sum"], ["y"], to=gives),
    ]
    return save(folder, nodes, [tensor("x", TensorProto.INT64, 1)], [tensor("y", gives, 1)])
