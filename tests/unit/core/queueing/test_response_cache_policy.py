"""What the cache keeps within its bytes, and which requests are the same to it."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.core.queueing.response_cache_policy import LastUsed, digest, size_of
from trivium.types.datatype import DataType
from trivium.types.operations import Infer, WantedOutput
from trivium.types.payload import PayloadKind, Tensor, Tensors

LIMIT = 100
STEPS = st.lists(st.tuples(st.sampled_from("gp"), st.integers(0, 9), st.integers(0, 120)), max_size=60)


@settings(max_examples=examples(300))
@given(STEPS)
def test_never_more_than_its_bytes_and_never_another_value(steps):
    kept: LastUsed[int] = LastUsed(LIMIT)
    model: dict[int, tuple[int, int]] = {}  # by key in the order of use
    evicted = 0
    for number, (step, key, size) in enumerate(steps):
        if step == "g":
            assert kept.get(key) == (model[key][0] if key in model else None)
            if key in model:
                model[key] = model.pop(key)
        else:
            model.pop(key, None)
            assert kept.put(key, number, size) == (size <= LIMIT)
            if size <= LIMIT:
                while sum(each for _, each in model.values()) + size > LIMIT:
                    del model[next(iter(model))]
                    evicted += 1
                model[key] = number, size
        assert kept.used == sum(each for _, each in model.values()) <= LIMIT
        assert (len(kept), kept.evictions) == (len(model), evicted)
    kept.drop(lambda key: key < 5)
    assert all((kept.get(key) is None) == (key < 5 or key not in model) for key in range(10))
    kept.drop(lambda key: True)
    assert kept.used == len(kept) == 0
    assert kept.evictions == evicted, "what is dropped had not to go for others"


def request(*tensors, **fields):
    return Infer(model="any", payload=Tensors(tensors), **fields)


def of(name, values, dtype="<i4"):
    array = np.array(values, dtype)
    return Tensor(name, DataType.INT32 if dtype == "<i4" else DataType.UINT32, array.shape, array)


def texts(name, *elements):
    array = np.empty(len(elements), object)
    array[:] = elements
    return Tensor(name, DataType.BYTES, array.shape, array)


FIRST = request(of("a", [1, 2]), of("b", [3]))
SAME = [
    request(of("b", [3]), of("a", [1, 2])),
    msgspec.structs.replace(FIRST, id="x", parameters={"p": 1}, priority=2, deadline=1.0),
]
OTHERS = [
    request(of("a", [1, 2])),
    request(of("a", [1, 2]), of("b", [4])),
    request(of("a", [1, 2]), of("c", [3])),
    request(of("a", [[1, 2]]), of("b", [3])),
    request(of("a", [1, 2], "<u4"), of("b", [3])),
    request(of("a", [1]), of("b", [2, 3])),
    msgspec.structs.replace(FIRST, outputs=(WantedOutput("y"),)),
    msgspec.structs.replace(FIRST, outputs=(WantedOutput("y", 2),)),
    msgspec.structs.replace(FIRST, wants=PayloadKind.TENSORS),
    request(texts("a", b"ab", b"c")),
    request(texts("a", b"a", b"bc")),
    request(texts("a", b"abc", b"")),
]


@pytest.mark.parametrize("same", SAME)
def test_the_same_to_a_model(same):
    assert digest("m", "1", same) == digest("m", "1", FIRST)


def test_all_others_differ():
    keys = [digest("m", "1", other) for other in (FIRST, *OTHERS)]
    keys += [digest("m", "2", FIRST), digest("n", "1", FIRST), digest("m1", "", FIRST)]
    assert len(set(keys)) == len(keys)


def test_what_is_kept_is_its_own_and_stays_as_it_is():
    body = np.arange(8, dtype="<i4")
    kept = Tensors((Tensor("a", DataType.INT32, (4,), body[:4]), texts("t", b"x"))).copied()
    body[:] = 0
    assert kept["a"].tolist() == [0, 1, 2, 3]
    assert not kept["a"].flags.writeable
    assert size_of(kept) > 16
    assert kept["t"].tolist() == [b"x"]
