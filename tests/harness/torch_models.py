"""Tiny TorchScript modules, written to a folder, and the specs that serve them. Needs torch."""

from dataclasses import replace

import pytest
from tests.harness.virtual_models import make_spec

from trivium.engines.torch.engine import ENGINE
from trivium.types.datatype import DataType
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.running import Batch, Placement
from trivium.types.spec import Batching, Isolation, TensorSpec

HERE = Placement("m_0", Isolation.THREAD)
ROWS = Batching(batch_axis=True, max_rows=8, merge=True)


def tensors(*names, datatype=DataType.FP32, dims=(2,)):
    return tuple(TensorSpec(name, datatype, dims) for name in names)


def scripted(folder, module, inputs=(), outputs=(), **fields):
    """The spec of a module written by torch.jit.script."""
    torch = pytest.importorskip("torch")
    torch.jit.script(module).save(str(folder / "model.pt"))
    return spec(folder, inputs, outputs, **fields)


def traced(folder, module, *example):
    """The spec of a module written by torch.jit.trace, as it describes itself."""
    torch = pytest.importorskip("torch")
    torch.jit.trace(module.eval(), example).save(str(folder / "model.pt"))
    return described(folder)


def described(folder):
    facts = ENGINE.facts(spec(folder))
    return spec(folder, facts.inputs, facts.outputs)


def spec(folder, inputs=(), outputs=(), **fields):
    made = make_spec(inputs=inputs, outputs=outputs)
    return replace(made, **{"root": folder, "engine": "torch", "entry": "model.pt", **fields})


def batched(one, batching=ROWS):
    """The spec as a format finishes it for a model with a batch axis, of whole dims."""
    inputs, outputs = (
        tuple(replace(tensor, dims=tensor.dims[1:]) for tensor in side) for side in (one.inputs, one.outputs)
    )
    return replace(one, inputs=inputs, outputs=outputs, batching=batching)


def run(one, *asked, runner=None):
    """The outcomes of one batch of items, each given as arrays by name."""
    runner = runner or ENGINE.open(one, HERE)
    rows = [len(next(iter(arrays.values()))) if one.batching.batch_axis else 1 for arrays in asked]
    operations = [Infer(model="m", payload=Tensors.of(arrays)) for arrays in asked]
    return runner.run(Batch(list(range(len(asked))), operations, rows)).outcomes
