"""Repositories of Python-backend models for contract suites, and a server of them inside the test."""

import asyncio

import numpy as np

from trivium.catalogue import configured, serving
from trivium.types.operations import Infer
from trivium.types.payload import Tensors

HEAD = """
import os, time
import numpy as np
import triton_python_backend_utils as pb_utils
def of(request, name):
    return pb_utils.get_input_tensor_by_name(request, name).as_numpy()
def answer(**arrays):
    return pb_utils.InferenceResponse([pb_utils.Tensor(name, array) for name, array in arrays.items()])
class TritonPythonModel:
"""
ENDS = (
    'input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }'
)


def place(root, name, body, config, ends=ENDS):
    """A model whose class has that body, after `HEAD`; an ensemble without one. It has one instance, unless said."""
    folder = root / name / "1"
    folder.mkdir(parents=True)
    if body:
        (folder / "model.py").write_text(HEAD + body)
        if "instance_group" not in config:
            config += " instance_group { kind: KIND_CPU }"
        config = f'backend: "python" {config}'
    (root / name / "config.pbtxt").write_text(f"max_batch_size: 4 {ends} {config}")


def ask(model, value, **fields):
    """A request of one row."""
    return Infer(model=model, payload=Tensors.of({"IN": np.array([[value]], "<i4")}), **fields)


def scene(play, root, **options):
    """`play(server)` with everything in `root` served."""

    async def run():
        config = configured(**options)
        async with asyncio.timeout(60), serving(root, config=config) as server:
            await play(server)

    asyncio.run(run())


def out(part):
    """What it was answered."""
    return part.payload["OUT"].item()
