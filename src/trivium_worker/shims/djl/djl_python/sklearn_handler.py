"""Serves an estimator of scikit-learn: JSON or CSV in, its predictions as JSON or CSV out.

A model.py beside the file may load it, read requests, predict and write answers. Options and forms are those of DJL
Serving's handler of this name; scikit-learn, skops and joblib are imported when a file needs them.
"""

import io
import json
import os
from typing import Any

from djl_python.custom_formatter_handling import CustomFormatterHandler
from djl_python.encode_decode import decode
from djl_python.inputs import Input
from djl_python.outputs import Output
from trivium_worker import pickles
from trivium_worker.estimators import FORMATS, OWN_LOADING, TRUST, TYPES, files_of, trusted_types

_JSON, _CSV = "application/json", "text/csv"
_ARRAYS = ("tensor/", "application/x-npy")
_SAVE = "Save it anew: skops.io.dump(model, 'model.skops')."


class SklearnHandler(CustomFormatterHandler):
    """One estimator, opened by the first request, which has the model's options."""

    def __init__(self) -> None:
        super().__init__()
        self.model: Any = None
        self.initialized = False
        self.init_properties: dict[str, str] = {}

    def initialize(self, properties: dict[str, str]) -> None:
        """Open the model. ValueError for a folder or an option that says no, with what to write."""
        self.init_properties = dict(properties)
        folder = properties["model_dir"]
        self.load_formatters(folder)
        model = self.apply_init_handler(folder)
        self.model = opened(folder, properties) if model is None else model
        if self.prediction_handler is None and not hasattr(self.model, "predict"):
            raise ValueError(
                f"the model is a {type(self.model).__name__}, which has no method predict. Save an estimator, or "
                "write a function predict_fn(input_data, model) in model.py."
            )
        self.initialized = True

    def inference(self, inputs: Input) -> Output:
        """Answer one request. ValueError for one that cannot be read, or wants a form that there is not."""
        content_type = inputs.get_property("Content-Type") or ""
        accept = self._accepted(inputs.get_property("Accept") or "*/*")
        rows = self.apply_input_formatter(inputs, content_type=content_type)
        rows = self._arranged(_read(inputs, content_type) if rows is inputs else rows)
        found = self.apply_prediction_handler(rows, self.model)
        if found is None:
            found = self.model.predict(rows)
        written = self.apply_output_formatter(found, accept=accept)
        return self._written(found, accept) if written is found else self._formatted(written, accept)

    def _accepted(self, accept: str) -> str:
        """Return the form of the answer. A function of the folder's takes whatever is asked for."""
        is_known = _JSON in accept or _CSV in accept
        if "*/*" in accept and not is_known:
            return self.init_properties.get("default_accept") or _JSON
        if not is_known and self.output_formatter is None:
            raise ValueError(f"the request's Accept is {accept}. Send {_JSON} or {_CSV}, or leave it out.")
        return accept

    def _arranged(self, rows: Any) -> Any:
        """Return rows as an estimator takes them: a single one is a table of one."""
        import numpy

        if isinstance(rows, (list, tuple)) and self.prediction_handler is None:
            rows = numpy.array(rows)
        if isinstance(rows, numpy.ndarray) and rows.ndim == 1:
            return rows.reshape(1, -1)
        if self.prediction_handler is None and not getattr(rows, "ndim", 0):
            raise ValueError(
                f"the input is a {type(rows).__name__}, and no rows. Return an array from the function that reads "
                "requests, or write one that predicts from this."
            )
        return rows

    def _written(self, found: Any, accept: str) -> Output:
        if _CSV not in accept:
            return Output().add_as_json({"predictions": found}).add_property("Content-Type", _JSON)
        import numpy

        text = io.StringIO()
        numpy.savetxt(text, numpy.asarray(found), fmt="%s", delimiter=",")
        return Output().add(text.getvalue().rstrip()).add_property("Content-Type", _CSV)

    def _formatted(self, written: Any, accept: str) -> Output:
        """Return what a function of the folder's has written; SageMaker's say what it is, or it is what was asked."""
        if not self.is_sagemaker_script:
            return Output().add(written)
        if isinstance(written, tuple) and len(written) == 2 and isinstance(written[1], str):
            written, accept = written
        return Output().add(written).add_property("Content-Type", accept)


def opened(folder: str, properties: dict[str, str]) -> Any:
    """Return the estimator of a folder. ValueError where its file is not there, not one, or not trusted."""
    written = properties.get("model_format") or ""
    if written and written not in FORMATS:
        raise ValueError(f"option.model_format={written} is none of {', '.join(FORMATS)}.")
    files = files_of(os.listdir(folder), written)
    if len(files.names) != 1:
        found = (
            f"{len(files.names)} files end so: {', '.join(files.names)}" if files.names else "no file does"
        )
        raise ValueError(
            f"the model is the file of {folder} in {' or '.join(files.ends)}, and {found}. {OWN_LOADING}"
        )
    path = os.path.join(folder, files.names[0])
    if not files.is_pickle:
        return _of_skops(path, trusted_types(properties.get(TYPES) or ""))
    if (properties.get(TRUST) or "").lower() != "true":
        raise ValueError(
            f"{path} is a pickle, which runs what its author wrote. {_SAVE} Or, if you trust the file, write "
            f"option.{TRUST}=true in serving.properties."
        )
    return pickles.opened(path)


def _of_skops(path: str, named: list[str]) -> Any:
    from skops import io as skops

    try:
        unknown = [one for one in skops.get_untrusted_types(file=path) if one not in named]
    except Exception as error:
        raise ValueError(f"{path} cannot be read by skops: {error}. {_SAVE}") from error
    if unknown:
        raise ValueError(
            f"{path} has types that are not trusted: {', '.join(unknown)[:600]}. If you trust them, write "
            f"option.{TYPES}={','.join([*named, *unknown])[:900]} in serving.properties."
        )
    return skops.load(path, trusted=named)


def _read(inputs: Input, content_type: str) -> Any:
    """Return the rows of a request, as an array."""
    import numpy

    if _CSV in content_type:
        return decode(inputs, content_type, require_csv_headers=False)
    try:
        document = decode(inputs, content_type)
    except json.JSONDecodeError as error:
        raise ValueError(
            f'the body is no JSON: {error}. Send {{"inputs": [[...], ...]}}, or a list of rows.'
        ) from error
    if isinstance(document, dict):
        if "inputs" not in document:
            keys = ", ".join(map(str, document))[:200] or "none"
            raise ValueError(
                f'the request has no "inputs"; its keys: {keys}. Send {{"inputs": [[...], ...]}}.'
            )
        document = document["inputs"]
    if content_type.startswith(_ARRAYS):
        if len(document) != 1:
            raise ValueError(f"the request has {len(document)} tensors. Send one, of rows.")
        return document[0]
    return numpy.array(document)


service = SklearnHandler()


def handle(inputs: Input) -> Output | None:
    """Answer a request; the first, which is empty, opens the model."""
    if not service.initialized:
        service.initialize(inputs.get_properties())
    return None if inputs.is_empty() else service.inference(inputs)
