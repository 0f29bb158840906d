"""MXNet's descriptor: facts from files alone, which epoch counts, and with what a worker is started."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.harness.mxnet_files import dense, node, params, symbol, weights
from tests.harness.virtual_models import make_spec

from trivium.engines.mxnet.engine import MxnetEngine
from trivium.environments.named import NamedEnvironments
from trivium.types.errors import Code, ServeError
from trivium.types.findings import Severity
from trivium.types.interfaces import OpensRunner, SupportsCheck, WorkerEngine
from trivium.types.running import Placement
from trivium.types.spec import Batching, Isolation, Join

HERE = Placement("net_0", Isolation.PROCESS)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "net-symbol.json").write_bytes(dense())
    for epoch in (2, 10):
        (tmp_path / f"net-{epoch:04d}.params").write_bytes(weights())
    (tmp_path / "net-shaped-0099.params").write_bytes(b"another model's")
    return tmp_path


@pytest.fixture
def named(tmp_path):
    made = NamedEnvironments(tmp_path / "environments")
    python = tmp_path / "environments" / made.locks["mxnet"].place / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    return made


def engine(named=None):
    return MxnetEngine({"PATH": os.defpath, "PYTHONPATH": "/elsewhere"}, named)


def spec(folder, **fields):
    return replace(make_spec(**fields), root=folder, entry="net-symbol.json", name="net")


def refused(call):
    with pytest.raises(ServeError) as caught:
        call()
    assert caught.value.code is Code.LOAD_FAILED
    return caught.value.message


def test_it_launches_programs_in_processes_alone():
    made = engine()
    assert isinstance(made, WorkerEngine)
    assert isinstance(made, SupportsCheck)
    assert not isinstance(made, OpensRunner)
    assert made.isolation == (Isolation.PROCESS,)


def test_facts_come_from_the_files(folder):
    facts = engine().facts(spec(folder, parameters={"thread": "2"}))
    assert [(one.name, one.open) for one in (*facts.inputs, *facts.outputs)] == [
        ("data", True),
        ("softmax_output", True),
    ]
    assert facts.batchable
    assert facts.details["parameters"] == ("32 bytes in 2 arrays", "the file net-0010.params")
    assert "Did you mean 'threads'?" in facts.notes[0]


@pytest.mark.parametrize(
    ("parameters", "file"),
    [({}, "net-0010.params"), ({"epoch": "2"}, "net-0002.params"), ({"has_parameters": "false"}, "")],
)
def test_the_last_epoch_counts_or_the_one_that_is_named(folder, named, parameters, file):
    made = engine(named).program(spec(folder, parameters=parameters), HERE)
    assert made.setup["settings"]["parameters"] == file


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"epoch": "3"}, "net-0003.params for MXNet; there are the epochs 2, 10"),
        ({"epoch": "x"}, "parameter 'epoch' is 'x'"),
        ({"has_parameters": "maybe"}, "parameter 'has_parameters' is 'maybe'"),
    ],
)
def test_a_wish_that_cannot_be_is_said_with_what_there_is(folder, parameters, words):
    assert words in refused(lambda: engine().facts(spec(folder, parameters=parameters)))


@pytest.mark.parametrize("file", ["net-symbol.json", "net-0010.params"])
@pytest.mark.parametrize("damage", ["cut", "zeros", "empty", "folder", "fifo"])
def test_a_damaged_file_is_an_error_with_file_and_engine(folder, file, damage):
    path = folder / file
    data = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "fifo":
        os.mkfifo(path)
    else:
        path.write_bytes({"cut": data[: len(data) // 2], "zeros": bytes(len(data)), "empty": b""}[damage])
    message = refused(lambda: engine().facts(spec(folder)))
    assert str(path) in message
    assert "engine mxnet" in message


def test_without_parameters_their_place_is_named(folder):
    for file in folder.glob("net-00*.params"):
        file.unlink()
    message = refused(lambda: engine().facts(spec(folder)))
    assert str(folder / "net-0000.params") in message


def test_the_worker_runs_in_the_environment_and_in_no_other(folder, named):
    made = engine(named).program(
        spec(folder, parameters={"threads": "3"}, batching=Batching(False, 4, True, Join.STACK)), HERE
    )
    place = named.find("mxnet").place
    assert made.command[0] == str(place / "bin" / "python")
    assert made.environment["OMP_NUM_THREADS"] == "3"
    assert made.environment["VIRTUAL_ENV"] == str(place)
    assert "PYTHONPATH" not in made.environment
    assert made.setup["dialect"] == "mxnet"
    assert made.setup["settings"]["batch"] == "stack"
    assert engine(named).program(spec(folder), HERE).environment["OMP_NUM_THREADS"] == "1"


def test_without_the_environment_the_command_that_builds_it_is_said(folder, tmp_path):
    there = NamedEnvironments(Path(tmp_path / "nothing"))
    (finding,) = engine(there).check(spec(folder))
    assert finding.severity is Severity.ERROR
    assert "trivium env build mxnet" in finding.hint
    assert "trivium env build mxnet" in refused(lambda: engine(there).program(spec(folder), HERE))


def saved(folder, name, graph, values, epoch="0000"):
    (folder / f"{name}-symbol.json").write_bytes(graph)
    (folder / f"{name}-{epoch}.params").write_bytes(values)
    return replace(make_spec(), root=folder, entry=f"{name}-symbol.json", name="net")


def test_names_with_dots_and_a_late_epoch_as_apache_mxnet_15337_has_them(tmp_path, named):
    made = saved(tmp_path, "model-1.19246-0.603", dense(), weights(), "0223")
    assert [one.name for one in engine().facts(made).inputs] == ["data"]
    settings = engine(named).program(made, HERE).setup["settings"]
    assert settings["parameters"] == "model-1.19246-0.603-0223.params"


def test_names_with_slashes_as_keras_saves_them(tmp_path):
    """awslabs/multi-model-server#789."""
    graph = symbol(
        node("/conv2d_1_input1"),
        node("dense_1/kernel1"),
        node("dense_1/bias1"),
        node("dense_1/fc", "FullyConnected", [0, 1, 2], {"num_hidden": "2"}),
    )
    values = params(**{"dense_1/kernel1": np.zeros((2, 3), "<f4"), "dense_1/bias1": np.zeros(2, "<f4")})
    facts = engine().facts(saved(tmp_path, "mnist", graph, values))
    assert [one.name for one in facts.inputs] == ["/conv2d_1_input1"]


def test_a_detector_s_graph_for_training_is_named_with_the_way_out(tmp_path):
    """aws/sagemaker-python-sdk#438: what SageMaker's detector leaves is the symbol that it trained."""
    graph = symbol(
        node("data"),
        node("w"),
        node("b"),
        node("fc", "FullyConnected", [0, 1, 2], {"num_hidden": "2"}),
        node("label"),
        node("anchors", "_contrib_MultiBoxPrior", [3]),
        node("target", "_contrib_MultiBoxTarget", [5, 4, 3]),
        node("prob", "SoftmaxOutput", [3, 6]),
    )
    facts = engine().facts(saved(tmp_path, "model_algo_1", graph, weights()))
    assert [one.name for one in facts.inputs] == ["data", "label"]
    (note,) = facts.notes
    assert "the operation target compares with labels" in note
    assert "deploy.py" in note


def test_parameters_that_a_block_saved_are_named_with_the_name_they_need(tmp_path):
    made = saved(tmp_path, "net", dense(), weights())
    (tmp_path / "net-0000.params").rename(tmp_path / "net.params")
    message = refused(lambda: engine().facts(made))
    assert "but net.params" in message
    assert "Rename it to net-0000.params" in message
