"""How inputs find their arguments and results their names, without torch."""

import pytest

from trivium.engines.torch.call import Argument, arrange, choose, flatten

X, Y = Argument("x", "Tensor", False), Argument("y", "Tensor", False)
MASK = Argument("mask", "Optional[Tensor]", True)
SCALE = Argument("scale", "float", True)
KEYED = Argument("inputs", "Dict[str, Tensor]", False)
LISTED = Argument("inputs", "List[Tensor]", False)


class Fake(int):
    """Stands for a tensor."""


def is_fake(value):
    return isinstance(value, Fake)


@pytest.mark.parametrize(
    ("arguments", "names", "expected"),
    [
        ([X, Y], ["y", "x"], ([], {"y": 0, "x": 1})),
        ([X, MASK], ["x"], ([], {"x": 0})),
        ([X, MASK], ["mask", "x"], ([], {"mask": 0, "x": 1})),
        ([X, Y], ["INPUT__1", "INPUT__0"], ([1, 0], {})),
        ([X, Y], ["b__1", "a__0"], ([1, 0], {})),
        ([X, Y], ["second", "first"], ([0, 1], {})),
        ([X, MASK], ["INPUT__0"], ([0], {})),
        ([X, SCALE], ["any"], ([0], {})),
        ([KEYED], ["b", "a"], ([{"b": 0, "a": 1}], {})),
        ([KEYED], ["INPUT__1", "INPUT__0"], ([{"INPUT__1": 0, "INPUT__0": 1}], {})),
        ([LISTED], ["IN__1", "IN__0"], ([[1, 0]], {})),
        ([], [], ([], {})),
        ([X, Y], ["a__0", "b__0"], ([0, 1], {})),  # no index twice: else the order counts
    ],
)
def test_inputs_find_their_arguments(arguments, names, expected):
    inputs = {name: at for at, name in enumerate(names)}
    assert arrange(arguments, names)(inputs) == expected


@pytest.mark.parametrize(
    ("arguments", "names", "words"),
    [
        ([X, Y], ["x"], "forward takes x: Tensor, y: Tensor, and 'y' lacks"),
        ([X, Y], ["a"], "forward takes x: Tensor, y: Tensor, and the inputs are a"),
        ([X, MASK], ["a", "b", "c"], "mask: Optional[Tensor] (optional), and the inputs are a, b, c"),
        ([X], [], "the inputs are none"),
        ([X, Y], ["I__0", "I__2"], "the inputs I__0, I__2 do not count from 0 without a gap"),
        ([Argument("n", "int", False)], ["n"], "and 'n' is no tensor"),
    ],
)
def test_inputs_that_find_none_are_told(arguments, names, words):
    with pytest.raises(ValueError) as caught:
        arrange(arguments, names)
    assert words in str(caught.value)


def test_results_are_flattened():
    one, two = Fake(1), Fake(2)
    assert flatten(one, is_fake) == [one]
    assert flatten((one, two), is_fake) == flatten([one, two], is_fake) == [one, two]
    assert flatten({"a": one}, is_fake) == {"a": one}


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "a NoneType"),
        ((Fake(1), 2.0), "a tuple of Fake, float"),
        ({1: Fake(1)}, "a dict"),
        ("a", "a str"),
    ],
)
def test_other_results_are_told(result, words):
    with pytest.raises(ValueError, match=words):
        flatten(result, is_fake)


@pytest.mark.parametrize(
    ("found", "names", "expected"),
    [
        ([1, 2], ["a", "b"], [("a", 1), ("b", 2)]),
        ([1, 2], ["a"], [("a", 1)]),
        ([1, 2], ["OUTPUT__1"], [("OUTPUT__1", 2)]),
        ([1, 2], ["OUTPUT__1", "OUTPUT__0"], [("OUTPUT__1", 2), ("OUTPUT__0", 1)]),
        ([1, 2], [], [("OUTPUT__0", 1), ("OUTPUT__1", 2)]),
        ([], [], []),
        ({"b": 1, "a": 2}, ["b"], [("b", 1)]),
        ({"b": 1, "a": 2}, [], [("a", 2), ("b", 1)]),
    ],
)
def test_outputs_are_chosen(found, names, expected):
    assert choose(found, names) == expected


@pytest.mark.parametrize(
    ("found", "names", "words"),
    [
        ([1], ["a", "b"], "forward returned 1 tensors, and the outputs are a, b"),
        ([1], ["OUTPUT__1"], "forward returned 1 tensors"),
        ({"b": 1}, ["a"], "forward returned b, and 'a' lacks"),
    ],
)
def test_outputs_that_lack_are_told(found, names, words):
    with pytest.raises(ValueError, match=words):
        choose(found, names)
