"""What a schema tells of inputs and outputs."""

import pytest

from trivium.engines.torch.call import Argument, arrange
from trivium.engines.torch.open_tensors import open_inputs, open_outputs

TENSOR, OPTIONAL, MANY = "Tensor", "Optional[Tensor]", "List[Tensor]"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([("x", TENSOR, False), ("y", TENSOR, True)], [("x", False, False), ("y", True, False)]),
        ([("x", TENSOR, False), ("mask", OPTIONAL, False)], [("x", False, False), ("mask", True, False)]),
        ([("x", TENSOR, False), ("scale", "float", True)], [("x", False, False)]),
        ([("x", TENSOR, False), ("more", MANY, True)], [("x", False, False)]),
        ([("images", MANY, False)], [("images", False, True)]),
        ([("given", "Dict[str, Tensor]", False)], [("given", False, True)]),
        ([("x", TENSOR, False), ("text", "str", False)], []),
        ([("x", TENSOR, False), ("more", MANY, False)], []),
        ([("given", "Dict[str, int]", False)], []),
        ([], []),
    ],
)
def test_inputs_are_the_arguments_that_take_tensors(arguments, told):
    inputs = open_inputs([Argument(*one) for one in arguments])
    assert [(one.name, one.optional, one.many) for one in inputs] == told
    assert all(one.open and one.wire == "INVALID" for one in inputs)


@pytest.mark.parametrize(
    ("returned", "count"),
    [
        ("Tensor", 1),
        ("Tuple[Tensor, Tensor, Tensor]", 3),
        ("Tuple[Tensor]", 1),
        ("Tuple[Tensor, int]", 0),
        ("List[Tensor]", 0),
        ("Dict[str, Tensor]", 0),
        ("Optional[Tensor]", 0),
    ],
)
def test_outputs_are_named_where_the_type_tells_how_many(returned, count):
    assert [one.name for one in open_outputs(returned)] == [f"OUTPUT__{at}" for at in range(count)]


def test_an_optional_argument_without_a_default_becomes_none():
    arguments = [Argument("x", TENSOR, False), Argument("mask", OPTIONAL, False), Argument("y", TENSOR, True)]
    assert arrange(arguments, ["x"])({"x": 1}) == ([], {"x": 1, "mask": None})
    assert arrange(arguments, ["IN__0"])({"IN__0": 1}) == ([1], {"mask": None})
    assert arrange(arguments, ["a", "b", "c"])({"a": 1, "b": 2, "c": 3}) == ([1, 2, 3], {})
    with pytest.raises(ValueError, match="'x' lacks"):
        arrange(arguments, ["mask"])
