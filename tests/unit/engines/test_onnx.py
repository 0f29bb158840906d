"""ONNX Runtime on tiny models made here: datatypes, shapes, batches, and whose fault is whose."""

import gc
import sys
import weakref
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from tests.harness.onnx_models import (
    FLOAT,
    HERE,
    ROWS,
    TEXT,
    batched,
    described,
    identity,
    run,
    save,
    tensor,
)

from trivium.engines.onnx.engine import DATATYPES, ENGINE
from trivium.types.batch_shapes import BatchInput, BatchOutput, BatchShapes, ShapeFact
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Tensor, Tensors
from trivium.types.running import Batch, Placement
from trivium.types.spec import Device, Isolation, ModelFacts, TensorSpec

KINDS = {
    "bool": TensorProto.BOOL,
    "uint8": TensorProto.UINT8,
    "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64,
    "int8": TensorProto.INT8,
    "int16": TensorProto.INT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "float16": TensorProto.FLOAT16,
    "float32": FLOAT,
    "float64": TensorProto.DOUBLE,
}


def refusal(call, *args):
    with pytest.raises(ServeError) as caught:
        call(*args)
    return caught.value


@pytest.fixture
def add(tmp_path):
    """y = a + b over [rows, 2]; z = a - b."""
    nodes = [helper.make_node("Add", ["a", "b"], ["y"]), helper.make_node("Sub", ["a", "b"], ["z"])]
    sides = [[tensor(name, FLOAT, "n", 2) for name in names] for names in ("ab", "yz")]
    return save(tmp_path, nodes, *sides)


def test_the_facts_are_what_the_file_declares(add, tmp_path):
    assert ENGINE.facts(add) == ModelFacts(
        tuple(TensorSpec(name, DataType.FP32, (-1, 2)) for name in "ab"),
        tuple(TensorSpec(name, DataType.FP32, (-1, 2)) for name in "yz"),
        batchable=True,
    )
    fixed = identity(tmp_path, FLOAT, 3, "any", 1)
    assert fixed.inputs == (TensorSpec("x", DataType.FP32, (3, -1, 1)),)
    assert not ENGINE.facts(fixed).batchable


@pytest.mark.parametrize("name", KINDS)
def test_numbers_of_every_datatype_pass(tmp_path, name):
    spec = identity(tmp_path, KINDS[name], "n")
    given = np.array([0, 1, 1], name)
    (outcome,) = run(spec, {"x": given})
    (output,) = outcome.items
    assert (output.array.dtype, output.array.tolist()) == (given.dtype, given.tolist())
    assert output.datatype is spec.inputs[0].datatype
    assert output.datatype.dtype == given.dtype


def test_all_datatypes_have_been_tried():
    assert len(KINDS) + 1 == len(DATATYPES)


def test_text_passes_as_utf_8(tmp_path):
    spec = identity(tmp_path, TEXT, "n", 2)
    (outcome,) = run(spec, {"x": np.array([["a", "ü"], ["", "語"]])})
    assert outcome["y"].tolist() == [[b"a", "ü".encode()], [b"", "語".encode()]]
    assert outcome.items[0].datatype is DataType.BYTES


@pytest.mark.parametrize(
    ("takes", "gives", "expected"),
    [
        (FLOAT, FLOAT, Isolation.THREAD),
        (TEXT, TEXT, Isolation.PROCESS),
        (FLOAT, TEXT, Isolation.PROCESS),
        (TEXT, FLOAT, Isolation.PROCESS),
    ],
)
def test_models_with_strings_are_no_threads_of_the_server(tmp_path, takes, gives, expected):
    node = helper.make_node("Cast", ["x"], ["y"], to=gives)
    spec = save(tmp_path, [node], [tensor("x", takes, "n")], [tensor("y", gives, "n")])
    assert ENGINE.default_isolation(spec) is expected
    assert expected in ENGINE.isolation


def test_one_that_is_no_text_is_refused_and_its_neighbours_run(tmp_path):
    spec = batched(identity(tmp_path, TEXT, "n", 1))
    good, bad = np.array([[b"a"]], object), np.array([[b"\xff"]], object)
    first, refused, last = run(spec, {"x": good}, {"x": bad}, {"x": np.array([[b"c"], [b"d"]], object)})
    assert (first["y"].tolist(), last["y"].tolist()) == ([[b"a"]], [[b"c"], [b"d"]])
    assert refused.code is Code.INVALID
    assert "not UTF-8 text (invalid start byte at byte 0)" in refused.message
    assert [outcome.code for outcome in run(spec, {"x": bad}, {"x": bad})] == [Code.INVALID] * 2


