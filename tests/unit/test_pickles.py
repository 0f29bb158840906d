"""The sweep for what opens pickles: each dress is found where it is planted, and in one module alone elsewhere."""

import ast

import pytest
from tests.gates import pickles
from tests.gates.source import SOURCE, tree

PLANTED = {
    "pickle": "import pickle\npickle.load(file)",
    "pickle's text": "import pickle\npickle.loads(data)",
    "a class": "import pickle\npickle.Unpickler(file).load()",
    "a name": "from pickle import loads\nloads(data)",
    "joblib": "import joblib\njoblib.load(path)",
    "cloudpickle": "import cloudpickle\ncloudpickle.load(file)",
    "dill": "from dill import load",
    "pandas": "import pandas\npandas.read_pickle(path)",
    "torch": "import torch\ntorch.load(path)",
    "torch by a variable": "import torch\ntorch.load(path, weights_only=safe)",
    "numpy": "import numpy\nnumpy.load(path, allow_pickle=True)",
    "a shelf": "import shelve\nshelve.open(path)",
    "mlflow": "import mlflow\nmlflow.pyfunc.load_model(path)",
}


@pytest.mark.parametrize("name", PLANTED)
def test_each_dress_is_found(name: str) -> None:
    assert list(pickles.opening(ast.parse(PLANTED[name])))


@pytest.mark.parametrize(
    "text",
    [
        "from pickle import PickleBuffer",
        "import torch\ntorch.load(data, weights_only=True)",
        "import numpy\nnumpy.load(file, allow_pickle=False)",
        "import json\njson.loads(text)",
    ],
)
def test_what_opens_none_is_not(text: str) -> None:
    assert not list(pickles.opening(ast.parse(text)))


def test_one_module_alone_opens_any() -> None:
    assert pickles.faults() == []
    assert len(list(pickles.opening(tree(SOURCE / pickles.HOME)))) >= 4
