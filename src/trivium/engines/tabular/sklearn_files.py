"""scikit-learn: opens estimators that were saved by skops, and pickles of joblib, pickle and cloudpickle where they are
trusted.

A pickle runs what its author wrote, so that it is opened in an instance alone, and only by the operator's word; skops
opens its own types, and others that are named. Source of the names of both settings: DJL's `sklearn_handler`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from trivium.engines.tabular.engine import COMMON, TableEngine, unreadable
from trivium.engines.tabular.estimator import INPUT, PREDICT, PROBABILITIES, Estimator, output
from trivium.machine import extras
from trivium.settings.kinds import SWITCH, OneOf
from trivium.settings.parameters import place_of, read_parameters, unknown_parameters
from trivium.settings.setting import Setting
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError
from trivium.types.hazards import Hazard
from trivium.types.spec import ModelFacts, ModelSpec, TensorSpec
from trivium.types.spoken import spoken
from trivium_worker import pickles
from trivium_worker.estimators import FORMATS, SKOPS, TRUST, TYPES, trusted_types

_TRUST = Setting(
    TRUST, SWITCH, "false", help="Whether pickles may be opened, which run what their author wrote."
)
_TYPES = Setting(
    TYPES, help="Types that a skops file may have besides scikit-learn's and numpy's, with colons between."
)
_SAVE = "Save it anew: skops.io.dump(model, 'model.skops')."
DECISION, TRANSFORM = "decision_function", "transform"
_ANSWER = Setting(
    "answer",
    OneOf(("estimator", PREDICT, PROBABILITIES, DECISION, TRANSFORM)),
    "estimator",
    help="Which of an estimator's methods answer: predict, with predict_proba where there is one, or one of them.",
)
OPTIONS = (_TRUST, _TYPES, _ANSWER)


class SklearnEngine(TableEngine):
    """Tells nothing of a pickle before its instance has opened it."""

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Inputs and outputs as the estimator has them; of a pickle, which is not opened here, what any has."""
        if _is_skops(spec):
            return super().facts(spec)
        _check_trust(spec)
        told = read_parameters(spec, (*COMMON, *OPTIONS))
        answer = told.get("answer", "estimator")
        one = TensorSpec(INPUT, DataType[told.get("datatype", "FP32")], (-1, -1))
        answers = TensorSpec(PREDICT if answer == "estimator" else answer, DataType.FP64, (-1,), open=True)
        notes = unknown_parameters(spec.parameters, self.name, [row.name for row in self.options])
        return ModelFacts((one,), (answers,), batchable=True, notes=notes, details=self.details)


def _is_skops(spec: ModelSpec) -> bool:
    return spec.entry.lower().endswith(FORMATS[SKOPS])


def _check_trust(spec: ModelSpec) -> None:
    if read_parameters(spec, [_TRUST]).get(TRUST, False):
        return
    path, place = spec.root / spec.entry, place_of(spec, TRUST)
    raise ServeError(
        Code.LOAD_FAILED,
        spoken(
            f"Model '{spec.name}': {path} is a pickle, which runs what its author wrote, and {TRUST} is not "
            f"true{place}. {_SAVE} Or, if you trust the file, give --engine-parameters sklearn.{TRUST}=true."
        ),
    )


def _open(spec: ModelSpec, threads: int) -> Estimator:
    try:
        from threadpoolctl import threadpool_limits  # scikit-learn needs it
    except ImportError as error:
        raise extras.lacking("Estimators of scikit-learn", error, "sklearn") from error
    threadpool_limits(threads)  # of this process, which is the instance's own
    model = _skops(spec) if _is_skops(spec) else _pickled(spec)
    return _estimator(model, spec)


def _skops(spec: ModelSpec) -> Any:
    try:
        from skops import io
    except ImportError as error:
        raise extras.lacking("Estimators of scikit-learn", error, "sklearn") from error
    path = spec.root / spec.entry
    named = trusted_types(spec.parameters.get(TYPES, ""))
    try:
        unknown = [one for one in io.get_untrusted_types(file=path) if one not in named]
    except Exception as error:
        raise unreadable(spec, "skops", error, _SAVE) from error
    if unknown:
        raise ServeError(
            Code.LOAD_FAILED,
            spoken(
                f"Model '{spec.name}': {path} has types that are not trusted: {', '.join(unknown)[:600]}. If you trust "
                f"them, name them: --engine-parameters sklearn.{TYPES}={':'.join(unknown)}"
            ),
        )
    try:
        return io.load(path, trusted=named)
    except Exception as error:
        raise unreadable(spec, "skops", error, _SAVE) from error


def _pickled(spec: ModelSpec) -> Any:
    _check_trust(spec)
    try:
        return pickles.opened(str(spec.root / spec.entry))
    except Exception as error:
        hint = "Install what it was made with in the same versions, or save it by skops."
        raise unreadable(spec, "pickle", error, hint) from error


def _estimator(model: Any, spec: ModelSpec) -> Estimator:
    """Return what calls the methods that are asked for."""
    answer = read_parameters(spec, [_ANSWER]).get("answer", "estimator")
    names = [answer]
    if answer == "estimator":
        names = [next((name for name in (PREDICT, TRANSFORM) if hasattr(model, name)), PREDICT)]
        is_declared = not spec.outputs or any(tensor.name == PROBABILITIES for tensor in spec.outputs)
        names += [PROBABILITIES] if is_declared and hasattr(model, PROBABILITIES) else []
    lacks = [name for name in names if not hasattr(model, name)]
    if lacks:
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': {spec.root / spec.entry} holds a {type(model).__name__}, which has no method "
            f"{lacks[0]}. Save a fitted estimator, or choose another method by answer.",
        )
    features = int(getattr(model, "n_features_in_", -1))
    outputs = tuple(_described(model, name, max(features, 1)) for name in names)

    def computed(rows: Array) -> Sequence[Array]:
        return [_dense(getattr(model, name)(rows), one) for name, one in zip(names, outputs, strict=True)]

    return Estimator(features, outputs, computed)


def _described(model: Any, name: str, features: int) -> TensorSpec:
    """Describe the output of one method by what it gives for a row of zeros."""
    found = np.asarray(getattr(model, name)(np.zeros((1, features), np.float32)))
    kinds = {"b": DataType.BOOL, "i": DataType.INT64, "u": DataType.INT64, "f": DataType.FP64}
    return output(name, kinds.get(found.dtype.kind, DataType.BYTES), *found.shape[1:])


def _dense(found: Any, told: TensorSpec) -> Array:
    array = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
    return array if told.datatype is DataType.BYTES else array.astype(told.datatype.dtype, copy=False)


ENGINE = SklearnEngine("sklearn", _open, (Hazard.RUNS,), OPTIONS)
