"""Models of tables, trained on the digits and the tumours that scikit-learn ships, in the files of each library."""

import pickle
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from tests.harness.virtual_models import make_spec

from trivium.catalogue import CATALOGUE
from trivium.core.execution import execute
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.running import Batch, Placement
from trivium.types.spec import Batching, Isolation, ModelSpec

HERE = Placement("m_0", Isolation.PROCESS)
ROWS = Batching(batch_axis=True, max_rows=64, merge=True)
TREE = "sklearn.tree._tree.Tree"
"""What a forest in a skops file has, and skops does not trust unasked."""


@cache
def digits() -> tuple[Any, Any]:
    """Return pictures of digits, FP32[rows, 64], and the digits."""
    datasets = pytest.importorskip("sklearn.datasets")
    rows, wanted = datasets.load_digits(return_X_y=True)
    return rows.astype(np.float32), wanted


@cache
def tumours() -> tuple[Any, Any]:
    """Return measures, FP32[rows, 30], and which of two classes they are."""
    datasets = pytest.importorskip("sklearn.datasets")
    rows, wanted = datasets.load_breast_cancer(return_X_y=True)
    return rows.astype(np.float32), wanted


@cache
def trained(library: str, classes: int = 10) -> Any:
    """Return the estimator of a library, for digits or for tumours."""
    rows, wanted = digits() if classes == 10 else tumours()
    if library == "xgboost":
        made = pytest.importorskip("xgboost").XGBClassifier(n_estimators=20, max_depth=4, n_jobs=2)
    elif library == "lightgbm":
        made = pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=20, verbosity=-1, n_jobs=2)
    else:
        ensemble = pytest.importorskip("sklearn.ensemble")
        made = ensemble.RandomForestClassifier(20, random_state=0)
    return made.fit(rows, wanted)


def write(path: Path, library: str, classes: int = 10) -> Path:
    """Write a library's model to a file, in the form that its suffix says, and return the file."""
    model = trained(library, classes)
    path.parent.mkdir(parents=True, exist_ok=True)
    if library == "xgboost":
        model.save_model(path)
    elif library == "lightgbm":
        model.booster_.save_model(path)
    elif path.suffix == ".skops":
        pytest.importorskip("skops.io").dump(model, path)
    elif path.suffix == ".joblib":
        joblib.dump(model, path)
    else:
        path.write_bytes(pickle.dumps(model))
    return path


def spec_of(path: Path, engine: str, **parameters: str) -> ModelSpec:
    """Return a spec of a file, completed by what its engine says of it."""
    bare = replace(
        make_spec(ROWS, inputs=(), outputs=()),
        root=path.parent,
        entry=path.name,
        engine=engine,
        parameters=parameters,
    )
    facts = CATALOGUE.engines[engine].facts(bare)
    rows = [[replace(one, dims=one.dims[1:]) for one in tensors] for tensors in (facts.inputs, facts.outputs)]
    return replace(bare, inputs=tuple(rows[0]), outputs=tuple(rows[1]))


def answers(spec: ModelSpec, *rows: Any) -> list[Any]:
    """Return the outcome of each item of a batch of these rows."""
    runner = CATALOGUE.engines[spec.engine].open(spec, HERE)  # type: ignore[attr-defined]
    name = spec.inputs[0].name
    operations = [Infer(model="m", payload=Tensors.of({name: one})) for one in rows]
    batch = Batch(list(range(len(rows))), operations, [len(one) for one in rows])
    try:
        return list(execute(runner, batch).outcomes)
    finally:
        runner.close()