@pytest.mark.parametrize("kind", [FLOAT, TEXT])
def test_scalars(tmp_path, kind):
    spec = identity(tmp_path, kind)
    (outcome,) = run(spec, {"x": np.array("7" if kind == TEXT else 7, object if kind == TEXT else "f4")})
    (output,) = outcome.items
    assert (output.shape, output.array.shape) == ((), ())
    assert output.array.item() == (b"7" if kind == TEXT else 7.0)


def test_an_empty_dim_passes(tmp_path):
    (outcome,) = run(identity(tmp_path, FLOAT, "n", 0), {"x": np.zeros((2, 0), "f4")})
    assert outcome["y"].shape == (2, 0)


def test_several_items_are_stacked_and_split(add):
    ones = np.ones((1, 2), "f4")
    outcomes = run(
        batched(add), {"a": ones, "b": ones}, {"a": np.full((2, 2), 5, "f4"), "b": np.ones((2, 2), "f4")}
    )
    assert [outcome["y"].tolist() for outcome in outcomes] == [[[2, 2]], [[6, 6], [6, 6]]]
    assert [outcome["z"].tolist() for outcome in outcomes] == [[[0, 0]], [[4, 4], [4, 4]]]
    for outcome in outcomes:
        assert [tensor.shape for tensor in outcome.items] == [tensor.array.shape for tensor in outcome.items]


def test_a_later_batch_leaves_earlier_answers_alone(add):
    spec = batched(add)
    runner, one = ENGINE.open(spec, HERE), np.ones((1, 2), "f4")
    first = run(spec, {"a": one, "b": one}, {"a": one, "b": one}, runner=runner)
    run(spec, {"a": 9 * one, "b": one}, {"a": 9 * one, "b": one}, runner=runner)
    assert [outcome["y"].tolist() for outcome in first] == [[[2, 2]]] * 2


def test_a_batch_of_one_reaches_the_session_uncopied(add, monkeypatch):
    seen = []

    class Watching(onnxruntime.InferenceSession):
        def run(self, names, feeds, *options):
            seen.append(feeds)
            return super().run(names, feeds, *options)

    monkeypatch.setattr(onnxruntime, "InferenceSession", Watching)
    runner = ENGINE.open(batched(add), HERE)
    a, b = np.ones((1, 2), "<f4"), np.zeros((1, 2), "<f4")
    run(batched(add), {"b": b, "a": a}, runner=runner)
    assert np.shares_memory(seen[0]["a"], a)
    assert np.shares_memory(seen[0]["b"], b)


@pytest.mark.parametrize("name", ["float32", "float64", "int64", "float16"])
@pytest.mark.parametrize("offset", [1, 3])
def test_arrays_at_any_address_give_right_results(tmp_path, name, offset):
    nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
    kind = KINDS[name]
    spec = save(tmp_path, nodes, [tensor("x", kind, "n")], [tensor("y", kind, "n")])
    values = np.arange(1000).astype(name)
    body = memoryview(b"\0" * offset + values.tobytes())
    array = np.frombuffer(body, values.dtype, offset=offset)
    assert not array.flags.aligned
    given = Tensor("x", spec.inputs[0].datatype, array.shape, array)
    infer = Infer(model="m", payload=Tensors((given,)))
    (outcome,) = ENGINE.open(spec, HERE).run(Batch([1], [infer], [1])).outcomes
    assert outcome["y"].tolist() == (values * 2).tolist()


def test_what_the_session_refuses_of_one_item_is_its_clients_fault(add):
    runner = ENGINE.open(add, HERE)
    wrong = {"a": np.ones((1, 3), "f4"), "b": np.ones((1, 2), "f4")}
    error = refusal(lambda: run(add, wrong, runner=runner))
    assert error.code is Code.INVALID
    assert "Got invalid dimensions for input: a" in error.message
    right = np.ones((1, 2), "f4")
    assert run(add, {"a": right, "b": right}, runner=runner)[0]["y"].tolist() == [[2, 2]]


def test_what_fails_inside_is_the_models_fault(tmp_path):
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"])]
    spec = save(
        tmp_path,
        nodes,
        [tensor("x", FLOAT, 4), tensor("s", TensorProto.INT64, "d")],
        [tensor("y", FLOAT, "n")],
    )
    error = refusal(lambda: run(spec, {"x": np.ones(4, "f4"), "s": np.array([3])}))
    assert error.code is Code.MODEL_FAILED
    assert error.message.startswith("ONNX Runtime did not run the model: ")


