"""LightGBM: opens its text files as boosters. A damaged one ends the process that reads it: never the server's.

Source of the rules: LightGBM's own `LGBMClassifier`.
"""

from typing import Any

import numpy as np

from trivium.engines.tabular.engine import TableEngine, unreadable
from trivium.engines.tabular.estimator import Estimator
from trivium.engines.tabular.tree_answers import CONTRIBUTIONS, LEAVES, MARGIN, OPTIONS, Trees, estimator
from trivium.machine import extras
from trivium.types.datatype import Array
from trivium.types.hazards import Hazard
from trivium.types.spec import ModelSpec

_HEAD = 2**16
_SAVE = "Save it anew with LightGBM: booster.save_model('model.txt')."


def _open(spec: ModelSpec, threads: int) -> Estimator:
    try:
        import lightgbm
    except ImportError as error:
        raise extras.lacking("Models of LightGBM", error, "lightgbm") from error
    path = spec.root / spec.entry
    try:
        with open(path, "rb") as file:
            objective, number = _told(file.read(_HEAD))
        booster = lightgbm.Booster(model_file=str(path))
        features = booster.num_feature()
    except Exception as error:
        raise unreadable(spec, "LightGBM", error, _SAVE) from error
    return estimator(_trees(booster, objective, number, features, threads), spec)


def _told(head: bytes) -> tuple[str, int]:
    """Return the objective's name and the number of classes, as the file's first lines tell them."""
    lines = dict(line.split(b"=", 1) for line in head.splitlines() if b"=" in line)
    objective = lines.get(b"objective", b"").split(b" ")[0].decode("ascii", "replace")
    return objective, int(lines.get(b"num_class", b"1"))


def _trees(booster: Any, objective: str, number: int, features: int, threads: int) -> Trees:
    is_many = objective in ("multiclass", "multiclassova")
    classes = 2 if objective == "binary" else number if is_many else 0

    def call(what: str, rows: Array) -> Array:
        found = booster.predict(
            rows,
            raw_score=what == MARGIN,
            pred_leaf=what == LEAVES,
            pred_contrib=what == CONTRIBUTIONS,
            num_threads=threads,
        )
        return np.asarray(found)

    return Trees(features, classes, call)


ENGINE = TableEngine("lightgbm", _open, (Hazard.ENDS,), OPTIONS)
