"""Tensors as adapters see them: from arrays and elements, and back."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.outlet import CallingOutlet

import trivium_worker
from trivium_worker.wire.values import NUMPY_TYPES, Item, Tensor

shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@given(st.sampled_from(sorted(set(NUMPY_TYPES) - {"BF16"})), shapes, st.data())
def test_arrays_come_back_as_they_went(datatype, shape, data):
    dtype = np.dtype(NUMPY_TYPES[datatype])
    count = int(np.prod(shape))
    raw = data.draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize))
    raw = bytes(byte & 1 for byte in raw) if datatype == "BOOL" else raw
    array = np.frombuffer(bytearray(raw), dtype).reshape(shape)
    for given_array in (array, array.copy(order="F"), array.astype(dtype.newbyteorder(">"))):
        tensor = Tensor.of_array("x", given_array)
        assert (tensor.name, tensor.datatype, tensor.shape) == ("x", datatype, shape)
        assert bytes(tensor.data) == raw
        assert len(tensor.data) == len(raw), "its length is told in bytes"
        back = tensor.array()
        assert (back.shape, back.dtype, back.tobytes()) == (shape, dtype, raw)


@given(shapes, st.data())
def test_elements_come_back_as_they_went(shape, data):
    count = int(np.prod(shape))
    elements = data.draw(st.lists(st.binary(max_size=9), min_size=count, max_size=count))
    array = np.empty(count, dtype=object)
    array[:] = elements
    tensor = Tensor.of_array("x", array.reshape(shape))
    assert (tensor.datatype, tensor.shape, tensor.elements()) == ("BYTES", shape, elements)
    back = tensor.array()
    assert (back.shape, back.ravel().tolist()) == (shape, elements)
    assert Tensor.of_elements("x", elements).shape == (count,)


def test_text_becomes_bytes():
    for array in (np.array(["ä", "b"]), np.array(["ä", b"b"], dtype=object)):
        assert Tensor.of_array("x", array).elements() == ["ä".encode(), b"b"]
    assert Tensor.of_array("x", np.array([b"a", b"bc"])).elements() == [b"a", b"bc"]
    assert Tensor.of_array("x", np.array([1, None], dtype=object)).elements() == [b"1", b"None"]


@pytest.mark.parametrize("dtype", ["complex64", "datetime64[s]", "V4"])
def test_what_v2_lacks(dtype):
    with pytest.raises(TypeError, match=r"tensor 'x': dtype .* has no v2 datatype"):
        Tensor.of_array("x", np.zeros(2, dtype))


def test_what_views_a_request_cannot_be_written():
    tensor = Tensor("x", "FP32", (1,), memoryview(b"1234"))
    with pytest.raises(ValueError, match="read-only"):
        tensor.array()[0] = 1
    assert Tensor("x", "BF16", (2,), b"1234").array().dtype == np.uint16


def test_an_item_knows_what_was_asked_and_sends_by_itself():
    sent = []
    about = {
        "outputs": ["y"],
        "parameters": {"a": 1},
        "priority": 2,
        "timeout": 1.5,
        "sequence": [7, True, False],
    }
    item = Item(3, "id", 4, [], about, CallingOutlet(lambda *given: sent.append(given)))
    assert (item.outputs, item.parameters, item.priority) == (["y"], {"a": 1}, 2)
    assert (item.timeout, tuple(item.sequence), item.is_cancelled) == (1.5, (7, True, False), False)
    item.send("part")
    item.send("last", True, {"p": 1})
    assert sent == [(item, "part", False, None), (item, "last", True, {"p": 1})]
    plain = Item(3, "", 1, [], {}, CallingOutlet(sent.append))
    assert (plain.outputs, plain.parameters, plain.timeout, plain.sequence) == ([], {}, None, None)


def in_an_interpreter(code):
    """Run code as a worker begins, whose package is known by its folder alone."""
    folder = Path(trivium_worker.__file__).parent
    begin = f"import sys, runpy; sys.argv = ['x']; runpy.run_path({str(folder / '__main__.py')!r})['load_package']()\n"
    done = subprocess.run(
        [sys.executable, "-I", "-c", begin + code], capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_handlers_may_use_the_former_names():
    in_an_interpreter(
        "import os, trivium_child.picture_steps as steps\n"
        "from trivium_child import picture_steps\n"
        "from trivium_worker import pictures\n"
        "assert steps is picture_steps is pictures\n"
        "assert os.path.isdir(sys.modules['trivium_child'].__path__[0] + '/shims/djl/djl_python')\n"
    )


def test_none_of_it_needs_numpy_or_trivium():
    """As in an interpreter that has neither: what `trivium_worker` imports is the standard library's."""
    in_an_interpreter(
        "sys.modules['numpy'] = sys.modules['msgspec'] = None\n"
        "from trivium_worker.wire import frames, values; from trivium_worker.runtime import life\n"
        "assert values.Tensor.of_elements('x', [b'a']).elements() == [b'a']\n"
        "assert frames.frames(frames.frame(1, b'x'))[1] == 6\n"
        "assert not [name for name in sys.modules if name.split('.')[0] == 'trivium'], sys.modules\n"
    )
