"""Tensors of the Triton dialect: what comes in as numpy, what goes out, and DLPack both ways."""

import importlib
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.harness.properties import examples
from tests.harness.triton_child import TritonChildHarness, stage

from trivium_worker.wire.values import NUMPY_TYPES
from trivium_worker.wire.values import Tensor as WireTensor

__all__ = ["stage"]

DTYPES = [np.dtype(code) for name, code in NUMPY_TYPES.items() if name != "BF16"]


@pytest.fixture
def module(stage: TritonChildHarness) -> Any:
    return importlib.import_module("c_python_backend_utils.tensor")


@given(data=st.data())
@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
def test_numbers_come_back_as_they_went(module: Any, data: Any) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=0, min_side=0, max_side=4))
    array = data.draw(hnp.arrays(data.draw(st.sampled_from(DTYPES)), shape))
    tensor = module.Tensor("x", array.T)
    received = module.ReceivedTensor(tensor.on_wire())
    assert received.as_numpy().tobytes() == np.ascontiguousarray(array.T).tobytes()
    assert received.shape() == list(array.T.shape) == tensor.shape()
    assert received.triton_dtype() == tensor.triton_dtype()
    assert received.as_numpy().flags.writeable
    assert received.as_numpy() is received.as_numpy()


@given(elements=st.lists(st.binary(max_size=5) | st.text(max_size=5) | st.integers(), max_size=4))
@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
def test_text_comes_back_as_bytes(module: Any, elements: list[Any]) -> None:
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    received = module.ReceivedTensor(module.Tensor("x", array).on_wire())
    assert received.as_numpy().tolist() == [e if isinstance(e, bytes) else str(e).encode() for e in elements]
    assert received.triton_dtype() == 13


def test_large_data_is_viewed_and_small_data_copied(module: Any) -> None:
    for size, follows in ((4, False), (module.COPIED + 1, True)):
        array = np.zeros(size, np.uint8)
        data = module.Tensor("x", array).on_wire().data
        array[0] = 1
        assert (data[0], len(data)) == (int(follows), size)
    turned = np.arange(2 * module.COPIED, dtype="f4").reshape(2, -1).T
    assert bytes(module.Tensor("x", turned).on_wire().data) == turned.tobytes()


def test_unusual_arrays(module: Any) -> None:
    assert module.Tensor("x", np.array([1, 2], ">i4")).on_wire().data == np.array([1, 2], "<i4").tobytes()
    assert module.Tensor("x", np.array([b"ab", b"c"])).on_wire().elements() == [b"ab", b"c"]
    for array in (np.array(["text"]), np.zeros(1, "c8"), np.array(["2020"], "M8[s]")):
        with pytest.raises(Exception, match=r"NumPy dtype is not supported\.") as caught:
            module.Tensor("x", array)
        assert str(caught.value) == "NumPy dtype is not supported."
        assert f"'x' has the dtype {array.dtype}" in caught.value.__notes__[0]
    for arguments in ((3, np.zeros(1)), ("x", [1.0])):
        with pytest.raises(TypeError, match=r"expected \(str, numpy.ndarray\)"):
            module.Tensor(*arguments)
    for make in (module.Tensor, module.Tensor.from_dlpack):
        with pytest.raises(Exception, match="cannot be an empty string"):
            make("", np.zeros(1))


def test_a_user_s_own_tensor(module: Any) -> None:
    array = np.arange(6, dtype="i8").reshape(2, 3)
    tensor = module.Tensor("x", array)
    assert (tensor.name(), tensor.shape(), tensor.is_cpu()) == ("x", [2, 3], True)
    assert tensor.as_numpy() is array
    assert module.Tensor("x", array.T).as_numpy().flags.c_contiguous
    array.setflags(write=False)
    assert module.Tensor("x", array).as_numpy().flags.writeable


# -- DLPack ------------------------------------------------------------------------------------------------


def test_dlpack_with_numpy(module: Any) -> None:
    array = np.arange(6, dtype="f4").reshape(2, 3)
    tensor = module.Tensor("x", array)
    shared = np.from_dlpack(tensor)
    array[0, 0] = 9
    assert shared.tolist() == array.tolist()
    assert tensor.__dlpack_device__() == (1, 0)
    for source in (array, array.__dlpack__(), tensor, tensor.to_dlpack()):
        assert module.Tensor.from_dlpack("y", source).as_numpy().tolist() == array.tolist()
    assert module.Tensor.from_dlpack("y", array).on_wire().data == array.tobytes()


def test_dlpack_of_bf16_keeps_its_bits(module: Any) -> None:
    wire = WireTensor("x", "BF16", (2, 1), b"\x80\x3f\x00\x40")
    tensor = module.ReceivedTensor(wire)
    with pytest.raises(Exception, match="cannot be converted to NumPy; use to_dlpack"):
        tensor.as_numpy()
    back = module.Tensor.from_dlpack("y", tensor.to_dlpack())
    sent = back.on_wire()
    assert (sent.name, sent.datatype, sent.shape, bytes(sent.data)) == ("y", "BF16", (2, 1), bytes(wire.data))
    assert back.triton_dtype() == 14


class Elsewhere:
    """A tensor on another device."""

    def __init__(self, device: int) -> None:
        self._device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device, 0

    def __dlpack__(self, stream: Any = None) -> Any:
        raise AssertionError("asked for a capsule on another device")


def test_dlpack_that_is_refused(module: Any) -> None:
    used = np.zeros(1).__dlpack__()
    module.Tensor.from_dlpack("x", used)
    for source, said in (
        (3, "Provided tensor is not supported"),
        (Elsewhere(2), "is on a GPU"),
        (Elsewhere(7), "on a device of type 7"),
        (used, "was used before"),
        (np.zeros((2, 3)).T, "not contiguous"),
    ):
        with pytest.raises(Exception, match=said) as raised:
            module.Tensor.from_dlpack("x", source)
        assert type(raised.value).__name__ == "TritonModelException"
    with pytest.raises(Exception, match="does not have support for string tensors"):
        module.Tensor("x", np.array([b"a"])).to_dlpack()
