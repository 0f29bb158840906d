"""What a program of Paddle in its newer form tells of its tensors."""

import pytest

from trivium.engines.graphs.paddle_programs import read_newer
from trivium.types.datatype import DataType
from trivium.types.spec import TensorSpec


def operation(kind: str, name: str, element: str, dims: list[int]):
    attributes = [
        {"AT": {"#": "0.a_i32", "D": 0}, "N": "col"},
        {"AT": {"#": "0.a_str", "D": name}, "N": "name"},
    ]
    result = {"%": 1, "TT": {"#": "0.t_dtensor", "D": [{"#": element}, dims, "NCHW", [], 0]}}
    return {"#": kind, "A": attributes, "I": [], "O": [result]}


def program(*operations):
    return {"program": {"regions": [{"#": "region_0", "blocks": [{"ops": list(operations)}]}]}}


def test_ends_and_parameters_are_read():
    read = read_newer(
        program(
            {"#": "p", "A": [0, 1, 1, "linear.w_0"], "O": {"%": 2}},
            operation("1.data", "x", "0.t_f32", [-1, 64]),
            operation("1.feed", "ids", "0.t_i64", [-7]),
            {"#": "1.matmul", "A": [], "I": [], "O": []},
            operation("1.fetch", "fetch_name_0", "0.t_bool", []),
        )
    )
    assert read.inputs == {
        "x": TensorSpec("x", DataType.FP32, (-1, 64)),
        "ids": TensorSpec("ids", DataType.INT64, (-1,)),
    }
    assert read.outputs == {"fetch_name_0": TensorSpec("fetch_name_0", DataType.BOOL, ())}
    assert read.parameters == ["linear.w_0"]


@pytest.mark.parametrize(("element", "said"), [("0.t_bf16", "bfloat16"), ("0.t_c64", "t_c64")])
def test_a_datatype_that_is_not_handed_over_is_named(element, said):
    assert read_newer(program(operation("1.data", "x", element, [1]))).inputs == {"x": said}


@pytest.mark.parametrize(
    "told", [{}, [], {"program": {"regions": []}}, {"program": {"regions": [{"blocks": 1}]}}]
)
def test_what_is_no_program_raises(told):
    with pytest.raises((KeyError, IndexError, TypeError)):
        read_newer(told)