def test_an_output_without_the_batch_is_the_models_fault(tmp_path):
    nodes = [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)]
    spec = save(tmp_path, nodes, [tensor("x", FLOAT, "n", 2)], [tensor("y", FLOAT)])
    spec = replace(batched(replace(spec, outputs=())), outputs=spec.outputs)
    error = refusal(lambda: run(spec, {"x": np.ones((2, 2), "f4")}))
    assert error.code is Code.MODEL_FAILED
    assert "'y'" in error.message


def test_a_sequence_is_refused_with_the_mend(tmp_path):
    nodes = [helper.make_node("SequenceConstruct", ["x"], ["y"])]
    output = helper.make_tensor_sequence_value_info("y", FLOAT, None)
    error = refusal(save, tmp_path, nodes, [tensor("x", FLOAT, 1)], [output])
    assert error.code is Code.UNSUPPORTED
    assert "output 'y' is a seq(tensor(float))" in error.message
    assert "zipmap=False" in error.message


@pytest.mark.parametrize("call", [ENGINE.facts, lambda spec: ENGINE.open(spec, HERE)])
def test_a_damaged_or_missing_file_is_named(tmp_path, add, call):
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    error = refusal(call, add)
    assert error.code is Code.LOAD_FAILED
    assert f"ONNX Runtime cannot open {tmp_path / 'model.onnx'}: " in error.message
    (tmp_path / "model.onnx").unlink()
    assert refusal(call, add).message == f"Model 'm': there is no file {tmp_path / 'model.onnx'}."


def test_unknown_parameters_are_noted(add):
    notes = ENGINE.facts(replace(add, parameters={"trt": "1", "graph_level": "1"})).notes
    assert len(notes) == 1
    assert notes[0].startswith(
        "parameter 'trt' has no meaning to engine 'onnx' and changes nothing; it knows: "
    )


def test_a_gpu_that_is_not_there_is_refused_with_the_mend(add, monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    error = refusal(ENGINE.open, add, Placement("m_0", Isolation.THREAD, Device.GPU, 1))
    assert error.code is Code.LOAD_FAILED
    assert "m_0 is to run on GPU 1" in error.message
    assert "Install onnxruntime-gpu, or use KIND_CPU: " in error.message


@pytest.mark.parametrize("call", [ENGINE.facts, lambda spec: ENGINE.open(spec, HERE)])
def test_without_the_library_the_command_is_told(add, monkeypatch, call):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    error = refusal(call, add)
    assert error.code is Code.UNSUPPORTED
    assert "-m pip install 'onnxruntime>=" in error.message


def test_a_closed_runner_lets_its_session_go(add, monkeypatch):
    open_, opened = onnxruntime.InferenceSession, []

    def watched(*args, **options):
        session = open_(*args, **options)
        opened.append(weakref.ref(session))
        return session

    monkeypatch.setattr(onnxruntime, "InferenceSession", watched)
    runner = ENGINE.open(add, HERE)
    assert opened[-1]() is not None
    runner.close()
    gc.collect()
    assert opened[-1]() is None
    assert described(add.root).inputs == add.inputs


def test_ragged_requests_run_one_behind_the_other(tmp_path):
    """y = x + x over all elements of the batch; c = n, one for each request."""
    nodes = [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Identity", ["n"], ["c"])]
    counts = TensorProto.INT32
    inputs = [tensor("x", FLOAT, "all"), tensor("n", counts, "requests")]
    spec = save(tmp_path, nodes, inputs, [tensor("y", FLOAT, "all"), tensor("c", counts, "requests")])
    told = BatchInput(("n",), ShapeFact.COUNTS, DataType.INT32, "x")
    spec = replace(
        spec,
        inputs=(TensorSpec("x", DataType.FP32, (-1,), ragged=True),),
        outputs=(TensorSpec("y", DataType.FP32, (-1,)), TensorSpec("c", DataType.INT32, ())),
        batching=ROWS,
        batch_shapes=BatchShapes((told,), (BatchOutput(("y",), "x"),)),
    )
    first, second = run(spec, {"x": np.array([[1, 2, 3]], "f4")}, {"x": np.array([[4, 5]], "f4")})
    assert (first["y"].tolist(), second["y"].tolist()) == ([[2, 4, 6]], [[8, 10]])
    assert (first["c"].tolist(), second["c"].tolist()) == ([3], [2])
    (alone,) = run(spec, {"x": np.array([[1, 2, 3, 4]], "f4")})
    assert (alone["y"].tolist(), alone["c"].tolist()) == ([[2, 4, 6, 8]], [4])
