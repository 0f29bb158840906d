"""What every engine of the composition root owes: a light descriptor, facts, runs, an outcome per item."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto
from tests.harness import onnx_models, saved_models, torch_models
from tests.harness.virtual_models import make_spec

from trivium.catalogue import CATALOGUE
from trivium.core.execution import execute
from trivium.engines.tabular.engine import TableEngine
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import OpensRunner, OpensStepRunner, WorkerEngine, default_isolation
from trivium.types.operations import Infer
from trivium.types.payload import PayloadKind, Tensors
from trivium.types.running import Batch, Placement
from trivium.types.spec import Batching, Isolation, ModelFacts, TensorSpec

HERE = Placement("m_0", Isolation.THREAD)
ROWS = Batching(batch_axis=True, max_rows=8, merge=True)


def identity(folder):
    return make_spec(ROWS)


def onnx(folder):
    return onnx_models.batched(onnx_models.identity(folder, TensorProto.FLOAT, "n", 2))


def torchscript(folder):
    torch = pytest.importorskip("torch")
    return torch_models.batched(torch_models.traced(folder, torch.nn.Identity(), torch.ones(1, 2)))


def tensorflow(folder):
    if saved_models.ALONE not in os.environ:
        pytest.skip("in a process of its own: see test_saved_models")
    saved_models.save_identity(folder / "m")
    return saved_models.spec_of(folder / "m", ROWS)


MODELS = {
    "identity": identity,
    "onnx": onnx,
    "tensorflow": tensorflow,
    "torch": torchscript,
}
"""A model per engine that gives back its FP32[rows, 2] input: a new engine needs a row here."""

opening = {name: engine for name, engine in CATALOGUE.engines.items() if isinstance(engine, OpensRunner)}
every_engine = pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name, engine in opening.items()
        if engine.isolation != (Isolation.PROCESS,) and not isinstance(engine, TableEngine)
    ),
)
"""Those that compute with whatever tensors a model has; what takes texts, or tables, has a contract of its own."""


@pytest.mark.parametrize("name", sorted(CATALOGUE.engines))
def test_an_engine_opens_runners_of_one_kind_or_launches_programs(name):
    ways = OpensRunner, OpensStepRunner, WorkerEngine
    assert sum(isinstance(CATALOGUE.engines[name], way) for way in ways) == 1


@pytest.mark.parametrize(
    "name", sorted(name for name, engine in CATALOGUE.engines.items() if isinstance(engine, OpensStepRunner))
)
def test_an_engine_that_steps_has_a_process_of_its_own(name):
    engine = CATALOGUE.engines[name]
    assert engine.name == name
    assert engine.takes == {PayloadKind.GENERATE}
    assert engine.isolation == (Isolation.PROCESS,)


@pytest.fixture
def made(name, tmp_path):
    spec = MODELS[name](tmp_path)
    return CATALOGUE.engines[name], spec


def batch(spec, *rows):
    payloads = [np.full((count, 2), at, "<f4") for at, count in enumerate(rows)]
    operations = [Infer(model="m", payload=Tensors.of({spec.inputs[0].name: x})) for x in payloads]
    return Batch(list(range(len(rows))), operations, list(rows))


def test_the_composition_root_imports_no_heavy_library():
    script = (
        "import sys, trivium.app; "
        "print(*sorted({'onnxruntime', 'torch', 'transformers', 'onnx', 'tensorflow', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize("name", sorted(opening))
def test_descriptors(name):
    engine = CATALOGUE.engines[name]
    assert engine.name == name
    assert engine.takes <= set(PayloadKind)
    assert engine.takes
    assert engine.isolation
    assert set(engine.isolation) <= set(Isolation)
    assert isinstance(engine.has_facts, bool)


@every_engine
def test_a_model_runs_by_default_where_its_engine_can(made):
    engine, spec = made
    text = TensorSpec("t", DataType.BYTES, (1,))
    for model in (
        spec,
        replace(spec, inputs=(text,)),
        replace(spec, outputs=(text,)),
        make_spec(inputs=(), outputs=()),
    ):
        assert default_isolation(engine, model) in engine.isolation


@every_engine
def test_facts_are_of_the_model(made):
    engine, spec = made
    facts = engine.facts(spec)
    assert isinstance(facts, ModelFacts)
    assert [tensor.name for tensor in facts.inputs] == [tensor.name for tensor in spec.inputs]
    assert [tensor.datatype for tensor in facts.outputs] == [tensor.datatype for tensor in spec.outputs]


@every_engine
@pytest.mark.parametrize("rows", [(1,), (3,), (1, 1), (2, 1, 3)])
def test_an_outcome_per_item_in_order(made, rows):
    engine, spec = made
    runner = engine.open(spec, HERE)
    for _ in range(2):
        ran = runner.run(batch(spec, *rows))
        assert len(ran.outcomes) == len(rows)
        for at, (count, outcome) in enumerate(zip(rows, ran.outcomes, strict=True)):
            (output,) = outcome.items
            assert (output.name, output.datatype) == (spec.outputs[0].name, spec.outputs[0].datatype)
            assert output.shape == output.array.shape == (count, 2)
            assert output.array.dtype == output.datatype.dtype
            assert output.array.tolist() == [[at, at]] * count
    runner.close()


@every_engine
def test_times_are_in_order(made):
    engine, spec = made
    run = execute(engine.open(spec, HERE), batch(spec, 1, 1))
    assert run.began <= run.input_ready <= run.output_began <= run.ended


@every_engine
def test_requests_are_read_and_never_written(made):
    engine, spec = made
    asked = batch(spec, 2, 1)
    for operation in asked.operations:
        operation.payload.items[0].array.flags.writeable = False
    outcomes = engine.open(spec, HERE).run(asked).outcomes
    assert [outcome.items[0].array.tolist() for outcome in outcomes] == [[[0, 0]] * 2, [[1, 1]]]


@every_engine
def test_answers_outlast_the_next_batch_and_the_runner(made):
    engine, spec = made
    runner = engine.open(spec, HERE)
    kept = runner.run(batch(spec, 1, 2)).outcomes
    runner.run(batch(spec, 2, 1, 3))
    runner.close()
    assert [outcome.items[0].array.tolist() for outcome in kept] == [[[0, 0]], [[1, 1]] * 2]


@every_engine
def test_instances_do_not_know_one_another(made):
    engine, spec = made
    first, second = engine.open(spec, HERE), engine.open(spec, HERE)
    first.close()
    assert len(second.run(batch(spec, 1)).outcomes) == 1
    second.close()


@every_engine
def test_what_cannot_be_opened_is_a_serve_error(made):
    engine, spec = made
    bad = type(spec)(
        "m",
        "1",
        spec.root / "nowhere",
        spec.engine,
        "nothing",
        inputs=spec.inputs,
        parameters={"graph_level": "x"},
    )
    with pytest.raises(ServeError) as caught:
        engine.open(bad, HERE)
    assert caught.value.code is Code.LOAD_FAILED
    assert "Model 'm'" in caught.value.message
