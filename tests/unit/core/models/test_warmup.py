"""Made-up batches: every fill, and data files that are not there or do not fit."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.harness.virtual_models import make_spec

from trivium.core.models.warmup import batches, warm
from trivium.load.simulate import VirtualClock, VirtualInstance
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.running import Credit, Executed, Part
from trivium.types.warmups import SyntheticFill, Warmup, WarmupInput


def arrays(*inputs, rows=0, times=1):
    (batch, *_) = batches(make_spec(warmups=(Warmup("w", rows, times, inputs),)))
    return {tensor.name: tensor.array for tensor in batch.operations[0].payload.items}


def test_a_spec_without_warm_up_has_none():
    assert batches(make_spec()) == []


def test_each_runs_as_often_as_it_says_in_order():
    first = Warmup("a", 2, 2, (WarmupInput("x", DataType.FP32, (2,), SyntheticFill.ZERO),))
    second = Warmup("b", 0, 1, (WarmupInput("x", DataType.FP32, (2,), SyntheticFill.ZERO),))
    runs = batches(make_spec(warmups=(first, second, Warmup("never", 1, 0, ()))))
    assert [(run.operations[0].id, run.rows) for run in runs] == [("a", [2]), ("a", [2]), ("b", [1])]
    assert [run.operations[0].payload.items[0].shape for run in runs] == [(2, 2), (2, 2), (2,)]


@pytest.mark.parametrize("datatype", [kind for kind in DataType if kind is not DataType.BYTES])
@pytest.mark.parametrize("fill", [SyntheticFill.ZERO, SyntheticFill.RANDOM])
def test_numbers(datatype, fill):
    array = arrays(WarmupInput("x", datatype, (3, 100), fill), rows=2)["x"]
    assert (array.dtype, array.shape, array.flags.c_contiguous) == (datatype.dtype, (2, 3, 100), True)
    assert (len(np.unique(array)) > 1) is (fill is SyntheticFill.RANDOM)
    assert not array.astype("f8").min() < 0
    assert not array.astype("f8").max() > 1


@pytest.mark.parametrize("fill", [SyntheticFill.ZERO, SyntheticFill.RANDOM])
def test_bytes_are_text_that_reads_as_zero(fill):
    array = arrays(WarmupInput("x", DataType.BYTES, (2,), fill))["x"]
    assert array.tolist() == [b"0", b"0"]


def test_random_data_is_the_same_each_time():
    ask = WarmupInput("x", DataType.FP32, (9,), SyntheticFill.RANDOM)
    assert arrays(ask)["x"].tolist() == arrays(ask)["x"].tolist()


def test_data_from_files(tmp_path):
    (tmp_path / "numbers").write_bytes(np.arange(6, dtype="<i2").tobytes())
    (tmp_path / "texts").write_bytes(b"\x01\0\0\0a\x02\0\0\0bc")
    found = arrays(
        WarmupInput("n", DataType.INT16, (3,), SyntheticFill.FILE, tmp_path / "numbers"),
        WarmupInput("t", DataType.BYTES, (1,), SyntheticFill.FILE, tmp_path / "texts"),
        rows=2,
    )
    assert found["n"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["t"].tolist() == [[b"a"], [b"bc"]]


@pytest.mark.parametrize(
    ("name", "datatype", "said"),
    [
        ("missing", DataType.FP32, "cannot be read: No such file"),
        (".", DataType.FP32, "cannot be read: Is a directory"),
        (
            "short",
            DataType.FP32,
            "does not fit: Tensor 'x' of datatype FP32 and shape [2] takes 8 bytes, but 7",
        ),
        ("short", DataType.BYTES, "does not fit"),
    ],
)
def test_a_file_that_does_not_fit_is_named(tmp_path: Path, name, datatype, said):
    (tmp_path / "short").write_bytes(b"1234567")
    with pytest.raises(ServeError) as caught:
        arrays(WarmupInput("x", datatype, (2,), SyntheticFill.FILE, tmp_path / name))
    assert caught.value.code is Code.LOAD_FAILED
    assert caught.value.message.startswith(f"Warm-up 'w', input 'x': {tmp_path / name} {said}")


class Answers(VirtualInstance):
    """Has many items in work, and ends them with an error; or well, if there is none."""

    def __init__(self, error):
        super().__init__(VirtualClock(), None, lambda rows: 1.0, in_flight=4)
        self.error, self.port, self.ran = error, None, 0

    def attach(self, port):
        self.port = port

    def start(self, batch):
        self.ran += 1
        (item,) = batch.items
        run = Executed([], [], 0.0, 0.0, 1.0, 1.0, 1, (item,), is_one_of_many=True)
        self.port.push([Part(item, None, self.error), run, Credit(1)])


@pytest.mark.parametrize("error", [None, ServeError(Code.MODEL_FAILED, "no weights")])
def test_an_instance_with_many_items_in_work_is_warmed_up_as_well(error):
    async def play():
        with ThreadPoolExecutor(1) as threads:
            await warm(instance, make_spec(warmups=(Warmup("w", 0, 2, ()),)), threads, "its port")

    instance = Answers(error)
    if error is None:
        asyncio.run(play())
        assert (instance.ran, instance.port) == (2, "its port")
    else:
        with pytest.raises(ServeError, match="Warm-up 'w' failed: no weights"):
            asyncio.run(play())
