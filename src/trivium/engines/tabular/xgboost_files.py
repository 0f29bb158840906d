"""XGBoost: opens model files, JSON or UBJSON, as boosters.

Source of the rules: XGBoost's own `XGBClassifier`: what is a classifier says its objective; where training stopped
early the rounds up to the best one count.
"""

import json
from typing import Any

import numpy as np

from trivium.engines.tabular.engine import TableEngine, unreadable
from trivium.engines.tabular.estimator import Estimator
from trivium.engines.tabular.tree_answers import CONTRIBUTIONS, LEAVES, MARGIN, OPTIONS, Trees, estimator
from trivium.machine import extras
from trivium.settings.kinds import Whole
from trivium.settings.parameters import read_parameters
from trivium.settings.setting import Setting
from trivium.types.datatype import Array
from trivium.types.spec import ModelSpec

_LIMIT = Setting(
    "tree_limit", Whole(), "0", help="The rounds of trees that count, from the first; 0: all of them."
)
_SAVE = "Save it anew with XGBoost: booster.save_model('model.json')."
_HINTS = {
    b"binf": "It has XGBoost's old binary form, which XGBoost 3.1 and later do not read: load it with XGBoost before "
    "3.1, and save it by booster.save_model('model.json').",
    b"tree": "It is a file of LightGBM: name that engine, or its backend.",
}
"""The first bytes of a file that is not read -> what to do."""


def _open(spec: ModelSpec, threads: int) -> Estimator:
    try:
        import xgboost
    except ImportError as error:
        raise extras.lacking("Models of XGBoost", error, "xgboost") from error
    path = spec.root / spec.entry
    with open(path, "rb") as file:
        start = file.read(4)
    xgboost.set_config(verbosity=0)
    try:
        booster = xgboost.Booster(params={"nthread": threads})
        booster.load_model(_readable(path, start))
        booster.set_param({"nthread": threads})
        told = json.loads(booster.save_config())["learner"]
        features = booster.num_features()
    except Exception as error:
        raise unreadable(spec, "XGBoost", error, _HINTS.get(start, _SAVE)) from error
    limit = read_parameters(spec, [_LIMIT]).get("tree_limit", 0)
    return estimator(_trees(xgboost, booster, told, features, limit), spec)


def _readable(path: Any, start: bytes) -> Any:
    """Return what the library loads: the file by its content, whatever its name ends in."""
    if start[:1] == b"{" and path.suffix not in (".json", ".ubj"):
        return bytearray(path.read_bytes())
    return str(path)


def _trees(xgboost: Any, booster: Any, told: Any, features: int, limit: int) -> Trees:
    objective = str(told["objective"]["name"])
    number = int(told["learner_model_param"]["num_class"])
    classes = 2 if objective.startswith("binary:") else number if objective.startswith("multi:") else 0
    best = booster.attr("best_iteration")
    rounds = (0, limit or (int(best) + 1 if best is not None else 0))

    def call(what: str, rows: Array) -> Array:
        if what in (LEAVES, CONTRIBUTIONS):
            kind = {"pred_leaf": True} if what == LEAVES else {"pred_contribs": True}
            return np.asarray(
                booster.predict(
                    xgboost.DMatrix(rows), iteration_range=rounds, validate_features=False, **kind
                )
            )
        kind_of = "margin" if what == MARGIN else "value"
        found = booster.inplace_predict(
            rows, iteration_range=rounds, predict_type=kind_of, validate_features=False
        )
        return np.asarray(found)

    return Trees(features, classes, call, objective in ("binary:logistic", "multi:softprob"))


ENGINE = TableEngine("xgboost", _open, (), (*OPTIONS, _LIMIT))
