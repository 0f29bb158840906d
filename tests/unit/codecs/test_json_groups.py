"""Groups of a JSON array's elements, joined, are the array; what does not fit together is found."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trivium.codecs import json_documents, json_groups
from trivium.codecs.binding import Wanted
from trivium.codecs.json_groups import Unbalanced, groups, has_many_values
from trivium.types.datatype import DataType
from trivium.types.errors import ServeError
from trivium.types.spec import TensorSpec

SCALARS = st.one_of(st.integers(-99, 99), st.floats(-1e3, 1e3), st.booleans(), st.text(max_size=9))
ARRAYS = st.lists(st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4), max_leaves=9), max_size=30)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_groups, "GROUP_BYTES", 16)
    monkeypatch.setattr(json_documents, "GROUP_BYTES", 16)
    monkeypatch.setattr(json_documents, "LARGE_BYTES", 32)


@given(ARRAYS, st.sampled_from([None, 1]))
def test_groups_joined_are_the_array(array: list[object], indent: int | None) -> None:
    text = json.dumps(array, indent=indent).encode()
    assert [element for group in groups(text) for element in json.loads(group)] == array


@given(st.lists(st.dictionaries(st.text(max_size=3), ARRAYS, max_size=3), max_size=9))
def test_objects_stay_whole(array: list[object]) -> None:
    text = json.dumps(array).encode()
    assert [element for group in groups(text) for element in json.loads(group)] == array


@pytest.mark.parametrize(
    ("text", "has_many"),
    [
        (b"[1, 2, 3]", False),
        (b'["' + b"[,]" * 99 + b'"]', False),
        (b"[" + b"1," * 99 + b"1]", True),
        (b"[" * 99, True),
    ],
)
def test_values_are_counted_outside_of_strings(text: bytes, has_many: bool) -> None:
    assert has_many_values(text, 10) is has_many


@pytest.mark.parametrize(
    "text",
    [b"", b"[", b"]", b"[[1,2]", b"[1]]", b"[1],[2]", b'["a]', b'[1,"', b"[1] [", b"][", b"5", b'["a",]]'],
)
def test_what_does_not_fit_together_is_found(text: bytes) -> None:
    with pytest.raises(Unbalanced):
        list(groups(text))


@example([5, 0], DataType.FP32)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=3), st.sampled_from([DataType.FP32, DataType.INT64]))
def test_a_tensor_of_any_shape_is_read_as_at_once(shape: list[int], datatype: DataType) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(datatype.dtype)
    wanted = Wanted("m", (TensorSpec("x", datatype, (-1,) * len(shape)),))
    text = json.dumps({"x": array.tolist()}, indent=1).encode()
    found = json_documents.read(text, wanted)
    assert found is not None
    if array.size:
        np.testing.assert_array_equal(found[0].array, array)


def test_long_strings_are_read_in_groups() -> None:
    texts = [[f'text, [{number}] \\ "x"', "y" * number] for number in range(40)]
    wanted = Wanted("m", (TensorSpec("x", DataType.BYTES, (-1, 2)),))
    found = json_documents.read(json.dumps({"x": texts}).encode(), wanted)
    assert found is not None
    assert found[0].array.tolist() == [[text.encode() for text in row] for row in texts]


@pytest.mark.parametrize("letter", ["x", "\\n", '\\"', "\\\\", "\u00e9"])
def test_a_long_string_takes_the_memory_that_it_has(letter: str) -> None:
    """Matching it by a pattern took a hundred times as much, and the interpreter for as long."""
    text = ('["a", "' + letter * 500_000 + '", "b,]"]').encode()
    tracemalloc.start()
    found = [json.loads(group) for group in groups(text)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [each for group in found for each in group] == json.loads(text)
    assert peak < 8 * len(text)


@pytest.mark.parametrize(
    "text",
    [
        b'{"x": [[1, 2], [3, 4], [5], [6, 7], [8, 9], [1, 2], [3, 4]]}',
        b'{"x": [[1, 2], [3, "a"], [5, 6], [6, 7], [8, 9], [1, 2], [3, 4]]}',
        b'{"x": [[1, 2], [3, 4], 7, [6, 7], [8, 9], [1, 2], [3, 4], [1, 2], [3, 4]]}',
        b'{"x": [[1, 2], [3, 4], [5, 6], [7, 8], [], [], [], [], [], [], [], [], [], []]}',
    ],
)
def test_what_is_no_tensor_is_refused(text: bytes) -> None:
    with pytest.raises(ServeError):
        json_documents.read(text, Wanted("m", (TensorSpec("x", DataType.FP32, (-1, 2)),)))
