"""Devices and degrees as instance groups: gangs on the CPU and on GPUs, workers with several GPUs each."""

from dataclasses import replace

import pytest
from tests.harness.djl_folders import DEFAULTS, HANDLER, faults, make, one

MPI, TENSOR, PIPELINE = "engine=MPI", "option.tensor_parallel_degree=", "option.pipeline_parallel_degree="
GPUS = {count: replace(DEFAULTS, gpus=count, cpus=8) for count in (0, 1, 2, 4, 5)}


def groups(tmp_path, *lines, gpus=0):
    """Devices, span, ranks and bounds of each group."""
    spec = one(make(tmp_path, "m", *lines, model_py=HANDLER), GPUS[gpus])
    return [
        (one.device.value, one.device_ids, one.span, one.ranks, (one.minimum, one.maximum))
        for one in spec.groups
    ]


@pytest.mark.parametrize(
    ("lines", "gpus", "expected"),
    [
        ((MPI, TENSOR + "2"), 0, [("cpu", (), 1, 2, (1, 4))]),
        ((MPI, TENSOR + "2", PIPELINE + "2"), 0, [("cpu", (), 1, 4, (1, 2))]),
        ((MPI, TENSOR + "2", "maxWorkers=1"), 0, [("cpu", (), 1, 2, (1, 1))]),
        (("option.mpi_mode=true", TENSOR + "2"), 0, [("cpu", (), 1, 2, (1, 4))]),
        (("engine=DeepSpeed", TENSOR + "2"), 0, [("cpu", (), 1, 2, (1, 4))]),
        ((MPI,), 0, [("cpu", (), 1, 1, (1, 8))]),
        ((MPI, TENSOR + "max"), 0, [("cpu", (), 1, 1, (1, 8))]),
        ((TENSOR + "2",), 0, [("cpu", (), 1, 1, (1, 8))]),
        ((MPI,), 4, [("gpu", (0, 1, 2, 3), 4, 4, (1, 1))]),
        ((MPI, TENSOR + "2"), 5, [("gpu", (0, 1, 2, 3), 2, 2, (1, 1))]),
        ((MPI, TENSOR + "2", "maxWorkers=2"), 4, [("gpu", (0, 1, 2, 3), 2, 2, (1, 2))]),
        ((TENSOR + "2",), 5, [("gpu", (0, 1), 2, 1, (1, 1)), ("gpu", (2, 3), 2, 1, (1, 1))]),
        ((TENSOR + "max",), 2, [("gpu", (0, 1), 2, 1, (1, 1))]),
        ((TENSOR + "1",), 2, [("gpu", (0,), 1, 1, (1, 1)), ("gpu", (1,), 1, 1, (1, 1))]),
    ],
)
def test_what_becomes_of_degrees(tmp_path, lines, gpus, expected):
    """Sharp edge 20: one group under MPI, and one for as many GPUs as a degree asks for without it."""
    assert groups(tmp_path, *lines, gpus=gpus) == expected


@pytest.mark.parametrize(
    ("lines", "gpus", "key", "words"),
    [
        (
            (MPI, TENSOR + "4"),
            2,
            "option.tensor_parallel_degree",
            "GPU devices are not enough to run 4 partitions",
        ),
        (
            (TENSOR + "2",),
            1,
            "option.tensor_parallel_degree",
            "GPU devices are not enough to run 2 partitions",
        ),
        ((PIPELINE + "2",), 1, "option.pipeline_parallel_degree", "GPU devices are not enough"),
        ((MPI, TENSOR + "2", "maxWorkers=3"), 4, "maxWorkers", "we can only expand worker to 2"),
        ((MPI, TENSOR + "65"), 0, "option.tensor_parallel_degree", "65 processes"),
    ],
)
def test_degrees_that_cannot_be(tmp_path, lines, gpus, key, words):
    found = faults(make(tmp_path, "m", *lines, model_py=HANDLER), GPUS[gpus])
    assert [(one.key, words in one.found) for one in found] == [(key, True)]


@pytest.mark.parametrize(("line", "expected"), [("option.use_passive_workers=false", False), ("", True)])
def test_the_other_ranks_may_work(tmp_path, line, expected):
    spec = one(make(tmp_path, "m", MPI, TENSOR + "2", line, model_py=HANDLER))
    assert spec.groups[0].are_passive is expected


def test_a_handler_that_needs_mpirun_is_refused(tmp_path):
    code = "def handle(inputs):\n    from mpi4py import MPI\n"
    (found,) = faults(make(tmp_path, "m", MPI, TENSOR + "2", model_py=code))
    assert "imports mpi4py" in found.found
    assert "MASTER_PORT" in found.hint
    assert one(make(tmp_path, "n", model_py=code)).name == "n"


def test_an_asynchronous_handler_runs_in_one_process(tmp_path):
    code = "async def handle(inputs):\n    return None\n"
    (found,) = faults(make(tmp_path, "m", MPI, TENSOR + "2", model_py=code))
    assert found.key == "option.async_mode"
