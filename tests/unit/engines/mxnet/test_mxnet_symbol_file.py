"""What a symbol file says without MXNet: inputs, labels, outputs; and files that are none."""

import json

import pytest
from tests.harness.mxnet_files import dense, node, symbol

from trivium.engines.mxnet.symbol_file import SymbolFault, read_symbol
from trivium.types.datatype import DataType
from trivium.types.spec import TensorSpec

OPEN = TensorSpec("data", DataType.FP32, (-1,), open=True)


def test_inputs_are_what_has_no_parameter_and_is_no_label():
    read = read_symbol(dense())
    assert read.labels == {"softmax_label"}
    assert read.inputs({"w", "b"}) == (OPEN,)
    assert [one.name for one in read.inputs({"w"})] == ["data", "b"]
    assert read.outputs == ("softmax_output",)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"__dtype__": "6"}, TensorSpec("data", DataType.INT64, (-1,), open=True)),
        ({"__shape__": "(0, 3)"}, TensorSpec("data", DataType.FP32, (-1, 3))),
        ({"__shape__": "[-1, 1, 8, 8]", "__dtype__": "3"}, TensorSpec("data", DataType.UINT8, (-1, 1, 8, 8))),
        ({"__shape__": "(4,)"}, TensorSpec("data", DataType.FP32, (4,))),
    ],
)
def test_datatype_and_shape_of_an_input_are_its_attributes(attributes, expected):
    assert read_symbol(dense(attributes)).inputs({"w", "b"}) == (expected,)


@pytest.mark.parametrize("place", ["attrs", "attr", "param"])
def test_files_of_all_ages_say_attributes(place):
    made = node("data") | {place: {"__dtype__": "1"}}
    (found,) = read_symbol(symbol(made)).inputs(())
    assert found.datatype is DataType.FP64


def test_a_variable_that_is_used_elsewhere_is_no_label():
    made = symbol(node("data"), node("loss", "SoftmaxOutput", [0, 0]))
    assert read_symbol(made).inputs(()) == (OPEN,)


@pytest.mark.parametrize(
    ("operation", "heads", "ends", "expected"),
    [
        ("relu", [[1, 0, 0]], [0, 1, 2], ("n_output",)),
        ("relu", [[1, 0]], None, ("n_output",)),
        ("SliceChannel", [[1, 0, 0], [1, 1, 0]], [0, 1, 3], ("n_output0", "n_output1")),
        ("BatchNorm", [[1, 0, 0]], [0, 1, 4], ("n_output",)),
        ("BatchNorm", [[1, 1, 0]], [0, 1, 4], ("n_mean",)),
        ("relu", [[0, 0, 0], [1, 0, 0]], [0, 1, 2], ("data", "n_output")),
    ],
)
def test_outputs_have_the_names_that_mxnet_gives_them(operation, heads, ends, expected):
    more = {"node_row_ptr": ends} if ends else {}
    made = symbol(node("data"), node("n", operation, [0]), heads=heads, **more)
    assert read_symbol(made).outputs == expected


DAMAGED = {
    "empty": b"",
    "no JSON": b'{"nodes": [',
    "another file": b"\x12\x01\0\0",
    "deep": b"[" * 100_000,
    "a list": b"[]",
    "no nodes": b'{"heads": [[0, 0, 0]]}',
    "an empty list of nodes": b'{"nodes": [], "heads": [[0, 0, 0]]}',
    "nodes that are none": b'{"nodes": [1], "heads": [[0, 0, 0]]}',
    "a node without a name": b'{"nodes": [{"op": "null"}], "heads": [[0, 0, 0]]}',
    "a name that is none": json.dumps({"nodes": [{"op": "null", "name": 3}], "heads": [[0, 0]]}).encode(),
    "no heads": symbol(node("data")).replace(b"heads", b"feet"),
    "empty heads": symbol(node("data")).replace(b"[[0, 0, 0]]", b"[]"),
    "a head that is no node": symbol(node("data"), heads=[[7, 0, 0]]),
    "a negative head": symbol(node("data"), heads=[[-1, 0, 0]]),
    "a head that is a text": symbol(node("data")).replace(b"[[0, 0, 0]]", b'["data"]'),
    "an input that comes later": symbol(node("data"), node("n", "relu", [2]), node("m")),
    "a node of itself": symbol(node("data"), node("n", "relu", [1])),
    "inputs that are no list": symbol(node("data") | {"inputs": "data"}),
    "XGBoost's": b'{"learner": {}}',
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_what_is_no_graph_is_refused_in_words(kind):
    with pytest.raises(SymbolFault) as caught:
        read_symbol(DAMAGED[kind])
    assert str(caught.value)


@pytest.mark.parametrize(
    "attributes",
    [
        {"__dtype__": "12"},
        {"__dtype__": "x"},
        {"__shape__": "(0, 'a')"},
        {"__shape__": "__import__('os')"},
        {"__shape__": "(" * 900},
        {"__shape__": "(-2,)"},
        {"__shape__": "(True,)"},
        {"__shape__": str((1,) * 40)},
    ],
)
def test_an_input_that_nobody_can_send_is_refused(attributes):
    with pytest.raises(SymbolFault, match="'data'"):
        read_symbol(dense(attributes)).inputs({"w", "b"})
